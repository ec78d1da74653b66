"""The guard against drift: many cases a little worse.

Each criterion on each evalset with each agent is a hypothesis "nothing got worse", and so is the
mean over all of them.  They are tested by permutation and corrected together.  Where rounds of
repeats were drawn because of a doubt, what is in doubt is looked at again with all of them.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from ci_eval.config.schema import GateOptions
from ci_eval.gate.pairing import Group
from ci_eval.stats.effective_tests import effective_size
from ci_eval.stats.intervals import holm
from ci_eval.stats.permutation import Permuted, mean_of, permute
from ci_eval.stats.sequential import levels, spending

DOUBT = (0.3, 0.1)
"""How often noise may be in doubt at the first and the second look, over all hypotheses."""
_MOST_DOUBT = (0.15, 0.06)
"""The same for one hypothesis."""
_FEWEST_DRAWS, _MOST_DRAWS = 9_999, 199_999
_PRECISION = 20
"""So many draws at least are below the p-value that must be told from others."""


@dataclass(frozen=True)
class Finding:
    """What was found of one hypothesis."""

    p_value: float
    level: float
    """What the p-value must not exceed."""
    worse: bool
    """Whether the test says that it got worse."""
    better: bool
    """Whether it says the opposite; never where something is missing, or growth is tolerated."""
    in_doubt: bool
    """Whether another look is worth its price."""
    effect: float
    """The mean difference at the last look, in shares of the scale; below 0 is worse."""


@dataclass(frozen=True)
class Drifts:
    """All hypotheses of one run, tested together."""

    groups: Sequence[Group]
    """Those that are tested, of one tier."""
    gate: GateOptions
    rounds: int
    """How many rounds of repeats were drawn again."""
    rate: float
    """At which noise may be called a drift."""

    @property
    def sequential(self) -> bool:
        """Whether there are, or may come, several looks."""
        return self.looks > 1

    @property
    def looks(self) -> int:
        """How many looks there are at most."""
        return max(self.gate.looks, self.rounds + 1)

    @cached_property
    def together(self) -> list[int]:
        """The numbers of the groups whose mean is a hypothesis of its own, if it is one."""
        bounded = [n for n, each in enumerate(self.groups) if each.facts.interval]
        return bounded if len(bounded) > 1 else []

    @property
    def visible(self) -> bool:
        """Whether there are enough cases for any drift to be told from noise."""
        ways = max((each.exchanges for each in self.groups), default=1)
        return ways * self.rate / max(len(self.groups) + bool(self.together), 1) >= 1

    def found(self) -> tuple[list[Finding], Finding | None]:
        """Return what was found of each group, and of the mean of them all."""
        if not self.groups:
            return [], None
        size = len(self.groups) + bool(self.together)
        wanted = math.ceil(_PRECISION * size / self.rate)
        draws = min(max(wanted, _FEWEST_DRAWS), _MOST_DRAWS)
        doubted = [True] * size
        tests: list[Permuted] = []
        for look in range(self.rounds + 1):
            tests = self._look(look, draws)
            if look < self.rounds:
                limit = self.doubt(look, size)
                # Who was not in doubt earlier was let go then.
                doubted = [
                    yes and test.lower <= limit and -test.observed >= least
                    for yes, test, least in zip(doubted, tests, self._least(), strict=True)
                ]
        findings = list(self._findings(tests, doubted))
        return findings[: len(self.groups)], findings[-1] if self.together else None

    def doubt(self, look: int, size: int) -> float:
        """Return the p-value up to which one of `size` hypotheses is in doubt at a look."""
        place = min(look, len(DOUBT) - 1)
        return min(DOUBT[place] / size, _MOST_DOUBT[place])

    def _look(self, look: int, draws: int) -> list[Permuted]:
        samples = [each.samples(look) for each in self.groups]
        tests = permute(samples, draws=draws)
        return [*tests, mean_of([tests[n] for n in self.together])] if self.together else tests

    def _least(self) -> Iterator[float]:
        """Yield the drop that counts, in shares, for each hypothesis."""
        # Where growth is tolerated, the samples are without it already.
        for each in self.groups:
            yield each.max_drop if each.facts.max_growth is None else 0.0
        if self.together:
            yield self.gate.max_drop

    def _can_gain(self) -> Iterator[bool]:
        """Yield, for each hypothesis, whether it could be told that it got better."""
        # What is missing counts as the best there is, and what may grow is not compared as it is.
        yield from (each.complete and each.facts.max_growth is None for each in self.groups)
        if self.together:
            yield all(self.groups[number].complete for number in self.together)

    def _findings(self, tests: Sequence[Permuted], doubted: Sequence[bool]) -> Iterator[Finding]:
        p_values = [test.lower if yes else 1.0 for test, yes in zip(tests, doubted, strict=True)]
        worth = effective_size([each.samples(0) for each in self.groups], self.together, self.rate)
        worse = holm(p_values, self.rate, self._level, worth)
        better = holm([test.upper for test in tests], self.rate)
        limit = self.doubt(self.rounds, len(tests))
        rows = zip(tests, p_values, worse, better, self._least(), self._can_gain(), strict=True)
        for test, p_value, down, up, least, can_gain in rows:
            drop = -test.observed
            counts = drop >= least and drop > 0
            yield Finding(
                p_value=test.lower,
                level=down.level,
                worse=down.rejected and counts,
                better=can_gain and up.rejected and -drop >= least,
                in_doubt=counts and not down.rejected and p_value <= limit,
                effect=test.observed,
            )

    def _level(self, share: float) -> float:
        """Return the p-value that rejects, for a hypothesis with this share of the rate."""
        if not self.sequential:
            return share
        size = len(self.groups) + bool(self.together)
        looks = range(self.looks)
        doubts = tuple(self.doubt(look, size) for look in looks[:-1])
        old = self._old_runs()
        variances = tuple(1 / (look + 1) + 1 / old for look in looks)
        return levels(variances, spending(self.looks), share, doubts)[self.rounds]

    def _old_runs(self) -> float:
        """Return how many runs of the baseline there are for one round, on average."""
        pairs = [pair for each in self.groups for pair in each.pairs.values()]
        first = sum(len(pair.now.units[0]) if pair.now.units else 1 for pair in pairs)
        return max(sum(pair.before.measured for pair in pairs) / max(first, 1), 1.0)
