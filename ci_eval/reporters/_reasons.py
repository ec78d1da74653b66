"""Reasons of a verdict, sorted and shortened for readers."""

from typing import NamedTuple

from ci_eval.records.findings import Comparison, Delta, Report
from ci_eval.records.results import RunMeta
from ci_eval.text.templates import plain

_MAX_NAMED = 4
"""The most criteria that one reason names."""


class Reasons(NamedTuple):
    """The reasons of a verdict."""

    deciding: list[str]
    """Why it blocks or, if nothing blocks, why there is no verdict."""
    warnings: list[str]
    notes: list[str]


def reasons_of(report: Report) -> Reasons:
    """Sort the reasons of the verdict.

    A warning about a criterion becomes a note, because the table of criteria shows it.  The reason
    about a weakened gate is left out, because documents have a place for it.  All regressed
    criteria become one reason without cases, which documents list further down.
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
