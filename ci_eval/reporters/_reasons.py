"""Why a verdict is what it is, in the order and as short as a reader wants it."""

from typing import NamedTuple

from ci_eval.records.findings import Comparison, Delta, Report
from ci_eval.records.results import RunMeta
from ci_eval.text.templates import plain

_MAX_NAMED = 4
"""Criteria that one reason names."""


class Reasons(NamedTuple):
    """The reasons of a verdict."""

    deciding: list[str]
    """Why it blocks; where nothing does, why there is no verdict."""
    warnings: list[str]
    """What a reader must know besides."""
    notes: list[str]


def reasons_of(report: Report) -> Reasons:
    """Sort the reasons.

    A warning about a criterion is among the notes, for the table of criteria shows it; what lists
    what the change loosens is nowhere, for it has a place of its own.  Criteria that regressed are
    one reason, without the cases that show it: these come below.
    """
    comparison = report.comparison or Comparison()
    reasons = [
        each
        for each in report.verdict.reasons
        if not (each.kind == "weakened_gate" and comparison.loosened)
    ]
    regressed = {each.group: each for each in comparison.deltas if each.outcome == "regressed"}
    worse = [
        each
        for each in reasons
        if each.severity == "blocks" and each.kind == "regressed" and each.group in regressed
    ]
    blocking = [each.message for each in reasons if each.severity == "blocks" and each not in worse]
    if worse:
        deltas = [regressed[each.group] for each in worse if each.group]
        blocking = [_regression(deltas, report.meta), *blocking]
    incomplete = [each.message for each in reasons if each.severity == "incomplete"]
    warnings = [each.message for each in reasons if each.severity == "warns" and not each.group]
    rest = [
        each.message
        for each in reasons
        if each.severity == "info" or (each.severity == "warns" and each.group)
    ]
    if blocking:
        return Reasons(blocking, [*incomplete, *warnings], rest)
    return Reasons(incomplete, warnings, rest)


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
