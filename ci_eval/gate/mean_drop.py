"""The guard against drift: many cases a little worse.

For each criterion, evalset and agent, and for the mean over all of them, "nothing got worse" is a
hypothesis.  The hypotheses are tested by permutation and corrected together.  If further rounds of
repeats were drawn, the hypotheses in doubt are tested again with all rounds.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from ci_eval.config.config_schema import GateOptions
from ci_eval.gate.between_runs import BetweenRuns, between_runs
from ci_eval.gate.pairing import Group
from ci_eval.run_files.score_cell import MEASURED
from ci_eval.stats.effective_test_count import effective_size
from ci_eval.stats.intervals import holm
from ci_eval.stats.permutation import Permuted, Samples, mean_of, permute
from ci_eval.stats.sequential import levels, spending

_FEWEST_DRAWS, _MOST_DRAWS = 9_999, 199_999
_PRECISION = 20
"""Minimum number of draws expected below the smallest p-value that must be resolved."""


@dataclass(frozen=True)
class Finding:
    """The result for one hypothesis."""

    p_value: float
    level: float
    """The p-value must not exceed this."""
    worse: bool
    """Whether the test finds that it got worse."""
    better: bool
    """Whether it finds an improvement; False if values are missing or growth is tolerated."""
    in_doubt: bool
    """Whether another look is worth its cost."""
    effect: float
    """Mean difference at the last look, as a share of the scale; below 0 is worse."""


@dataclass(frozen=True)
class Drifts:
    """All hypotheses of one run, tested together."""

    shared_doubt: ClassVar[Sequence[float]] = (0.3, 0.1)
    """P-values up to which a hypothesis is in doubt at each look, shared among all hypotheses."""
    most_doubt: ClassVar[Sequence[float]] = (0.15, 0.06)
    """The maximum for a single hypothesis."""

    groups: Sequence[Group]
    """The tested groups of one tier."""
    gate: GateOptions
    rounds: int
    """How many further rounds of repeats were drawn."""
    rate: float
    """The probability at which noise may be reported as a drift."""

    @property
    def looks(self) -> int:
        """The maximum number of looks."""
        return max(self.gate.looks, self.rounds + 1)

    @cached_property
    def days(self) -> list[BetweenRuns]:
        """What days add to the mean of each group, if stored runs decide."""
        return [*map(between_runs, self.groups)]

    @cached_property
    def _first(self) -> list[Samples]:
        """The samples of each group at the first look."""
        return [each.samples(0) for each in self.groups]

    @cached_property
    def together(self) -> list[int]:
        """The indices of the groups in the combined hypothesis; empty if there is none."""
        bounded = [n for n, each in enumerate(self.groups) if each.facts.interval]
        return bounded if len(bounded) > 1 else []

    @property
    def size(self) -> int:
        """The number of hypotheses."""
        return len(self.groups) + bool(self.together)

    @property
    def visible(self) -> bool:
        """Whether there are enough cases to tell any drift from noise."""
        ways = max((each.exchanges for each in self.groups), default=1)
        return ways * self.rate / max(self.size, 1) >= 1

    def found(self) -> tuple[list[Finding], Finding | None]:
        """Return the finding for each group, and for their combined mean."""
        if not self.groups:
            return [], None
        doubted = [True] * self.size
        tests: list[Permuted] = []
        for look in range(self.rounds + 1):
            tests = self._look(look, self.draws)
            if look < self.rounds:
                # A hypothesis that was not in doubt at an earlier look is not tested again.
                now = self._doubtful(look, tests)
                doubted = [yes and doubtful for yes, doubtful in zip(doubted, now, strict=True)]
        findings = list(self._findings(tests, doubted))
        return findings[: len(self.groups)], findings[-1] if self.together else None

    @property
    def draws(self) -> int:
        """The number of exchanges to draw if there are too many to enumerate."""
        wanted = math.ceil(_PRECISION * self.size / self.rate)
        return min(max(wanted, _FEWEST_DRAWS), _MOST_DRAWS)

    def _doubtful(self, look: int, tests: Sequence[Permuted]) -> list[bool]:
        """Return, for each hypothesis, whether its `tests` leave it in doubt."""
        rows = zip(tests, self._limits(look), self._least(), strict=True)
        return [
            test.lower <= limit and -test.observed >= least and test.observed < 0
            for test, limit, least in rows
        ]

    def _limits(self, look: int) -> list[float]:
        """Return the p-values up to which the hypotheses are in doubt at a look."""
        return [self.doubt(look, self.size)] * self.size

    def doubt(self, look: int, size: int) -> float:
        """Return the p-value up to which one of `size` hypotheses is in doubt at a look."""
        place = min(look, len(self.shared_doubt) - 1)
        return min(self.shared_doubt[place] / size, self.most_doubt[place])

    def _look(self, look: int, draws: int) -> list[Permuted]:
        samples = [each.samples(look) for each in self.groups] if look else self._first
        tests = permute(samples, draws=draws)
        if any(each.day for each in self.days):
            tests = [
                test.with_noise(each.spread, each.freedom, draws=draws)
                for test, each in zip(tests, self.days, strict=True)
            ]
        return [*tests, mean_of([tests[n] for n in self.together])] if self.together else tests

    def _least(self) -> Iterator[float]:
        """Yield the smallest relevant drop of each hypothesis, as a share of the scale."""
        # The samples already exclude tolerated growth.
        for each in self.groups:
            yield each.max_drop if each.facts.max_growth is None else 0.0
        if self.together:
            yield self.gate.max_drop

    def _can_gain(self) -> Iterator[bool]:
        """Yield, for each hypothesis, whether an improvement could be detected."""
        # Missing values count as the best possible, and samples with tolerated growth are shifted.
        yield from (each.complete and each.facts.max_growth is None for each in self.groups)
        if self.together:
            yield all(self.groups[number].complete for number in self.together)

    def _findings(self, tests: Sequence[Permuted], doubted: Sequence[bool]) -> Iterator[Finding]:
        p_values = [test.lower if yes else 1.0 for test, yes in zip(tests, doubted, strict=True)]
        shared = [
            (group.key.agent, each.day) for group, each in zip(self.groups, self.days, strict=True)
        ]
        worth = effective_size(self._first, self.together, self.rate, shared)
        worse = holm(p_values, self.rate, self._level, worth)
        better = holm([test.upper for test in tests], self.rate)
        last = self._doubtful(self.rounds, tests)
        in_doubt = [yes and doubtful for yes, doubtful in zip(doubted, last, strict=True)]
        rows = zip(tests, in_doubt, worse, better, self._least(), self._can_gain(), strict=True)
        for test, doubtful, down, up, least, can_gain in rows:
            drop = -test.observed
            counts = drop >= least and drop > 0
            yield Finding(
                p_value=test.lower,
                level=down.level,
                worse=down.rejected and counts,
                better=can_gain and up.rejected and -drop >= least,
                in_doubt=doubtful and not (down.rejected and counts),
                effect=test.observed,
            )

    def _level(self, share: float) -> float:
        """Return the p-value that rejects a hypothesis with this share of the rate."""
        if self.looks == 1:
            return share
        looks = range(self.looks)
        doubts = tuple(self.doubt(look, self.size) for look in looks[:-1])
        old = self._old_runs()
        variances = tuple(1 / (look + 1) + 1 / old for look in looks)
        return levels(variances, spending(self.looks), share, doubts)[self.rounds]

    def _old_runs(self) -> float:
        """Return the average number of baseline runs per round."""
        first = before = 0
        for each in self.groups:
            rows, rows_before = each.pairs.rows, each.pairs.rows_before
            unmeasured = each.now.units[rows] == 0
            first += int(each.now.firsts[rows].sum() + unmeasured.sum())
            before += int(each.before.counts(MEASURED)[rows_before].sum())
        return max(before / max(first, 1), 1.0)
