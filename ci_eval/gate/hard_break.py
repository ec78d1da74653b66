"""The guard against hard breaks: cases that were solid and now fail every time.

A case that passes with the probability q passes m times before and fails n times now with
q^m (1 - q)^n, which is at most m^m n^n / (m + n)^(m + n), whatever q is.  So the number of cases
that do is at most a sum of such chances, and a single one of many is only suspected.  More trials
of what is suspected, and of nothing else, tell: each that fails makes chance less probable, and
one that passes ends the suspicion.  Where history shows no variance at all, a flip is a flip.

All of that takes trials for independent of each other.  Where history shows that the repeats of a
run have something in common, they count as fewer.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from operator import itemgetter

from ci_eval.config.schema import GateOptions
from ci_eval.gate.pairing import Group, Pair
from ci_eval.stats.intervals import at_least, holm, most_probable_break

SHARE = 0.1
"""The share of `false_block` that this guard may spend, where drift can be seen, too."""
MAX_CONFIRMING = 50
"""How many trials may be drawn to confirm one suspicion."""
_FIRST = 2
"""So many of them are drawn at first: most of what only failed by chance passes once in them, and
takes no more of the budget."""
_STEADY_TRIALS = 3
"""So many trials must agree, where more can be drawn, before a steady history proves anything."""
_ALL = 1 << 30
"""A look after all rounds."""


@dataclass(frozen=True)
class Breaks:
    """The cases of one group that were solid and now fail every time.

    Where history shows no variance at all, those that are worse every time by what counts, too.
    """

    group: Group
    suspects: Mapping[str, Pair]
    """Every trial of theirs fails, those that were drawn to confirm it included."""
    p_value: float
    level: float
    """What the p-value must not exceed."""
    proven: frozenset[str]
    """Those of the suspects that are no noise."""
    wanted: int
    """How many more trials of each suspect are to be drawn next; 0 where none helps."""


def breaks(groups: Sequence[Group], gate: GateOptions, rate: float) -> list[Breaks]:
    """Return what broke in each of the `groups`.

    Noise is called a break in any of them at most at `rate`, but for what a history without any
    variance says.
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
            wanted=each.wanted,
        )
        for each, one in zip(counts, judged, strict=True)
    ]


