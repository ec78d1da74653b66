"""Reasons of a verdict, sorted and shortened for readers."""

from typing import NamedTuple

from ci_eval.records.comparisons import Comparison
from ci_eval.records.findings import Report

_WEAKENED = "a change that weakens its own gate fails, because gate.on_loosened is 'fail'"

_IN_TABLE = ("regressed", "inconclusive", "advisory")
"""Kinds of reasons about a criterion that its row in the table shows."""


class Reasons(NamedTuple):
    """The reasons of a verdict."""

    deciding: list[str]
    """Why it blocks or, if nothing blocks, why there is no verdict."""
    warnings: list[str]
    exempt: list[str]
    """Exempted cases that did not pass or got worse."""
    notes: list[str]


def weakened(report: Report) -> tuple[str, ...]:
    """Return how the change weakens its own gate, whether or not it could be compared."""
    return report.comparison.loosened if report.comparison else report.meta.weakened


def reasons_of(report: Report) -> Reasons:
    """Sort the reasons of the verdict.

    A warning that the table of criteria shows becomes a note.  The reason about a weakened gate
    only says that it blocks, because documents have a place for the rest.  Regressed criteria and
    cases are left out: documents name them before all reasons.
    """
    comparison = report.comparison or Comparison()
    regressed = {each.group for each in comparison.deltas if each.outcome == "regressed"}
    is_worse = False
    said: dict[str, list[str]] = {"blocks": [], "incomplete": [], "warns": [], "info": []}
    exempt: list[str] = []
    for each in report.verdict.reasons:
        if each.kind == "regressed" and each.group in regressed and each.severity == "blocks":
            is_worse = True
        elif each.kind == "weakened_gate" and weakened(report):
            if each.severity == "blocks":
                said["blocks"].append(_WEAKENED)
        elif each.kind == "exempt_worse":
            exempt.append(each.message)
        else:
            is_shown = each.severity == "warns" and each.kind in _IN_TABLE
            said["info" if is_shown else each.severity].append(each.message)
    if is_worse or said["blocks"]:
        return Reasons(said["blocks"], [*said["incomplete"], *said["warns"]], exempt, said["info"])
    return Reasons(said["incomplete"], said["warns"], exempt, said["info"])
