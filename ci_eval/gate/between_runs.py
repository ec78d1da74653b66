"""Variance between runs, beyond what their trials explain, and changes of level among stored runs.

The provider, the load and the data behind tools differ from day to day, and move all cases of a run
together.  Exchanging trials within cases cannot show this.  So where stored runs alone decide, what
a day adds is estimated from them and included in tests and intervals.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean, variance
from typing import TYPE_CHECKING, NamedTuple

from ci_eval.gate.pairing import Group
from ci_eval.stats.intervals import t_quantile

if TYPE_CHECKING:
    from ci_eval.run_files.score_column import Floats

PRIOR_SHARE = 0.07
"""Standard deviation that a day is assumed to add to a mean, as a share of the standard deviation
of one trial that passes or fails: 0.028 for an agent that passes 80 %."""
PRIOR_RUNS = 12
"""The weight of this assumption, in stored runs."""
_LOST, _GAINED = 2.0, 3.0
"""Standard errors by which the nearest runs must be worse, or better, than the earlier ones to be a
new level.  A good day mistaken for a gain would make the next run look worse than it is."""


class BetweenRuns(NamedTuple):
    """What a day adds to the mean of a run."""

    day: float
    """Standard deviation, as a share of the scale; 0 if history shows no variance at all."""
    runs: int
    """Number of stored runs."""
    freedom: int
    """Degrees of freedom of the estimate, the prior's included."""

    @property
    def spread(self) -> float:
        """The standard deviation that days add to the difference of a run and its baseline."""
        return self.day * math.sqrt(1 + 1 / max(self.runs, 1))


def between_runs(group: Group) -> BetweenRuns:
    """Estimate what a day adds, from the stored runs of a group.

    The variance of the runs' means, less what their cases' own variances explain, is averaged with
    the prior, weighted by degrees of freedom (a scaled inverse chi-squared prior; Gelman and
    others, "Bayesian Data Analysis", 2013, section 3.2).
    """
    runs = group.stored_means
    if group.steady or not runs:
        return BetweenRuns(0.0, len(runs), PRIOR_RUNS)
    known = len(runs) - 1
    found = PRIOR_RUNS * _prior(group, runs)
    if known:
        found += known * (variance(map(fmean, runs)) - group.sampling)
    freedom = PRIOR_RUNS + known
    return BetweenRuns(math.sqrt(max(found, 0.0) / freedom), len(runs), freedom)


def with_days(group: Group) -> tuple[float, float] | None:
    """Return the 95 % confidence interval of the mean difference, widened by what days add."""
    if (interval := group.interval) is None:
        return None
    middle, half = math.fsum(interval) / 2, (interval[1] - interval[0]) / 2
    days = between_runs(group)
    half = math.hypot(half, t_quantile(0.975, days.freedom) * days.spread * group.scale)
    return middle - half, middle + half


def newest_level(group: Group) -> Group:
    """Return the group without the stored runs before the level changed.

    A merged drop or gain makes the runs before it a wrong baseline.  The split at which the nearest
    runs differ most from the earlier ones is a change if the difference is too large for trials
    and days.
    """
    runs = group.stored_means
    if len(runs) < 2 or group.steady:
        return group
    means = [*map(fmean, runs)]
    noise = math.sqrt(_prior(group, runs) + group.sampling)
    if not noise:
        return group

    def distance(kept: int) -> float:
        gain = group.sign * (fmean(means[:kept]) - fmean(means[kept:]))
        size = math.sqrt(1 / kept + 1 / (len(runs) - kept)) * noise
        return gain / size / (_GAINED if gain > 0 else -_LOST)

    kept = max(range(1, len(runs)), key=distance)
    if distance(kept) <= 1:
        return group
    return replace(group, before=group.before.only(kept))


def _prior(group: Group, runs: "Sequence[Floats]") -> float:
    """Return the variance that a day is assumed to add to a run's mean; none if unbounded."""
    if group.facts.interval is None:
        return 0.0
    low = group.facts.interval[0] / (group.scale or 1.0)
    share = min(max(fmean(map(fmean, runs)) - low, 0.0), 1.0)
    return PRIOR_SHARE**2 * share * (1 - share)
