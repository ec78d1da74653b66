"""A run and its comparison to a `Verdict`: may this be merged, and why."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ci_eval import floors
from ci_eval.columns import Columns
from ci_eval.config_file import GateOptions
from ci_eval.excusing import excused
from ci_eval.findings import (
    Comparison,
    Delta,
    GroupKey,
    GroupSummary,
    Outcome,
    Reason,
    Totals,
    Vanished,
    Verdict,
)
from ci_eval.floors import Floor
from ci_eval.records import Status
from ci_eval.results import RunMeta, Tier
from ci_eval.templating import plain

Severity = Literal["blocks", "warns", "info"]
_SEVERITY: dict[str, Severity] = {
    "fail": "blocks",
    "warn": "warns",
    "pass": "info",
    # What is in doubt after all that could be drawn.
    "rerun": "warns",
}
_MISSING: dict[str, tuple[Severity, str]] = {
    "pass": ("info", "nothing was compared"),
    "threshold": ("info", "judged by thresholds alone"),
    "warn": ("warns", "nothing was compared"),
    "fail": ("blocks", "gate.on_missing is 'fail'"),
}
"""What follows from there being nothing to compare with."""
_MAX_NAMED = 5
"""How many cases or criteria a sentence names."""


def summarise(meta: RunMeta, columns: Columns) -> tuple[GroupSummary, ...]:
    """Return, for each criterion on each evalset with each agent, how its cases ended."""
    return tuple(_group(meta, key, columns) for key in columns.group_keys())


def _group(meta: RunMeta, key: GroupKey, columns: Columns) -> GroupSummary:
    facts = meta.criteria[key.criterion]
    cells = columns.groups[key.agent, key.evalset, key.criterion].values()
    ended = Counter(cell.status(facts) for cell in cells)
    values = [cell.value for cell in cells if cell.value is not None]
    return GroupSummary(
        group=key,
        passed=ended[Status.PASSED],
        failed=ended[Status.FAILED],
        errors=ended[Status.ERROR],
        skipped=ended[Status.SKIPPED],
        incomplete=sum(cell.lacks(facts) for cell in cells),
        value=math.fsum(values) / len(values) if values else None,
        threshold=facts.threshold,
        informational=facts.informational,
        tier=facts.tier,
        interval=facts.interval,
        better=facts.better,
    )


def count_cases(meta: RunMeta, columns: Columns, gate: GateOptions) -> Totals:
    """Return how the cases ended; trials and times are not known here.

    What is accepted or in quarantine counts neither as passed nor as failed.
    """
    excuses = excused(meta, gate, columns)
    statuses = dict(columns.cases(meta.criteria, excuses))
    ended = Counter(statuses.values())
    return Totals(
        cases=sum(ended.values()),
        passed=ended[Status.PASSED],
        failed=ended[Status.FAILED],
        errors=ended[Status.ERROR],
        skipped=ended[Status.SKIPPED],
        incomplete=columns.incomplete(meta.criteria, excuses),
        accepted=_accepted(meta, columns, gate, statuses) if gate.accept else 0,
    )


def _accepted(
    meta: RunMeta,
    columns: Columns,
    gate: GateOptions,
    statuses: Mapping[tuple[str, str, str], Status],
) -> int:
    """Return how many cases would have been judged, had nothing been accepted."""
    quarantined = excused(meta, gate.model_copy(update={"accept": ()}), columns)
    return sum(
        statuses[place] is Status.SKIPPED and status in (Status.PASSED, Status.FAILED)
        for place, status in columns.cases(meta.criteria, quarantined)
    )


def decide(  # noqa: PLR0913  # all that a verdict is made of
    options: GateOptions,
    totals: Totals,
    groups: tuple[GroupSummary, ...],
    comparison: Comparison | None,
    *,
    baseline_configured: bool,
    loosened: Sequence[str] = (),
    lacking: str = "",
) -> Verdict:
    """Decide; `loosened` is what the change makes easier to pass, beside what was compared.

    `lacking` is what kept something from being measured, where that is known.

    It is `failed` when something blocks whatever the missing observations would have been;
    else `incomplete` when too much is missing or nothing was judged; else `passed`.
    """
    mode = options.mode or ("regression" if baseline_configured else "threshold")
    lacks = lacks_baseline(comparison)
    by_threshold = mode != "regression" or (lacks and options.on_missing == "threshold")
    gate = _Gate(options, totals, groups, lacking)
    reasons = [*gate.floors(by_threshold=by_threshold)]
    if loosened:
        reasons.append(_loosens(loosened))
    if mode != "threshold":
        reasons += gate.changes(comparison) if comparison else ()
        reasons += gate.missing_baseline(comparison) if lacks else ()
    reasons += gate.completeness(compared=comparison is not None and mode != "threshold")
    severities = {reason.severity for reason in reasons}
    outcome: Literal["passed", "failed", "incomplete"] = "passed"
    if "blocks" in severities:
        outcome = "failed"
    elif "incomplete" in severities:
        outcome = "incomplete"
    order = ("blocks", "incomplete", "warns", "info")
    reasons.sort(key=lambda reason: order.index(reason.severity))
    return Verdict(outcome=outcome, mode=mode, reasons=tuple(reasons))


def lacks_baseline(comparison: Comparison | None) -> bool:
    """Say whether there is nothing to compare with: no run, or none that means the same."""
    return comparison is None or not comparison.comparable


@dataclass(frozen=True)
class _Gate:
    options: GateOptions
    totals: Totals
    groups: tuple[GroupSummary, ...]
    lacking: str

    def floors(self, *, by_threshold: bool) -> Iterator[Reason]:
        """Yield what is below a floor, whatever the missing cases had shown."""
        required = self.options.min_pass_rate
        if required is None and by_threshold:
            required = 1.0
        totals = self.totals
        judged = totals.passed + totals.failed + totals.errors
        if required is not None and judged:
            floor = floors.pass_rate(totals, required, self.options)
            failed = f"{totals.failed} of {_cases(judged)} failed"
            rate = f"pass rate {1 - totals.failed / judged:.1%}, required {required:.1%}"
            if floor.missed:
                yield self._missed(floor, f"{failed} ({rate}{_at_most(floor, '.1%')})")
        elif totals.failed:
            failed = f"{_cases(totals.failed)} below a threshold"
            yield Reason(severity="info", message=f"{failed}, which alone does not block")
        for group in self.groups:
            least = self.options.min_score.get(group.group.criterion)
            if least is None:
                continue
            floor = floors.mean(group, least, self.options)
            if floor.missed and group.value is not None:
                name = _named(group.group)
                message = f"{name} has a mean of {plain(group.value)}, required {least:g}"
                yield self._missed(floor, message, group.group)
        if by_threshold:
            yield from self._failed_beside()

    def _missed(self, floor: Floor, message: str, group: GroupKey | None = None) -> Reason:
        if floor.certain:
            return Reason(severity="blocks", message=message, group=group)
        severity = _SEVERITY[self.options.on_inconclusive]
        return Reason(severity=severity, message=f"{message}: this may be noise", group=group)

    def _failed_beside(self) -> Iterator[Reason]:
        """Yield the criteria that only warn, and that cases failed."""
        for group in self.groups:
            if group.tier == "warn" and group.failed and not group.informational:
                message = f"{_named(group.group)} failed {_cases(group.failed)}, and only warns"
                yield Reason(severity="warns", message=message, group=group.group)

    def changes(self, comparison: Comparison) -> Iterator[Reason]:
        """Yield what changed against the baseline."""
        if comparison.loosened:
            yield _loosens(comparison.loosened)
        for delta in comparison.deltas:
            if delta.outcome in ("regressed", "inconclusive"):
                verb = "regressed" if delta.outcome == "regressed" else "changed"
                message = f"{_named(delta.group)} {verb}{_moved(delta)}: {delta.reason}"
                message += _flipped(comparison, delta)
                severity = self._severity(delta.outcome, delta.tier)
                yield Reason(severity=severity, message=message, group=delta.group)
        yield from self._together(comparison)
        gone = comparison.vanished
        if gone:
            names = _listed([_gone(each) for each in gone])
            message = f"in the baseline and not in this run: {names}"
            yield Reason(severity=_SEVERITY[self.options.on_vanished], message=message)
        if comparison.not_comparable:
            names = _listed(list(comparison.not_comparable))
            yield Reason(severity="info", message=f"not compared: {names}")
        for excuse in comparison.excused:
            if excuse.expired:
                message = f"gate: {excuse.named} was {excuse.kind} until {excuse.until}: it is over"
                yield Reason(severity="warns", message=message)

    def _together(self, comparison: Comparison) -> Iterator[Reason]:
        """Yield what all criteria together show, where no single one does."""
        found = comparison.together
        outcomes = {delta.outcome for delta in comparison.deltas if delta.tier == "block"}
        # Beside a criterion that regressed for sure, all of them together tell nothing new.
        if "regressed" in outcomes:
            return
        if found and found.outcome in {"regressed", "inconclusive"} - outcomes:
            doubt = ", which may be noise" if found.outcome == "inconclusive" else ""
            message = (
                f"the {found.criteria} criteria that block are worse by "
                f"{-found.effect:.1%} together{doubt}"
            )
            yield Reason(severity=self._severity(found.outcome, "block"), message=message)

    def _severity(self, outcome: Outcome, tier: Tier) -> Severity:
        severity = "blocks" if outcome == "regressed" else _SEVERITY[self.options.on_inconclusive]
        return "warns" if severity == "blocks" and tier == "warn" else severity

    def missing_baseline(self, comparison: Comparison | None) -> Iterator[Reason]:
        """Yield what follows from there being nothing to compare with."""
        severity, therefore = _MISSING[self.options.on_missing]
        if comparison is None:
            message = f"there is no baseline yet: {therefore}"
        else:
            message = f"nothing of the baseline can be compared: {therefore}"
        yield Reason(severity=severity, message=message)

    def completeness(self, *, compared: bool) -> Iterator[Reason]:
        """Yield what keeps a verdict from being reached."""
        judged = self.totals.passed + self.totals.failed + self.totals.accepted
        # A case that fails whatever is missing may yet have got worse because of what is missing.
        errors = self.totals.incomplete if compared else self.totals.errors
        if errors > self.options.max_errors:
            because = f": {self.lacking}" if self.lacking else ""
            message = f"{_cases(errors)} of {self.totals.cases} could not be measured{because}"
            yield Reason(severity="incomplete", message=message)
        elif errors:
            message = f"{_cases(errors)} could not be measured, which gate.max_errors allows"
            yield Reason(severity="warns", message=message)
        if not judged and self.totals.errors <= self.options.max_errors:
            yield Reason(severity="incomplete", message="no case was judged by any criterion")
        used = {group.group.criterion for group in self.groups}
        measured = {group.group.criterion for group in self.groups if group.value is not None}
        for name, floor in self.options.min_score.items():
            if name in used - measured:
                message = f"{name} measured nothing, and a mean of {floor:g} is required"
                yield Reason(severity="incomplete", message=message)
        if errors <= self.options.max_errors:
            yield from self._incomplete_floors()

    def _incomplete_floors(self) -> Iterator[Reason]:
        """Yield the means with a floor of which more is missing than may be."""
        for group in self.groups:
            floor = self.options.min_score.get(group.group.criterion)
            if floor is not None and group.incomplete > self.options.max_errors:
                message = (
                    f"{_named(group.group)} could not be measured on {_cases(group.incomplete)}, "
                    f"and a mean of {floor:g} is required"
                )
                yield Reason(severity="incomplete", message=message, group=group.group)


def _loosens(found: Sequence[str]) -> Reason:
    message = f"this change loosens what it is judged by: {_listed([*found])}"
    return Reason(severity="warns", message=message)


def _flipped(comparison: Comparison, delta: Delta) -> str:
    """Return the cases of a group that got worse, as the end of a sentence."""
    names = [
        repr(change.case)
        for change in comparison.changes
        if change.group == delta.group
        and not change.excused
        and (change.certain or change.suspected or change.change == "dropped")
    ]
    return f" ({_listed(names)})" if names else ""


def _at_most(floor: Floor, form: str) -> str:
    """Return how high the share may be, where that is not plain."""
    return "" if floor.certain or not floor.interval else f", at most {floor.interval[1]:{form}}"


def _moved(delta: Delta) -> str:
    if delta.value is None or delta.baseline is None or delta.effect is None:
        return ""
    if delta.outcome == "regressed":
        return f" by {plain(abs(delta.effect))}, from {plain(delta.baseline)}"
    return f" from {plain(delta.baseline)} to {plain(delta.value)}"


def _gone(thing: Vanished) -> str:
    where = f" on {thing.where}" if thing.where else ""
    return f"{thing.kind} {thing.name!r}{where}"


def _named(key: GroupKey) -> str:
    return f"{key.criterion} on {key.evalset} with {key.agent}"


def _cases(count: int) -> str:
    return f"{count} case{'' if count == 1 else 's'}"


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:_MAX_NAMED])
    return f"{shown} and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else shown
