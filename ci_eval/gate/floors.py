"""Floors: absolute requirements on a suite, judged with their statistical uncertainty.

A floor blocks only if chance is ruled out: all floors of a run together block a suite whose true
values are at its floors in at most `gate.false_block` of runs, if its cases are independent.
Missing measurements count neither as good nor as bad: a floor is judged twice, with the best and
with the worst values that they could have had.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Self

from ci_eval.config.config_schema import GateOptions
from ci_eval.records.comparisons import GroupKey
from ci_eval.records.findings import GroupSummary, Reason, ReasonKind, ReasonSeverity, Totals
from ci_eval.run_files.report_phrases import named
from ci_eval.stats.intervals import exact_interval
from ci_eval.text.templates import counted, exact, percent, score

SEVERITIES: dict[str, ReasonSeverity] = {
    "fail": "blocks",
    "warn": "warns",
    "pass": "info",
    # Still in doubt after all reruns.
    "rerun": "warns",
}
"""ReasonSeverity of a reason, by the option's value."""

Level = Literal["met", "in_doubt", "missed"]
"""Reached; below, but possibly by chance; or below for certain."""
_ROUNDING = 1e-9
ALL_FAILED = 3
"""If at least this many cases all fail, chance is no excuse to pass."""


@dataclass(frozen=True)
class Floor:
    """A measured value and its requirement."""

    best: Level
    """The result if every missing value were the best possible."""
    worst: Level
    """The result if every missing value were the worst possible."""
    interval: tuple[float, float] | None
    """Confidence interval for the best possible result; the true value is above it with a
    probability of at most `Allowance.rate`."""

    @property
    def missed(self) -> bool:
        """True if it is below, whatever the missing values are."""
        return self.best != "met"

    @property
    def open(self) -> bool:
        """True if the result depends on the missing values."""
        return self.best != self.worst

    @property
    def certain(self) -> bool:
        """True if it is below for certain, or the gate ignores uncertainty."""
        return self.best == "missed"


@dataclass(frozen=True)
class Allowance:
    """How uncertain a value below its floor may be."""

    rate: float
    """Probability of blocking a suite whose true value is at the floor, at most."""
    point: bool
    """True if the measured value decides, whatever the uncertainty."""

    @classmethod
    def shared(cls, groups: Sequence[GroupSummary], gate: GateOptions) -> Self:
        """Divide `gate.false_block` equally among the floors (Bonferroni)."""
        means = sum(each.group.criterion in gate.min_score for each in groups)
        count = means + (gate.min_pass_rate is not None)
        return cls(gate.false_block / max(count, 1), gate.floors == "point")


def pass_rate(totals: Totals, required: float, allowed: Allowance) -> Floor:
    """Judge the pass rate; a case with an error may pass or fail."""
    judged = totals.judged
    best, worst = totals.passed + totals.errors, totals.passed
    level, interval = _level(best, judged, required, allowed)
    return Floor(level, _level(worst, judged, required, allowed)[0], interval)


def gated(group: GroupSummary) -> GroupSummary:
    """Return the summary over the cases that count for the gate: exempt ones do not."""
    return group.model_copy(update=dict(group.without_exempt or ()))


def mean(group: GroupSummary, required: float, allowed: Allowance) -> Floor:
    """Judge the mean of a criterion; if lower is better, `required` is an upper limit.

    If the range is unbounded, missing values may have been anything: the floor is then neither met
    nor missed.  If nothing is missing, the measured mean is judged.
    """
    higher = group.better == "higher"
    span = group.span
    if span is None and group.value is not None and not group.incomplete:
        span = (group.value, group.value)
    if span is None:
        return Floor("met", "missed" if group.incomplete else "met", None)
    best, worst = (span[1], span[0]) if higher else span
    if group.interval is None:
        levels = [_unbounded(each, required, higher=higher) for each in (best, worst)]
        return Floor(levels[0], levels[1], None)
    low, high = group.interval

    def share(value: float) -> float:
        found = (value - low) / (high - low)
        return found if higher else 1 - found

    count = group.passed + group.failed + group.errors
    level, interval = _level(share(best) * count, count, share(required), allowed)
    return Floor(level, _level(share(worst) * count, count, share(required), allowed)[0], interval)


