"""How often the gate finds a drop: the power of its test, computed beforehand.

Each of n cases is tried in one run now and was tried in m runs before.  The mean of the paired
differences has the variance

    (v + v' / m) / n,   v = between + within / repeats

where v is that of one run's mean over its repeats, and v' that of a run before: Miller, "Adding
Error Bars to Evals", arXiv 2411.00640, section 5, without the variance of the effect itself,
since the drop is taken to be the same in all cases.  The permutation test adds to the first v what
the drop makes of the spread of all runs of a case that it exchanges: drop² / m, or with k rounds of
repeats drop² / (k + m - 1).
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import NormalDist
from typing import TYPE_CHECKING

from ci_eval.run_files.score_table import Cell
from ci_eval.stats.sequential import levels, spending

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

MOST = 1_000_000
"""No more cases or repeats than these are thought of."""
_DRAWS = 20_000
_SEED = 20_260_101
_NORMAL = NormalDist()
_ONE_SIDED = _NORMAL.inv_cdf(0.95)


@dataclass(frozen=True)
class Noise:
    """How much a case varies though nothing changed; variances, in the criterion's own unit."""

    within: float
    """Of a single trial, among the repeats of one run."""
    between: float
    """Of what the repeats of one run have in common; 0 where it may be chance."""
    runs: bool
    """Whether several runs tell; else what they have in common is not known, and taken for 0."""

    def of_run(self, repeats: int) -> float:
        """Return the variance of the mean over the repeats of a run."""
        return self.between + self.within / repeats


def noise_of(cells: Iterable[Cell]) -> Noise | None:
    """Return how much the cases in `cells` vary, on average; `None` where nothing tells.

    It takes cases that were tried more than once, in one run or in several.
    """
    within, between = _Spread(), _Spread()
    repeats: list[int] = []
    for cell in cells:
        units = [unit for unit in cell.units if unit]
        repeats += map(len, units)
        for unit in units:
            within.add(unit)
        between.add([math.fsum(unit) / len(unit) for unit in units])
    trial, run = within.variance, between.variance
    if run is None:
        return None if trial is None else Noise(trial, 0.0, runs=False)
    if trial is None:
        # Where each case was tried once in a run, its variance is that of a trial.
        return Noise(run, 0.0, runs=True)
    alone = trial * math.fsum(1 / each for each in repeats) / len(repeats)
    # A ratio of two variances that are the same differs from 1 by so much in one of 20 samples.
    chance = 1 + _ONE_SIDED * math.sqrt(2 / between.freedom + 2 / within.freedom)
    return Noise(trial, run - alone if run > alone * chance else 0.0, runs=True)


class _Spread:
    """A variance, pooled over many small samples."""

    def __init__(self) -> None:
        self._squares: list[float] = []
        self.freedom = 0

    def add(self, values: Sequence[float]) -> None:
        if len(values) > 1:
            mean = math.fsum(values) / len(values)
            self._squares += [(value - mean) ** 2 for value in values]
            self.freedom += len(values) - 1

    @property
    def variance(self) -> float | None:
        return math.fsum(self._squares) / self.freedom if self.freedom else None


@dataclass(frozen=True)
class Setting:
    """One test of one criterion, as the gate makes it."""

    cases: int
    runs: int
    """How many runs of the baseline are pooled."""
    now: float
    """The variance of a case's mean in a round of repeats of the change."""
    before: float
    """The same in a run of the baseline."""
    rate: float
    """At which noise may be called a drop here: the share of the hypothesis."""
    least: float
    """Smallest drop that counts as a regression."""
    doubts: tuple[float, ...] = ()
    """Up to which p-value there is another look, for each look but the last."""

    @property
    def looks(self) -> int:
        """How often it is looked at what was drawn, at most."""
        return len(self.doubts) + 1

    def error(self, look: int, drop: float = 0.0) -> float:
        """Return the standard error at a look; with a `drop`, that which the test takes it for."""
        spread = self.now / (look + 1) + self.before / self.runs + drop**2 / (look + self.runs)
        return math.sqrt(spread / self.cases)

    def levels(self) -> tuple[float, ...]:
        """Return the p-value that must not be exceeded at each look."""
        if self.looks == 1:
            return (self.rate,)
        if self.now + self.before == 0:
            # Where nothing varies, only how much is pooled tells the looks apart.
            variances = tuple(1 / (look + 1) + 1 / self.runs for look in range(self.looks))
        else:
            variances = tuple(self.error(look) ** 2 for look in range(self.looks))
        return levels(variances, spending(self.looks), self.rate, self.doubts)

    def power(self, drop: float) -> float:
        """Return how probable it is that a drop of so much in each case is found."""
        if self.now + self.before == 0:
            return float(drop >= self.least and drop > 0)
        normal = _normals(self.looks)
        noise = 0.0 * normal[0]
        alive = noise == 0.0
        found = past = 0.0
        for look, level in enumerate(self.levels()):
            # Estimates at several looks are as a Brownian motion at times that are precisions.
            precision = self.error(look) ** -2
            noise += normal[look] * math.sqrt(precision - past)
            past = precision
            seen = drop + noise / precision
            taken_for = self.error(look, drop)
            bound = max(-_NORMAL.inv_cdf(level) * taken_for, self.least)
            found += float((alive & (seen >= bound)).mean())
            if look < len(self.doubts):
                doubt = max(-_NORMAL.inv_cdf(self.doubts[look]) * taken_for, self.least)
                alive &= (seen < bound) & (seen >= doubt)
        return found

    def detectable(self, power: float, most: float) -> float | None:
        """Return the drop that is found with `power`; `None` where none up to `most` is."""
        if self.power(most) < power:
            return None
        low, high = 0.0, most
        while high - low > 1e-4 * most:
            middle = (low + high) / 2
            low, high = (low, middle) if self.power(middle) >= power else (middle, high)
        return high

    def with_cases(self, cases: int) -> "Setting":
        """Return the same test of so many cases that vary alike."""
        return replace(self, cases=cases)


def fewest(good: Callable[[int], bool], most: int) -> int | None:
    """Return the smallest number up to `most` that is good, where greater ones are good, too."""
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
def _normals(looks: int) -> "NDArray[float64]":
    """Return normal deviates for each look, always the same; the first are spread evenly."""
    import numpy as np

    found = np.random.default_rng(_SEED).standard_normal((looks, _DRAWS))
    found[0] = [_NORMAL.inv_cdf((number + 0.5) / _DRAWS) for number in range(_DRAWS)]
    return found
