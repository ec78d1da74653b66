"""All observations of one case under one criterion."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ci_eval.records.cases import Status
from ci_eval.records.results import CriterionFacts

MEASURED, LOST, CONFIRMING, UNCONFIRMED, SKIPPED = range(5)
"""Kinds of observations: a value, an error, both for confirming trials, and not applicable."""
KINDS = 8
"""The code of an observation is its kind plus this times its unit (a run, or a round of a run)."""


@dataclass(eq=False, slots=True)
class Cell:
    """All observations of one case under one criterion; nothing modifies it."""

    units: tuple[tuple[float, ...], ...] = ()
    """The measured values, grouped by run and rerun round: repeats of one group may be
    correlated."""
    confirming: tuple[float, ...] = ()
    """The values of confirming trials."""
    unconfirmed: int = 0
    """The number of confirming trials that ended in an error."""
    lost: tuple[int, ...] = ()
    """The group of each observation that ended in an error."""
    skipped: int = 0

    @property
    def errors(self) -> int:
        """The number of observations that ended in an error."""
        return len(self.lost)

    @property
    def confirmations(self) -> int:
        """The number of confirming trials, including those that ended in an error."""
        return len(self.confirming) + self.unconfirmed

    @property
    def observations(self) -> Sequence[float]:
        """All measured values, without those of confirming trials."""
        if len(self.units) == 1:
            return self.units[0]
        return [value for unit in self.units for value in unit]

    @property
    def measured(self) -> int:
        """The number of measured values."""
        return sum(map(len, self.units))

    @property
    def value(self) -> float | None:
        """The mean of the measured values; exact if they are all equal."""
        values = self.observations
        return mean(values) if values else None

    @property
    def varied(self) -> bool:
        """True if the observations differ."""
        return len({*self.observations}) > 1

    def lacks(self, facts: CriterionFacts) -> bool:
        """Return True if missing observations could change the findings on the case."""
        return bool(self.errors or (self.unconfirmed and self.status(facts) is Status.FAILED))

    def with_missing(self, value: float | None) -> float | None:
        """Return the mean with `value` for every missing observation.

        `None` if observations are missing and `value` is `None`, as for unbounded measures.
        """
        if not self.errors:
            return self.value
        if value is None:
            return None
        return mean([*self.observations, *[value] * self.errors])

    def status(self, facts: CriterionFacts) -> Status:
        """Return the status; failed if it fails whatever the missing observations would be."""
        if self.errors:
            best_mean = self.with_missing(best_of(facts))
            fails = self.measured and best_mean is not None and not facts.passes(best_mean)
            return Status.FAILED if fails else Status.ERROR
        value = self.value
        if value is None:
            return Status.SKIPPED
        return Status.PASSED if facts.passes(value) else Status.FAILED


def best_of(facts: CriterionFacts) -> float | None:
    """Return the best possible value; `None` if unbounded."""
    greatest = max if facts.better == "higher" else min
    return greatest(facts.interval) if facts.interval else None


def worst_of(facts: CriterionFacts) -> float | None:
    """Return the worst possible value; `None` if unbounded."""
    least = min if facts.better == "higher" else max
    return least(facts.interval) if facts.interval else None


def mean(values: Sequence[float]) -> float:
    """Return the mean of at least one value.

    Rounding does not move it: 0.1, 0.2 and 0.3 have the mean 0.2, and pass a threshold of 0.2.
    """
    if len(values) == 1 or len({*values}) == 1:
        return values[0]
    found = math.fsum(values) / len(values)
    short = float(f"{found:.15g}")
    return short if abs(short - found) <= 2 * math.ulp(found) else found


@lru_cache(maxsize=1024)
def cell_of(*observed: tuple[int, float]) -> Cell:
    """Return a cell with these observations; cached, because thousands of cases have equal ones."""
    if len(observed) == 1 and observed[0][0] == MEASURED:
        return Cell(((observed[0][1],),))  # the most common form
    units: list[list[float]] = []
    confirming, lost, others = list[float](), list[int](), [0] * KINDS
    for code, value in observed:
        unit, kind = divmod(code, KINDS)
        if kind == MEASURED:
            units += ([] for _ in range(unit + 1 - len(units)))
            units[unit].append(value)
        elif kind == CONFIRMING:
            confirming.append(value)
        elif kind == LOST:
            lost.append(unit)
        else:
            others[kind] += 1
    measured, confirmed = tuple(map(tuple, units)), tuple(confirming)
    return Cell(measured, confirmed, others[UNCONFIRMED], tuple(lost), others[SKIPPED])
