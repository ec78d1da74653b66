"""Reasons of a verdict, sorted and shortened for readers."""

from typing import NamedTuple

from ci_eval.records.findings import Comparison, Delta, Report
from ci_eval.records.results import RunMeta
from ci_eval.text.templates import plain

_MAX_NAMED = 4
"""The most criteria that one reason names."""
_WEAKENED = "a change that weakens its own gate fails, because gate.on_loosened is 'fail'"


class Reasons(NamedTuple):
    """The reasons of a verdict."""

    deciding: list[str]
    """Why it blocks or, if nothing blocks, why there is no verdict."""
    warnings: list[str]
    notes: list[str]


def reasons_of(report: Report) -> Reasons:
    """Sort the reasons of the verdict.

    A warning about a criterion becomes a note, because the table of criteria shows it.  The reason
    about a weakened gate only says that it blocks, because documents have a place for the rest.
    All regressed criteria become one reason without cases, which documents list further down.
    """
    comparison = report.comparison or Comparison()
    regressed = {each.group: each for each in comparison.deltas if each.outcome == "regressed"}
    worse: list[Delta] = []
    said: dict[str, list[str]] = {"blocks": [], "incomplete": [], "warns": [], "info": []}
    for each in report.verdict.reasons:
        delta = regressed.get(each.group) if each.group and each.kind == "regressed" else None
        if delta and each.severity == "blocks":
            worse.append(delta)
        elif each.kind == "weakened_gate" and comparison.loosened:
            if each.severity == "blocks":
                said["blocks"].append(_WEAKENED)
        else:
            is_shown = each.severity == "warns" and each.group
            said["info" if is_shown else each.severity].append(each.message)
    blocking = [_regression(worse, report.meta)] if worse else []
    blocking += said["blocks"]
    if blocking:
        return Reasons(blocking, [*said["incomplete"], *said["warns"]], said["info"])
    return Reasons(said["incomplete"], said["warns"], said["info"])


def _regression(deltas: list[Delta], meta: RunMeta) -> str:
    why = "; ".join(dict.fromkeys(each.reason for each in deltas))
    if len(deltas) == 1:
        return f"{_named(deltas[0], meta)} regressed{_by(deltas[0])}: {why}"
    names = [f"{_named(each, meta)}{_by(each)}" for each in deltas[:_MAX_NAMED]]
    if len(deltas) > _MAX_NAMED:
        names.append(f"{len(deltas) - _MAX_NAMED} more")
    return f"{len(deltas)} criteria regressed: {', '.join(names[:-1])} and {names[-1]}; {why}"


def _named(delta: Delta, meta: RunMeta) -> str:
    name = delta.group.criterion
    if len(meta.evalsets) > 1:
        name += f" on {delta.group.evalset}"
    if len(meta.agents) > 1:
        name += f" with {delta.group.agent}"
    return name


def _by(delta: Delta) -> str:
    return "" if delta.effect is None else f" by {plain(abs(delta.effect))}"
