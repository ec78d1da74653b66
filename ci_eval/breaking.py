"""The guard against hard breaks: cases that were solid and now fail every time.

A case that passes with the probability q passes m times before and fails n times now with
q^m (1 - q)^n, which is at most m^m n^n / (m + n)^(m + n), whatever q is.  So the number of cases
that do is at most a sum of such chances, and a single one of many is only suspected.  More trials
of what is suspected, and of nothing else, tell: each that fails makes chance less probable, and
one that passes ends the suspicion.  Where history shows no variance at all, a flip is a flip.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ci_eval.config_file import GateOptions
from ci_eval.pairing import Group, Pair
from ci_eval.stats import at_least, holm, most_probable_break

SHARE = 0.05
"""The share of `false_block` that this guard may spend, where drift can be seen, too."""
MAX_CONFIRMING = 50
"""How many trials may be drawn to confirm one suspicion."""
_STEADY_TRIALS = 3
"""So many trials must agree, where more can be drawn, before a flip in a steady history counts."""


@dataclass(frozen=True)
class Breaks:
    """The cases of one group that were solid and now fail every time."""

    group: Group
    suspects: Mapping[str, Pair]
    """Every trial of theirs fails, those that were drawn to confirm it included."""
    p_value: float
    level: float
    """What the p-value must not exceed."""
    proven: frozenset[str]
    """Those of the suspects that are no noise."""
    wanted: int
    """How many more trials of each suspect it would take if all of them failed; 0 where none
    helps."""


def breaks(groups: Sequence[Group], gate: GateOptions, rate: float) -> list[Breaks]:
    """Return what broke in each of the `groups` that has a threshold.

    Noise is called a break in any of them at most at `rate`.
    """
    counts = [_Count(group, gate) for group in groups if not group.facts.informational]
    judged = holm([each.p_value() for each in counts], rate)
    return [
        Breaks(
            group=each.group,
            suspects=each.suspects,
            p_value=each.p_value(),
            level=one.level,
            proven=each.proven(rejected=one.rejected),
            wanted=each.wanted(rate / len(counts)),
        )
        for each, one in zip(counts, judged, strict=True)
    ]


@dataclass(frozen=True)
class _Count:
    """How many cases of one group seem to be broken."""

    group: Group
    gate: GateOptions

    @cached_property
    def suspects(self) -> Mapping[str, Pair]:
        return {
            case: pair for case, pair in self.group.pairs.items() if _suspected(self.group, pair)
        }

    @cached_property
    def confirming(self) -> int:
        """How many trials were drawn to confirm each suspicion."""
        drawn = (len(pair.now.confirming) for pair in self.suspects.values())
        return min(drawn, default=0)

    @property
    def may_draw(self) -> bool:
        """Whether more trials can be had, so that nothing is decided before they are there."""
        return self.gate.on_inconclusive == "rerun" and not self.confirming

    def p_value(self) -> float:
        """Return how probable it is that so many cases broke by chance."""
        if not self.suspects or (self.may_draw and self.wanted(self.gate.false_block)):
            return 1.0
        return self._chance(len(self.suspects), self.confirming)

    def wanted(self, level: float) -> int:
        """Return how many more trials would prove one of the suspects alone, were all to fail."""
        if not self.suspects or not self.may_draw:
            return 0
        counts = range(1, MAX_CONFIRMING + 1)
        return next((count for count in counts if self._chance(1, count) <= level), 0)

    def _chance(self, broken: int, confirming: int) -> float:
        shapes = Counter(
            (pair.before.measured, pair.now.measured + confirming)
            for pair in self.group.pairs.values()
        )
        chances = [(many, most_probable_break(*shape)) for shape, many in shapes.items()]
        return at_least(broken, chances)

    def proven(self, *, rejected: bool) -> frozenset[str]:
        if rejected:
            return frozenset(self.suspects)
        if not self.group.steady:
            return frozenset()
        return frozenset(
            case
            for case, pair in self.suspects.items()
            if pair.before.measured > 1
            and (not self.may_draw or pair.now.measured >= _STEADY_TRIALS)
        )


def _suspected(group: Group, pair: Pair) -> bool:
    values = [*pair.now.observations, *pair.now.confirming]
    return (
        bool(values)
        and not pair.now.errors
        and all(map(group.passed, pair.before.observations))
        and not any(map(group.passed, values))
    )
