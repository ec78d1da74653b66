"""The guard against hard breaks: cases that always passed and now always fail.

A case that passes with probability q passes m times before and fails n times now with probability
q^m (1 - q)^n, which is at most m^m n^n / (m + n)^(m + n) for any q.  So the number of such cases is
bounded by a sum of such chances, and a single break among many cases is only suspected.  More
trials of the suspects alone settle it: each failure makes chance less probable, and one pass clears
the case.  If history shows no variance at all, a flip is proof.

This assumes independent trials.  Where history shows that the repeats of a run are correlated, they
count as fewer trials.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import dropwhile
from operator import itemgetter

from ci_eval.config.config_schema import GateOptions
from ci_eval.gate.case_pairs import Pair
from ci_eval.gate.pairing import Group
from ci_eval.run_files.score_cell import CONFIRMING
from ci_eval.stats.intervals import at_least, holm, most_probable_break

SHARE = 0.1
"""This guard's share of `false_block` if drift can be detected, too."""
MAX_CONFIRMING = 50
"""Maximum number of trials drawn to confirm one suspicion."""
USUAL = 0.3
"""The largest p-value at which cases that seem to be broken are unusual."""
_FIRST = 2
"""Size of the first batch of confirming trials: most chance failures pass at least once in it, and
use no more of the budget."""
_STEADY_TRIALS = 3
"""Trials that must agree, if more can be drawn, before a steady history proves a break."""


@dataclass(frozen=True)
class Breaks:
    """The cases of one group that always passed and now always fail.

    If history shows no variance at all, or hardly any other case differs, these include cases that
    are always worse by a relevant amount.
    """

    group: Group
    suspects: Mapping[str, Pair]
    """Cases all of whose trials fail, including the confirming ones."""
    p_value: float
    level: float
    """The p-value must not exceed this."""
    proven: frozenset[str]
    """The suspects that are not noise."""
    in_base: frozenset[str] = frozenset()
    """Cases that broke since the stored runs, but with the merge base as well."""
    draws: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """The trials of the change and of the merge base to draw next, by case; none if none help."""

    @cached_property
    def suspected(self) -> frozenset[str]:
        """The suspects that may well be broken, although this is not proven.

        None if other cases flip, too, chance explains the suspects, and no further trial helps.
        """
        is_open = self.draws or not self._is_flaky
        if is_open or self.p_value <= USUAL:
            return frozenset(self.suspects) - self.proven
        return frozenset()

    @cached_property
    def explains_drop(self) -> bool:
        """Whether most of a drop that counts is due to suspects that more trials would settle."""
        group = self.group
        theirs = -math.fsum(group.differences[group.pairs.among(self.draws)].tolist())
        return group.drop < group.least or 2 * theirs >= group.drop * len(group.pairs)

    @cached_property
    def _is_flaky(self) -> bool:
        """Whether another case both passes and fails, over all runs."""
        pairs = self.group.all_pairs
        now, before = (each.outcomes(self.group.facts) for each in (pairs.now, pairs.before))
        passed, failed = (
            new[pairs.rows] + old[pairs.rows_before] for new, old in zip(now, before, strict=True)
        )
        return bool(((passed > 0) & (failed > 0) & ~pairs.among(self.suspects)).any())


def breaks(groups: Sequence[Group], gate: GateOptions, rate: float) -> list[Breaks]:
    """Return the breaks of each of the `groups`.

    The probability of reporting noise as a break in any of them is at most `rate`, except where
    history shows no variance.
    """
    with_threshold = max(sum(not each.facts.informational for each in groups), 1)
    counts = [_Count(group, gate, rate / with_threshold) for group in groups]
    judged = holm([each.p_value for each in counts], rate, size=with_threshold)
    return [
        Breaks(
            group=each.group,
            suspects=each.suspects,
            p_value=each.p_value,
            level=one.level,
            proven=each.proven(rejected=one.rejected),
            draws={case: (each.wanted, 0) for case in each.suspects if each.wanted},
        )
        for each, one in zip(counts, judged, strict=True)
    ]