def _unbounded(value: float, required: float, *, higher: bool) -> Level:
    return "missed" if (value < required if higher else value > required) else "met"


def _level(
    good: float, count: int, required: float, allowed: Allowance
) -> tuple[Level, tuple[float, float] | None]:
    good = min(max(good, 0.0), count)
    interval = exact_interval(good, count, allowed.rate)
    if not count or good >= required * count - _ROUNDING:
        return "met", interval
    sure = interval is not None and interval[1] < required
    return "missed" if sure or allowed.point else "in_doubt", interval


def reason(
    kind: ReasonKind, severity: ReasonSeverity, message: str, group: GroupKey | None = None
) -> Reason:
    """Return one sentence of a verdict."""
    return Reason(kind=kind, severity=severity, message=message, group=group)


# --- Messages -------------------------------------------------------------------------------


def of_pass_rate(
    totals: Totals, gate: GateOptions, allowed: Allowance, *, tolerated: bool
) -> Iterator[Reason]:
    """Yield the result of the pass rate.

    `tolerated`: no more is missing than `gate.max_errors` allows.  Otherwise there is no verdict.
    """
    if not totals.judged:
        return
    required = 1.0 if gate.min_pass_rate is None else gate.min_pass_rate
    floor, rate = pass_rate(totals, required, allowed), totals.pass_rate
    missing = f" and {totals.errors} could not be measured" if totals.errors else ""
    failed = f"{totals.failed} of {counted(totals.judged, 'case')} failed{missing}"
    if floor.missed and rate is not None:
        most = ""
        if floor.interval and not floor.certain:
            most = f", perhaps up to {percent(floor.interval[1], required)}"
        shown = f"pass rate {percent(rate, required)}, required {percent(required, rate)}"
        message = f"{failed} ({shown}{most})"
        all_failed = not totals.passed and totals.judged >= ALL_FAILED
        if most and all_failed and gate.on_inconclusive == "rerun":
            yield reason("floor", "incomplete", f"{message}: nothing passed")
        else:
            yield from _reasons(floor, message, gate, tolerated=tolerated)
    # Without a required rate, `max_errors` alone limits what may be missing.
    elif gate.min_pass_rate is not None and floor.open:
        low, high = totals.passed / totals.judged, 1 - totals.failed / totals.judged
        between = f"{percent(low, required)} and {percent(high, required)}"
        said = f"pass rate between {between}, required {percent(required)}"
        yield from _reasons(floor, f"{failed} ({said})", gate, tolerated=tolerated)


def of_means(
    groups: Sequence[GroupSummary], gate: GateOptions, allowed: Allowance, *, tolerated: bool
) -> Iterator[Reason]:
    """Yield the results of the means that have a floor."""
    for whole in groups:
        group = gated(whole)
        exempt = whole.passed + whole.failed - group.passed - group.failed
        required = gate.min_score.get(group.group.criterion)
        floor = None if required is None else mean(group, required, allowed)
        name, lost = named(group.group), counted(group.incomplete, "case")
        if floor and floor.missed and group.value is not None:
            left_out = [lost] if group.errors else []
            left_out += [counted(exempt, "exempt case")] if exempt else []
            without = f" without {' and '.join(left_out)}" if left_out else ""
            value = score(group.value, required)
            said = f"{name} has a mean of {value}{without}, required {exact(required)}"
        elif floor and floor.open:
            said = f"{name} could not be measured on {lost}, but a mean of {required:g} is required"
        else:
            continue
        yield from _reasons(floor, said, gate, tolerated=tolerated, group=group.group)


def _reasons(
    floor: Floor, message: str, gate: GateOptions, *, tolerated: bool, group: GroupKey | None = None
) -> Iterator[Reason]:
    """Yield the reason for a floor that is not met, or may not be."""
    doubt = SEVERITIES[gate.on_inconclusive]
    weights: dict[Level, str] = {"met": "", "in_doubt": doubt, "missed": "blocks"}
    if weights[floor.best] == "blocks":
        noise = "" if floor.certain else ": this may be noise"
        yield reason("floor", "blocks", f"{message}{noise}", group)
    elif weights[floor.worst] != "blocks":
        yield reason("floor", doubt, f"{message}: this may be noise", group)
    elif tolerated:
        yield reason("floor", "incomplete", message, group)
