"""Random agents of known true quality, and the observations of their runs, for simulations.

A suite has some cases and `CRITERIA` criteria.  Each case has its own chance under each criterion;
the chances of one case are correlated, and so are the outcomes of one trial.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

CRITERIA = 4
"""How many criteria judge each trial."""
THRESHOLD = 0.5
"""A case passes a criterion if the mean of its trials is at least this."""
_NORMAL = NormalDist()

Chances = NDArray[np.float64]
"""The chance that each criterion (rows) is met by each case (columns)."""
Values = NDArray[np.float64]
"""The measured values, from 0 to 1, by trial of a case, criterion and case."""


class Agents(NamedTuple):
    """The agent before a change, as observed by the baseline, and after it."""

    before: Chances
    after: Chances


@dataclass(frozen=True)
class Population:
    """How well an agent does in the cases of a suite."""

    chances: Callable[[Generator, int, float], Chances]
    """Draws the chances of so many cases; the chances of one case have this correlation."""
    levels: int = 1
    """A value is how many of so many parts were met, each with the same chance: 1 passes or
    fails, 4 is a rubric with five marks."""


def beta(rng: Generator, cases: int, correlation: float) -> Chances:
    """Draw chances from Beta(8, 2): the mean is 0.8, one case in seven lies below 0.67.

    A beta variable is a share of two gamma variables.  Gamma variables add up, so the criteria
    share a part of theirs, which correlates them and leaves each its distribution.
    """
    met, missed = (_gamma(rng, shape, cases, correlation) for shape in (8.0, 2.0))
    return met / (met + missed)


def _gamma(rng: Generator, shape: float, cases: int, correlation: float) -> Chances:
    own = rng.gamma(shape * (1 - correlation), size=(CRITERIA, cases))
    return own + rng.gamma(shape * correlation, size=cases) if correlation else own


def fixed(rng: Generator, cases: int, _: float) -> Chances:
    """Draw an agent that always does the same: it passes four fifths of the cases."""
    return (rng.random((CRITERIA, cases)) < 0.8).astype(float)


def flaking(rate: float) -> Callable[[Generator, int, float], Chances]:
    """Return a sampler of agents that pass, except in one trial of `1 / rate`."""
    return lambda _rng, cases, _: np.full((CRITERIA, cases), 1 - rate)


POPULATIONS: Mapping[str, Population] = {
    "noisy": Population(beta),
    "five marks": Population(beta, levels=4),
    "deterministic": Population(fixed),
    "flakes 1 in 300": Population(flaking(1 / 300)),
    "flakes 1 in 1000": Population(flaking(1 / 1000)),
}
"""Agents by their names in the table."""


# --- What changes -----------------------------------------------------------------------------


def _unchanged(chances: Chances) -> Agents:
    return Agents(chances, chances)


def _one_drops(points: float) -> Callable[[Chances], Agents]:
    def change(chances: Chances) -> Agents:
        after = chances.copy()
        after[0] = np.maximum(chances[0] - points, 0)
        return Agents(chances, after)

    return change


def _all_drop(chances: Chances) -> Agents:
    return Agents(chances, np.maximum(chances - 0.05, 0))


def _break(cases: int) -> Callable[[Chances], Agents]:
    def change(chances: Chances) -> Agents:
        before = chances.copy()
        before[0, :cases] = 1.0
        after = before.copy()
        after[0, :cases] = 0.0
        return Agents(before, after)

    return change


CHANGES: Mapping[str, Callable[[Chances], Agents]] = {
    "unchanged": _unchanged,
    "10 points in one criterion": _one_drops(0.10),
    "5 points in all four": _all_drop,
    "5 points in one criterion": _one_drops(0.05),
    "a solid case breaks": _break(1),
    "two solid cases break": _break(2),
}
"""The effects of a pull request, by their names in the table.

If one criterion drops, it is the first one, by that share of its chance in each case.  If cases
break, they are the first ones, which always passed that criterion and now never do.
"""


# --- What is observed -------------------------------------------------------------------------


class Observer:
    """Tries an agent: the outcomes of one trial have a Gaussian copula with `correlation`.

    `within` is the correlation of the trials of a case in one run: 0 draws them independently.
    """

    def __init__(
        self, chances: Chances, levels: int, correlation: float, *, within: float = 0.0
    ) -> None:
        self._limits = _limits(chances, levels)
        self._correlation = correlation
        self._within = within

    def observe(self, rng: Generator, trials: int) -> Values:
        """Return the values of `trials` trials of each case in one run."""
        hidden = self._hidden(rng, trials)
        if self._within:
            hidden = math.sqrt(1 - self._within) * hidden
            hidden += math.sqrt(self._within) * self._hidden(rng, 1)
        met: Values = (hidden[:, None] < self._limits).sum(axis=1) / len(self._limits)
        return met

    def _hidden(self, rng: Generator, trials: int) -> Values:
        _, criteria, cases = self._limits.shape
        own = math.sqrt(1 - self._correlation) * rng.standard_normal((trials, criteria, cases))
        shared: Values = math.sqrt(self._correlation) * rng.standard_normal((trials, 1, cases))
        return own + shared


def _limits(chances: Chances, levels: int) -> NDArray[np.float64]:
    """Return the hidden value below which each level is reached: normal quantiles of its chance."""
    ways = [
        math.comb(levels, k) * chances**k * (1 - chances) ** (levels - k) for k in range(levels + 1)
    ]
    reached = np.array([np.sum(ways[level:], axis=0) for level in range(1, levels + 1)])
    return np.reshape([_quantile(chance) for chance in reached.flat], reached.shape)


def _quantile(chance: float) -> float:
    if 0 < chance < 1:
        return _NORMAL.inv_cdf(chance)
    return math.inf if chance >= 1 else -math.inf