@dataclass(frozen=True)
class _Count:
    """The number of cases in one group that seem to be broken."""

    group: Group
    gate: GateOptions
    level: float
    """The p-value that is sufficient if all others are large."""

    @cached_property
    def broken(self) -> Mapping[str, Pair]:
        """The cases that always passed and now always fail."""
        if self.group.facts.informational:
            return {}
        return {
            case: pair
            for case, pair in self.group.failing.items()
            if all(map(self.group.passed, pair.before.observations))
        }

    @cached_property
    def worse_steady(self) -> Mapping[str, Pair]:
        """The cases that are now always worse, if history never varied."""
        if not self.group.steady:
            return {}
        return {
            case: pair
            for case, pair in self.group.pairs.items()
            if len(pair.before.units) > 1 and always(pair, partial(worse, self.group, pair))
        }

    @cached_property
    def worse_alone(self) -> Mapping[str, Pair]:
        """The cases that are now always worse, if hardly any other differs; proves no break."""
        is_measure = self.group.facts.informational
        if not (grew_in_few(self.group) if is_measure else self.group.barely_differs):
            return {}
        return {
            case: pair
            for case, pair in self.group.pairs.items()
            if case not in self.broken
            and not pair.before.varied
            and always(pair, partial(worse, self.group, pair))
        }

    @cached_property
    def broken_again(self) -> Mapping[str, Pair]:
        """The cases that were fixed before this run and now always fail; proves no break."""
        if self.group.facts.informational:
            return {}
        cases = self.group.failing.items()
        return {
            case: pair for case, pair in cases if pair.before.varied and was_fixed(self.group, pair)
        }

    @property
    def suspects(self) -> Mapping[str, Pair]:
        return {**self.broken, **self._unprovable}

    @property
    def _unprovable(self) -> Mapping[str, Pair]:
        return {**self.worse_steady, **self.worse_alone, **self.broken_again}

    @cached_property
    def drawn(self) -> list[int]:
        """The distinct numbers of confirming trials, ascending."""
        counts = self.group.now.counts(CONFIRMING)[self.group.all_pairs.rows]
        return sorted({*counts.tolist()} - {0})

    @cached_property
    def wanted(self) -> int:
        """How many more trials of each suspect to draw next.

        A few at first; then as many as prove a single break if all of them fail.
        """
        may_draw = not self.gate.never_confirms and self.drawn in ([], [_FIRST])
        if not may_draw or not self.suspects:
            return 0
        held = max(self.drawn, default=0)
        counts = range(1, MAX_CONFIRMING + 1) if self.broken else ()
        # Two looks at the confirming trials share the level.
        needed = next(
            (each for each in counts if self._chance(1, each) * _looks(each) <= self.level), 0
        )
        if needed:
            return min(needed, _FIRST) if not held else max(needed - held, 0)
        trials = (pair.now.measured for pair in self._unprovable.values())
        return max(_STEADY_TRIALS - min(trials, default=_STEADY_TRIALS) - held, 0)

    @property
    def p_value(self) -> float:
        """The probability that this many cases broke by chance."""
        return self._judged[0]

    @cached_property
    def _judged(self) -> tuple[float, frozenset[str]]:
        """The p-value and the cases it covers."""
        if self.wanted:
            return 1.0, frozenset()
        # A case without its own confirming trials neither confirms nor refutes a suspicion.
        looks = self.drawn or [0]
        tests = []
        for drawn in looks:
            names = [
                case for case, each in self.broken.items() if len(each.now.confirming) >= drawn
            ]
            chance = self._chance(len(names), drawn) if names else 1.0
            tests.append((min(chance * len(looks), 1.0), frozenset(names)))
        return min(tests, key=itemgetter(0))

    @cached_property
    def _intraclass_correlation(self) -> float:
        """The intraclass correlation of the repeats of a baseline run, from 0 to 1.

        Computed from how much less often two trials of one run differ than two trials of different
        runs; 0 if this may be chance.
        """
        pairs = self.group.all_pairs
        sizes, passed = (
            pairs.before.sizes(facts)[pairs.rows_before] for facts in (None, self.group.facts)
        )
        several = (sizes > 0).sum(axis=1) > 1
        sizes, passed = sizes[several], passed[several]
        total, good = sizes.sum(axis=1), passed.sum(axis=1)
        within = int((passed * (sizes - passed)).sum())
        between = int((good * (total - good)).sum()) - within
        pairs_within = int((sizes * (sizes - 1)).sum()) // 2
        pairs_between = int((total * (total - 1)).sum()) // 2 - pairs_within
        if not between or not pairs_within:
            return 0.0
        expected = between / pairs_between * pairs_within
        found = 1 - within / expected
        return found if found > 2 * math.sqrt(1 / expected + 1 / between) else 0.0

    def _effective_trials(self, repeats: int) -> float:
        """Return the effective number of independent trials among the repeats of one run.

        By the design effect (Kish, "Survey Sampling", 1965, section 5.4).
        """
        return repeats / (1 + (repeats - 1) * self._intraclass_correlation) if repeats else 0.0

    @cached_property
    def _trial_counts(self) -> Counter[tuple[float, float, int]]:
        """The number of cases by their trials before, in further rounds and in the first round."""
        found: Counter[tuple[float, float, int]] = Counter()
        # Exempted cases could have broken, too: exempting one proves nothing about the others.
        pairs = self.group.all_pairs
        runs, rounds = pairs.before.sizes()[pairs.rows_before], pairs.now.sizes()[pairs.rows]
        alike = Counter(zip(*runs.T.tolist(), *rounds.T.tolist(), strict=True))
        for sizes, cases in alike.items():
            before = sum(map(self._effective_trials, sizes[: len(runs.T)]))
            first, *further = [*filter(None, sizes[len(runs.T) :])] or [0]
            found[before, sum(map(self._effective_trials, further)), first] += cases
        return found

    def _chance(self, broken: int, confirming: int) -> float:
        # Confirming trials belong to the same run as the first round.
        chances = [
            (many, most_probable_break(before, later + self._effective_trials(first + confirming)))
            for (before, later, first), many in self._trial_counts.items()
        ]
        return at_least(broken, chances)

    def proven(self, *, rejected: bool) -> frozenset[str]:
        drawn = bool(self.gate.never_confirms or self.drawn)
        steady = (
            case
            for case, pair in self.worse_steady.items()
            if drawn or pair.now.measured >= _STEADY_TRIALS
        )
        return frozenset(steady) | (self._judged[1] if rejected else frozenset())


