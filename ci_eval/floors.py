"""Floors: what a suite must reach, whatever it was before, judged with its uncertainty."""

from dataclasses import dataclass
from statistics import NormalDist

from ci_eval.config_file import GateOptions
from ci_eval.findings import GroupSummary, Totals
from ci_eval.stats import wilson_interval


@dataclass(frozen=True)
class Floor:
    """What was measured, beside what is required."""

    missed: bool
    """Whether it is below, as it was measured."""
    certain: bool
    """Whether it is below for certain, or uncertainty does not count."""
    interval: tuple[float, float] | None
    """What it may be, at the rate that the gate may err."""


def pass_rate(totals: Totals, required: float, gate: GateOptions) -> Floor:
    """Judge the share of cases that pass; what was not measured counts as passed."""
    judged = totals.passed + totals.failed + totals.errors
    hoped = totals.passed + totals.errors
    missed = judged > 0 and hoped < required * judged - 1e-9
    return _floor(hoped, judged, required, gate, missed=missed)


def mean(group: GroupSummary, required: float, gate: GateOptions) -> Floor:
    """Judge the mean of a criterion, above which it must not be where lower is better.

    A measure without an interval is judged as it was measured: nothing says how far what was not
    seen may lie.
    """
    value = group.value or 0.0
    higher = group.better == "higher"
    missed = group.value is not None and (value < required if higher else value > required)
    if group.interval is None:
        return Floor(missed, missed, None)
    low, high = group.interval
    share, bound = ((each - low) / (high - low) for each in (value, required))
    if not higher:
        share, bound = 1 - share, 1 - bound
    count = group.passed + group.failed
    return _floor(share * count, count, bound, gate, missed=missed)


def _floor(good: float, count: int, required: float, gate: GateOptions, *, missed: bool) -> Floor:
    rate = gate.false_block / max(len(gate.min_score) + (gate.min_pass_rate is not None), 1)
    interval = wilson_interval(good, count, -NormalDist().inv_cdf(rate))
    sure = interval is not None and interval[1] < required
    return Floor(missed, missed and (sure or gate.floors == "point"), interval)