@dataclass(frozen=True)
class _Count:
    """How many cases of one group seem to be broken."""

    group: Group
    gate: GateOptions
    level: float
    """The p-value that is small enough, were this the only one that is small."""

    @cached_property
    def broken(self) -> Mapping[str, Pair]:
        """The cases that passed every time and now fail every time."""
        if self.group.facts.informational:
            return {}
        return {
            case: pair
            for case, pair in self.group.pairs.items()
            if all(map(self.group.passed, pair.before.observations))
            and _always(pair, lambda value: not self.group.passed(value))
        }

    @cached_property
    def moved(self) -> Mapping[str, Pair]:
        """The cases that are worse every time, where nothing ever varied."""
        if not self.group.steady:
            return {}
        return {
            case: pair
            for case, pair in self.group.pairs.items()
            if len(pair.before.units) > 1 and _always(pair, partial(_worse, self.group, pair))
        }

    @property
    def suspects(self) -> Mapping[str, Pair]:
        return {**self.broken, **self.moved}

    @cached_property
    def drawn(self) -> list[int]:
        """How many trials were drawn to confirm suspicions, each number once."""
        counts = {len(pair.now.confirming) for pair in self.group.all_pairs.values()}
        return sorted(counts - {0})

    @cached_property
    def wanted(self) -> int:
        """How many more trials of each suspect are to be drawn next.

        At first they are few; then as many as prove one of them alone, were all to fail.
        """
        may_draw = self.gate.on_inconclusive == "rerun" and self.drawn in ([], [_FIRST])
        if not may_draw or not self.suspects:
            return 0
        held = max(self.drawn, default=0)
        counts = range(1, MAX_CONFIRMING + 1) if self.broken else ()
        # Two looks at what confirms share the level.
        needed = next(
            (each for each in counts if self._chance(1, each) * _looks(each) <= self.level), 0
        )
        if needed:
            return min(needed, _FIRST) if not held else max(needed - held, 0)
        trials = (pair.now.measured for pair in self.moved.values())
        return max(_STEADY_TRIALS - min(trials, default=_STEADY_TRIALS) - held, 0)

    @property
    def p_value(self) -> float:
        """How probable it is that so many cases broke by chance."""
        return self._judged[0]

    @cached_property
    def _judged(self) -> tuple[float, frozenset[str]]:
        """The p-value, and the cases that it speaks of."""
        if self.wanted:
            return 1.0, frozenset()
        # What was not drawn again for itself neither confirms what was, nor speaks against it.
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
    def _alike(self) -> float:
        """How much the repeats of a run of the baseline have in common, from 0 to 1.

        The intraclass correlation: how much less often two trials of one run differ than two of
        different runs; 0 where that may be chance.
        """
        within, between, pairs_within, pairs_between = 0, 0, 0, 0
        for pair in self.group.all_pairs.values():
            runs = pair.runs_before
            if len(runs) < 2:
                continue
            passed = [sum(map(self.group.passed, run)) for run in runs]
            here = sum(good * (len(run) - good) for good, run in zip(passed, runs, strict=True))
            possible = sum(math.comb(len(run), 2) for run in runs)
            total, good = pair.before.measured, sum(passed)
            within, pairs_within = within + here, pairs_within + possible
            between += good * (total - good) - here
            pairs_between += math.comb(total, 2) - possible
        if not between or not pairs_within:
            return 0.0
        expected = between / pairs_between * pairs_within
        found = 1 - within / expected
        return found if found > 2 * math.sqrt(1 / expected + 1 / between) else 0.0

    def _worth(self, repeats: int) -> float:
        """Return how many independent trials the repeats of one run are worth.

        By the design effect (Kish, "Survey Sampling", 1965, section 5.4).
        """
        return repeats / (1 + (repeats - 1) * self._alike) if repeats else 0.0

    @cached_property
    def _shapes(self) -> Counter[tuple[float, float, int]]:
        """How many cases have so many trials before, in further rounds, and in the first one."""
        found: Counter[tuple[float, float, int]] = Counter()
        # Those that are excused could have broken, too: to excuse them proves nothing of others.
        for pair in self.group.all_pairs.values():
            before = sum(self._worth(len(run)) for run in pair.runs_before)
            first, *further = [len(each) for each in pair.rounds(_ALL)] or [0]
            found[before, sum(map(self._worth, further)), first] += 1
        return found

    def _chance(self, broken: int, confirming: int) -> float:
        # What confirms is drawn in the same run as the first round.
        return at_least(
            broken,
            [
                (many, most_probable_break(before, further + self._worth(first + confirming)))
                for (before, further, first), many in self._shapes.items()
            ],
        )

    def proven(self, *, rejected: bool) -> frozenset[str]:
        drawn = self.gate.on_inconclusive != "rerun" or bool(self.drawn)
        steady = (
            case
            for case, pair in self.moved.items()
            if drawn or pair.now.measured >= _STEADY_TRIALS
        )
        return frozenset(steady) | (self._judged[1] if rejected else frozenset())


def _looks(confirming: int) -> int:
    """Return how often it is looked at so many trials."""
    return 1 if confirming <= _FIRST else 2


def _always(pair: Pair, bad: Callable[[float], bool]) -> bool:
    """Say whether all that was measured now is `bad`, and nothing is missing."""
    values = [*pair.now.observations, *pair.now.confirming]
    return bool(values) and not pair.now.errors and all(map(bad, values))


def _worse(group: Group, pair: Pair, value: float) -> bool:
    """Say whether a value fails newly, or is lower than before by what counts."""
    drop = group.sign * (pair.base - value)
    flipped = group.passed(pair.base) and not group.passed(value)
    return flipped or (drop > 0 and drop >= group.least)