def grew_in_few(group: Group) -> bool:
    """Return True if few cases alone raise the mean of a measure beyond its `max_growth`."""
    has_limit = group.facts.max_growth is not None
    return has_limit and group.barely_differs and group.drop >= group.least


def was_fixed(group: Group, pair: Pair) -> bool:
    """Return True if all trials passed since some stored run, and all failed before it."""
    runs = [(group.failures(values), len(values)) for values in reversed(pair.runs_before)]
    since = [*dropwhile(lambda run: run[0] == run[1], runs)]
    return 0 < len(since) < len(runs) and not any(failed for failed, _ in since)


def _looks(confirming: int) -> int:
    """Return the number of looks at the data that this number of confirming trials implies."""
    return 1 if confirming <= _FIRST else 2


def always(pair: Pair, bad: Callable[[float], bool]) -> bool:
    """Return True if every measurement of this run is `bad` and none is missing."""
    values = [*pair.now.observations, *pair.now.confirming]
    return bool(values) and not pair.now.errors and all(map(bad, values))


def worse(group: Group, pair: Pair, value: float) -> bool:
    """Return True if a value fails newly, or is lower than before by a relevant amount."""
    drop = group.sign * (pair.base - value)
    flipped = group.passed(pair.base) and not group.passed(value)
    return flipped or (drop > 0 and drop >= group.least)
