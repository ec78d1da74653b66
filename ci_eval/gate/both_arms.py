"""Tests of the change against the merge base, whose agents were run in the same job: both arms.

Runs of two days differ by more than their trials do: the provider, the load and the data behind
tools change.  Stored runs come from other days, so here they only raise a doubt.  The comparison of
the change with the merge base decides: both are run within minutes, and a bad day affects both.

A doubt never makes the final test less strict: under "nothing got worse", a drop is reported only
if it is in doubt *and* the test of the arms rejects, so the rate of that test is an upper bound.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property

from ci_eval.gate.between_runs import BetweenRuns, between_runs
from ci_eval.gate.case_pairs import Pair
from ci_eval.gate.hard_break import MAX_CONFIRMING, Breaks, always, grew_in_few, was_fixed, worse
from ci_eval.gate.mean_drop import Drifts
from ci_eval.gate.pairing import Group
from ci_eval.run_files.score_column import Column
from ci_eval.run_files.score_table import Columns
from ci_eval.stats.permutation import Permuted, difference, mean_of, permute
from ci_eval.stats.sequential import SPENT, levels

LOOKS = ((1, 1), (2, 2), (4, 4))
"""Number of rounds of the change and of the merge base at each look."""
TOGETHER, APART = 0.1, 0.1
"""P-values up to which stored runs raise a doubt if an agent has several criteria: that all of them
combined fell, and that one fell by more than the others (shared among all hypotheses)."""
GAINED, UNDONE = 0.1, (0.5, 0.1)
"""P-value up to which the nearest stored run counts as better than the earlier ones; then, p-values
up to which a hypothesis is in doubt against that run alone: shared among all hypotheses, and the
maximum for one.  A change that undoes a gain of the base branch looks as good as most stored runs,
so only the nearest run reveals it."""
FILTERED = 1.25
"""Factor by which the rate of the final tests may be larger, because a doubt comes first.  If the
stored runs are of the same quality as the merge base, only one unchanged run in five reaches the
tests; `benchmarks/gate.py` measures the rate of both together."""
_STEPS = ((1, 0), (2, 0), (3, 1))
"""Further trials of a suspected case with the change and with the merge base, step by step; then as
many as prove it.  A case that failed by chance is more likely to pass with the change than to fail
with the merge base, so trials of the change alone clear most cases."""
_SOLID = 0.8
"""Share of the stored trials that a case must have passed to be suspected, unless it passed in all
trials since a fix, which this change may undo."""
_GRID = 500
"""Number of steps of the grid of probabilities."""
_ABOVE = 1.01
"""Factor by which the largest value may exceed the value at the nearest point of the grid."""


@dataclass(frozen=True)
class ArmDrops(Drifts):
    """The drops that stored runs suggest and the merge base confirms.

    `groups` are compared with the stored runs; `rounds` is the number of looks at both arms.
    """

    # Against stored runs, then at each look except the last.
    shared_doubt = (0.22, 0.8, 0.15)
    most_doubt = (0.18, 0.4, 0.1)

    arms: Sequence[Group] = ()
    """The same groups, compared with the merge base."""
    nearest: Columns = field(default_factory=Columns)
    """The values of the nearest stored run."""
    earlier: Columns = field(default_factory=Columns)
    """The values of the other stored runs."""
    is_stored: bool = True
    """Whether `groups` are compared with stored runs, not with the merge base itself."""

    @cached_property
    def days(self) -> list[BetweenRuns]:
        """Nothing: both arms, which decide, see the same day."""
        return [BetweenRuns(0.0, 1, 1)] * len(self.groups)

    @property
    def visible(self) -> bool:
        """True: after the last look, a drop differs from noise in any suite."""
        return True

    def _look(self, look: int, draws: int) -> list[Permuted]:
        if look:
            change, base = LOOKS[look - 1]
            return self._with_mean(self._permuted(self.arms, draws, change - 1, base))
        tests = self._permuted(self.groups, draws)
        return self._with_mean(self._with_days(tests, lambda each: each.spread))

    @cached_property
    def _stored_days(self) -> list[BetweenRuns]:
        return [*map(between_runs, self.groups)]

    def _with_days(
        self, tests: list[Permuted], spread: Callable[[BetweenRuns], float]
    ) -> list[Permuted]:
        """Return the tests with what days add, if there are several criteria.

        A drop of one of them beyond a bad day shows beside the others (`_apart`); for a single
        criterion, what days add would hide it.
        """
        if not self.together:
            return tests
        return [
            test.with_noise(spread(each), each.freedom, draws=self.draws)
            for test, each in zip(tests, self._stored_days, strict=True)
        ]

    def _with_mean(self, tests: list[Permuted]) -> list[Permuted]:
        """Return the tests, followed by the test of the combined hypothesis if there is one."""
        if not self.together:
            return tests
        shared = [tests[number] for number in self.together if tests[number].others is not None]
        return [*tests, mean_of(shared) if shared else tests[self.together[0]]]

    def _permuted(
        self, groups: Sequence[Group], draws: int, look: int = 0, before: int | None = None
    ) -> list[Permuted]:
        known = [number for number, each in enumerate(groups) if each.pairs]
        samples = [groups[number].samples(look, before) for number in known]
        found = [Permuted(0.0, None, complete=True)] * len(groups)
        for number, test in zip(known, permute(samples, draws=draws) if known else (), strict=True):
            found[number] = test
        return found

    def _limits(self, look: int) -> list[float]:
        limits = super()._limits(look)
        return [*limits[:-1], TOGETHER] if look == 0 and self.together else limits

    def _doubtful(self, look: int, tests: Sequence[Permuted]) -> list[bool]:
        if look == 0 and not self.is_stored:
            return [True] * len(tests)
        doubtful = super()._doubtful(look, tests)
        if look:
            return doubtful
        return [*map(any, zip(doubtful, self._apart(tests), self._undone(), strict=True))]

    def _apart(self, tests: Sequence[Permuted]) -> Iterator[bool]:
        """Yield, for each hypothesis, whether one criterion fell by more than the others.

        A day moves all criteria alike, so their difference shows what the day hides.
        """
        for number, group in enumerate(self.groups):
            others = [tests[each] for each in self.together if each != number]
            if number in self.together and others:
                test = difference(tests[number], mean_of(others))
                yield test.lower <= APART / self.size and -test.observed >= group.max_drop
            else:
                yield False
        if self.together:
            yield False

    def _undone(self) -> Iterator[bool]:
        """Yield, for each hypothesis, whether the change seems to undo a gain of the base."""
        if not self.earlier.groups:
            yield from [False] * self.size
            return
        limit = min(UNDONE[0] / self.size, UNDONE[1])
        nearest = [_against(each, self.nearest) for each in self.groups]
        gained = [
            _against(replace(group, now=near.before), self.earlier)
            for group, near in zip(self.groups, nearest, strict=True)
        ]

        def tests(groups: Sequence[Group]) -> list[Permuted]:
            found = self._permuted(groups, self.draws)
            # Each comparison is between about two days.
            return self._with_mean(self._with_days(found, lambda each: math.sqrt(2) * each.day))

        rows = zip(tests(gained), tests(nearest), self._least(), strict=True)
        for gain, drop, least in rows:
            has_gained = gain.upper <= GAINED and gain.observed >= least
            yield has_gained and drop.lower <= limit and -drop.observed >= least

    def _level(self, share: float) -> float:
        if self.rounds == 0:
            return 0.0  # stored runs alone decide nothing
        if self.gate.never_confirms:
            return share  # there is no other look
        variances = tuple(1 / change + 1 / base for change, base in LOOKS)
        rate = share * FILTERED if self.is_stored else share
        doubts = tuple(self.doubt(look, self.size) for look in range(1, len(LOOKS)))
        return levels(variances, SPENT, rate, doubts)[self.rounds - 1]


def _against(group: Group, columns: Columns) -> Group:
    """Return a group compared with `columns` instead of the baseline."""
    name = group.key.agent, group.key.evalset, group.key.criterion
    before = columns.groups.get(name, Column(group.now.cases))
    return replace(group, before=before, beside=Column())


def looks_taken(arms: Sequence[Group]) -> int:
    """Return the number of looks for which there are enough rounds of the merge base."""
    drawn = max((int(each.before.units.max(initial=0)) for each in arms), default=0)
    return sum(base <= drawn for _, base in LOOKS)


def arm_breaks(groups: Sequence[Group], arms: Sequence[Group], rate: float) -> list[Breaks]:
    """Return the breaks of each of the `groups`, confirmed by its counterpart in `arms`.

    If a case fails with probability p in both arms, the change fails all n times and the merge base
    at most f of m times with probability `unlikely(n, m, f)` at most.  Stored runs do not count,
    because they come from other days.  The numbers of trials follow a plan, so the probability of
    this outcome for any of N unchanged cases is at most N times as high.
    """
    return [
        _ArmCount(group, arm, rate / len(groups)).breaks()
        for group, arm in zip(groups, arms, strict=True)
    ]


@cache
def unlikely(failed: int, tried: int, failed_before: int) -> float:
    """Return the highest probability of this outcome for any failure rate, equal in both arms.

    The change fails all of `failed` trials, the merge base at most `failed_before` of `tried`.
    """
    chances = (step / _GRID for step in range(1, _GRID))
    found = max(
        p**failed
        * math.fsum(
            math.comb(tried, count) * p**count * (1 - p) ** (tried - count)
            for count in range(failed_before + 1)
        )
        for p in chances
    )
    return min(found * _ABOVE, 1.0)


@dataclass(frozen=True)
class _ArmCount:
    """The cases of one group that seem to be broken, and their results with the merge base."""

    group: Group
    arm: Group
    level: float

    @cached_property
    def _broken(self) -> Mapping[str, Pair]:
        """The cases that fail in this run and usually passed before, or always did since a fix."""
        group = self.group
        if group.facts.informational and not grew_in_few(group):
            return {}
        fails = group.now.failing(group.facts)[group.pairs.rows]
        # Only these can be broken: if all values of a case are bad, all fail or their mean fell.
        chosen = group.pairs.where(fails | (group.differences < 0))
        return {case: pair for case, pair in chosen.items() if self._is_broken(pair)}

    def _is_broken(self, pair: Pair) -> bool:
        passed = pair.before.measured - self.group.failures(pair.before.observations)
        is_solid = passed >= _SOLID * pair.before.measured or was_fixed(self.group, pair)
        return is_solid and always(pair, lambda value: self._is_bad(pair, value))

    def _is_bad(self, pair: Pair, value: float) -> bool:
        counts = self.group.steady or (self.group.barely_differs and not pair.before.varied)
        return (counts and worse(self.group, pair, value)) or not self.group.passed(value)

    def _base(self, case: str, pair: Pair) -> tuple[int, int]:
        """Return the number of failed trials of the merge base, and of all its trials."""
        cell = self.arm.before.get(case)
        values = (*cell.observations, *cell.confirming) if cell else ()
        return sum(self._is_bad(pair, value) for value in values), len(values)

    def breaks(self) -> Breaks:
        """Return the findings, and the trials that would settle them."""
        suspects, in_base = {}, set()
        for case, pair in self._broken.items():
            failed, tried = self._base(case, pair)
            if failed and 2 * failed >= tried:
                in_base.add(case)
            else:
                suspects[case] = pair
        bounds = {case: self._bound(case, pair) for case, pair in suspects.items()}
        return Breaks(
            group=self.group,
            suspects=suspects,
            p_value=min(bounds.values(), default=1.0),
            level=self.level,
            proven=frozenset(case for case, bound in bounds.items() if bound <= self.level),
            in_base=frozenset(in_base),
            draws={
                case: more
                for case, pair in suspects.items()
                if bounds[case] > self.level and any(more := self._more(case, pair))
            },
        )

    def _bound(self, case: str, pair: Pair, more: int = 0) -> float:
        """Bound the probability of a case like this one, with `more` trials of each arm."""
        failed, tried = self._base(case, pair)
        bad = pair.now.measured + len(pair.now.confirming)
        return min(len(self.group.all_pairs) * unlikely(bad + more, tried + more, failed), 1.0)

    def _more(self, case: str, pair: Pair) -> tuple[int, int]:
        """Return the numbers of trials of the change and of the merge base to draw next."""
        cell = self.arm.before.get(case)
        first = len(pair.now.units[0]) if pair.now.units else 0
        held = pair.now.confirmations + pair.now.measured - first
        base = cell.confirmations + cell.measured if cell else 0
        for change, other in _STEPS:
            if held < change or base < other:
                return max(change - held, 0), max(other - base, 0)
        for count in range(1, MAX_CONFIRMING - held):
            if self._bound(case, pair, count) <= self.level:
                return count, count
        return 0, 0
