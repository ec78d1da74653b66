"""The rules by which other tools block a pull request, and a plain test, on the same draws."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from populations import THRESHOLD, Agents, Observer, Values

from ci_eval.stats.intervals import t_quantile

FALSE_BLOCK = 0.02
"""The rate at which the plain test may block an unchanged agent."""


class Draws(NamedTuple):
    """The observations of one pull request and its baseline."""

    agents: Agents
    past: Sequence[Values]
    """Newest first."""
    now: Values
    after: Observer
    """Draws more."""
    before: Observer
    """Draws runs of the agent before the change, on the same day."""


def peers(draws: Draws) -> Iterator[str]:
    """Yield the rules that block this pull request, under any criterion."""
    now, newest = draws.now.mean(axis=0), draws.past[0].mean(axis=0)
    if ((newest >= THRESHOLD) & (now < THRESHOLD)).any():
        yield "any case flips"
    means = now.mean(axis=1)
    if (means < draws.agents.before.mean(axis=1) - 0.05).any():
        yield "mean 5 points below"
    if (means < 0.8).any():
        yield "mean below 0.8"
    if (means < newest.mean(axis=1)).any():
        yield "mean dropped"
    if t_test(now - np.mean([run.mean(axis=0) for run in draws.past], axis=0)):
        yield "paired t-test"


def t_test(differences: NDArray[np.float64]) -> bool:
    """Return True if any criterion dropped: Student's t at 2 %, corrected by Bonferroni.

    If all differences are equal, the criterion dropped if they are negative.
    """
    criteria, cases = differences.shape
    errors = differences.std(axis=1, ddof=1) / np.sqrt(cases)
    means = differences.mean(axis=1)
    return bool(((means < 0) & (means <= -_critical(criteria, cases - 1) * errors)).any())


@cache
def _critical(tests: int, freedom: int) -> float:
    return t_quantile(1 - FALSE_BLOCK / tests, freedom)
