"""The power of the gate's test, computed in advance: how often it detects a drop.

Each of n cases is tried in one run now and was tried in m runs before.  The mean of the paired
differences has the variance

    (v + v' / m) / n,   v = between + within / repeats

where v is the variance of a run's mean over its repeats, and v' that of an earlier run: Miller,
"Adding Error Bars to Evals", arXiv 2411.00640, section 5, without the variance of the effect
itself, since the drop is assumed to be the same in all cases.  The variance between days does not
depend on the number of cases (`gate.between_runs`).  The permutation test exchanges all runs of a
case, and a drop increases their spread: it adds drop² / m to the first v, or, with k rounds of
repeats, drop² / (k + m - 1).
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist, fmean
from typing import TYPE_CHECKING

from ci_eval.run_files.score_cell import Cell
from ci_eval.stats.intervals import t_quantile
from ci_eval.stats.sequential import levels, spending

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

MOST = 1_000_000
"""Maximum number of cases or repeats considered."""
_DRAWS = 20_000
_SEED = 20_260_101
_NORMAL = NormalDist()
_ONE_SIDED = _NORMAL.inv_cdf(0.95)


@dataclass(frozen=True)
class Noise:
    """Variances of a case if nothing changed, in the criterion's own unit."""

    within: float
    """The variance of a single trial, among the repeats of a run."""
    between: float
    """The variance between runs; 0 if it may be chance."""
    runs: bool
    """Whether there are several runs; else `between` is unknown, and assumed to be 0."""

    def of_run(self, repeats: int) -> float:
        """Return the variance of the mean over the repeats of a run."""
        return self.between + self.within / repeats


def noise_of(cells: Iterable[Cell]) -> Noise | None:
    """Return the average variances of the cases in `cells`; `None` if unknown.

    They are known for cases with several trials, in one run or in several.
    """
    runs = [[unit for unit in cell.units if unit] for cell in cells]
    units = [unit for of_cell in runs for unit in of_cell]
    trial, freedom = _pooled(units)
    run, freedom_of_runs = _pooled([fmean(unit) for unit in of_cell] for of_cell in runs)
    if run is None:
        return None if trial is None else Noise(trial, 0.0, runs=False)
    if trial is None:
        # With one trial per run and case, the variance of runs is that of trials.
        return Noise(run, 0.0, runs=True)
    alone = trial * math.fsum(1 / len(unit) for unit in units) / len(units)
    # The ratio of two equal variances exceeds this in one of 20 samples.
    chance = 1 + _ONE_SIDED * math.sqrt(2 / freedom_of_runs + 2 / freedom)
    return Noise(trial, run - alone if run > alone * chance else 0.0, runs=True)


def _pooled(samples: Iterable[Sequence[float]]) -> tuple[float | None, int]:
    """Return the variance, pooled over many small samples, and its degrees of freedom."""
    squares: list[float] = []
    freedom = 0
    for values in filter(None, samples):
        mean = fmean(values)
        squares += [(value - mean) ** 2 for value in values]
        freedom += len(values) - 1
    return (math.fsum(squares) / freedom if freedom else None), freedom


@dataclass(frozen=True)
class Setting:
    """One test of one criterion, as the gate makes it."""

    cases: int
    runs: int
    """Number of pooled baseline runs."""
    now: float
    """The variance of a case's mean over a round of repeats, for the change."""
    before: float
    """The same for a run of the baseline."""
    rate: float
    """The error rate of this hypothesis: how often noise may count as a drop."""
    least: float
    """Smallest drop that counts as a regression."""
    day: float = 0.0
    """The standard deviation that days add to the difference of a run and its baseline."""
    freedom: int = 1
    """The degrees of freedom of that estimate."""
    doubts: tuple[float, ...] = ()
    """The p-value up to which there is another look, for each look but the last."""

    @property
    def looks(self) -> int:
        """Maximum number of looks at the data."""
        return len(self.doubts) + 1

    def error(self, look: int, drop: float = 0.0) -> float:
        """Return the standard error of trials at a look; with `drop`, as the test estimates it."""
        spread = self.now / (look + 1) + self.before / self.runs + drop**2 / (look + self.runs)
        return math.sqrt(spread / self.cases)

    def levels(self) -> tuple[float, ...]:
        """Return the significance level at each look."""
        if self.looks == 1:
            return (self.rate,)
        if self.now + self.before == 0:
            # Without variance, the looks differ only in the amount of data.
            variances = tuple(1 / (look + 1) + 1 / self.runs for look in range(self.looks))
        else:
            variances = tuple(self.error(look) ** 2 for look in range(self.looks))
        return levels(variances, spending(self.looks), self.rate, self.doubts)

    def power(self, drop: float) -> float:
        """Return the probability of detecting a `drop` in each case."""
        if self.now + self.before == 0:
            return float(drop >= self.least and drop > 0)
        normal = normals(self.looks)
        noise = 0.0 * normal[0]
        alive = noise == 0.0
        found = past = 0.0
        for look, level in enumerate(self.levels()):
            # Estimates at several looks are a Brownian motion whose time is their precision.
            precision = 1 / (self.error(look) ** 2 + self.day**2)
            noise += normal[look] * math.sqrt(precision - past)
            past = precision
            seen = drop + noise / precision
            bound = max(self._bound(level, look, drop), self.least)
            found += float((alive & (seen >= bound)).mean())
            if look < len(self.doubts):
                doubt = max(self._bound(self.doubts[look], look, drop), self.least)
                alive &= (seen < bound) & (seen >= doubt)
        return found

    def _bound(self, level: float, look: int, drop: float) -> float:
        """Return the estimate with the p-value `level`: trials and days combined in quadrature."""
        trials = self._quantile(level) * self.error(look, drop)
        days = t_quantile(1 - level, self.freedom) * self.day if self.day else 0.0
        return math.hypot(trials, days)

    @staticmethod
    def _quantile(level: float) -> float:
        """Return how many standard errors an estimate with the p-value `level` is below zero."""
        return -_NORMAL.inv_cdf(level)

    def detectable(self, power: float, most: float) -> float | None:
        """Return the drop that is detected with `power`; `None` if none up to `most` is."""
        if self.power(most) < power:
            return None
        low, high = 0.0, most
        while high - low > 1e-4 * most:
            middle = (low + high) / 2
            low, high = (low, middle) if self.power(middle) >= power else (middle, high)
        return high


def fewest(good: Callable[[int], bool], most: int) -> int | None:
    """Return the smallest good number up to `most`; all greater numbers must be good, too."""
    low, high = 0, 1
    while not good(high):
        if high >= most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if good(middle) else (middle, high)
    return high


@cache
def normals(looks: int) -> "NDArray[float64]":
    """Return normal deviates for each look, always the same; the first are evenly spread."""
    import numpy as np

    found = np.random.default_rng(_SEED).standard_normal((looks, _DRAWS))
    found[0] = [_NORMAL.inv_cdf((number + 0.5) / _DRAWS) for number in range(_DRAWS)]
    return found
