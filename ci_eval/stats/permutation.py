"""Fisher's permutation test, over cases: which of its runs are the new ones is exchanged.

If a change made nothing worse, then for each case the new runs could as well have been any other
of all its runs.  The p-value is the share of all exchanges whose statistic is as low as what was
observed: exact whatever the distribution of the scores is (Fisher, "The Design of Experiments",
1935, section 21; Phipson and Smyth, 2010, for drawn instead of counted exchanges).  It is
monotone, too: a new score that gets worse never gets less significant.

What is exchanged is the mean of a run over its repeats, for these may have more in common with
each other than with those of other runs.  A case is exchanged in the same way under all criteria,
so that what they have in common is kept in a statistic of all of them.
"""

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from numpy import bool_, float64
    from numpy.typing import NDArray

    Floats = NDArray[float64]

EXACT = 1 << 16
"""Up to so many exchanges all of them are counted; of more, some are drawn."""
MAX_ROWS = 500
"""More cases than these are put together into so many rows that are exchanged as one."""
_MAX_WAYS = 1024
"""Of the exchanges of one case, so many are drawn from at most."""
_SEED = 20_241_101
_NEAR = 1e-9
"""Statistics that differ by less are equal, and were only added up differently."""

Place = tuple[str, ...]
"""What names a case, whatever the criterion."""


class Sample(NamedTuple):
    """What one case showed under one criterion."""

    new: tuple[float, ...]
    """A value for each run of the change."""
    old: tuple[float, ...]
    """A value for each run of the baseline."""

    @property
    def difference(self) -> float:
        """The mean of the new values, less that of the old ones."""
        return math.fsum(self.new) / len(self.new) - math.fsum(self.old) / len(self.old)

    @property
    def steady(self) -> bool:
        """Whether all its runs show the same, so that exchanging them changes nothing."""
        return len({*self.new, *self.old}) == 1


@dataclass(frozen=True)
class Permuted:
    """A mean difference, with those that exchanges gave instead."""

    observed: float
    others: "Floats | None"
    """`None` where none can differ from it."""
    complete: bool
    """Whether `others` are all there are, with the observed one among them."""

    @property
    def lower(self) -> float:
        """The p-value of "nothing got worse"."""
        return self._share(lambda others: others <= self.observed + _NEAR)

    @property
    def upper(self) -> float:
        """The p-value of "nothing got better"."""
        return self._share(lambda others: others >= self.observed - _NEAR)

    def _share(self, counts: "Callable[[Floats], NDArray[bool_]]") -> float:
        if self.others is None:
            return 1.0
        count, size = int(counts(self.others).sum()), len(self.others)
        return count / size if self.complete else (count + 1) / (size + 1)


def permute(groups: Sequence[Mapping[Place, Sample]], *, draws: int) -> list[Permuted]:
    """Return the mean difference of each of the `groups`, all exchanged in the same ways.

    Each group has at least one sample; where there are too many exchanges to count, `draws`
    are drawn, always the same ones.
    """
    if all(each.steady for group in groups for each in group.values()):
        return [Permuted(0.0, None, complete=True) for _ in groups]
    import numpy as np

    tables = [_table(group) for group in groups]
    shapes: dict[Place, set[int]] = {}
    for table in tables:
        for row, adds in table.items():
            shapes.setdefault(row, set()).add(len(adds))
    total = math.prod(max(each) for each in shapes.values())
    complete = total <= EXACT and all(len(each) == 1 for each in shapes.values())
    sums: list[Floats] = [np.zeros(1 if complete else draws) for _ in groups]
    generator = np.random.default_rng(_SEED)
    for row in sorted(shapes):
        drawn = None if complete else generator.random(draws)
        for number, table in enumerate(tables):
            if drawn is None:
                # Where a group lacks a case, the exchanges of it change nothing there.
                step = table[row] if row in table else np.zeros(min(shapes[row]))
                sums[number] = np.add.outer(sums[number], step).ravel()
            elif row in table:
                picked = (drawn * len(table[row])).astype(np.intp)
                sums[number] += table[row][picked]
    observed = [math.fsum(float(adds[0]) for adds in table.values()) for table in tables]
    return [
        Permuted(seen / len(group), others / len(group), complete)
        for seen, others, group in zip(observed, sums, groups, strict=True)
    ]


def mean_of(tests: Sequence[Permuted]) -> Permuted:
    """Return the mean of mean differences that were exchanged together."""
    all_others = [each.others for each in tests if each.others is not None]
    if not all_others:
        return tests[0]
    import numpy as np

    observed = math.fsum(each.observed for each in tests) / len(tests)
    return Permuted(observed, np.mean(all_others, axis=0), tests[0].complete)


def _table(group: Mapping[Place, Sample]) -> "dict[Place, Floats]":
    """Return, for each row, what it adds to the statistic under each exchange, as it is first."""
    import numpy as np

    kinds: dict[tuple[int, int], dict[Place, list[float]]] = {}
    for place, sample in group.items():
        shape = len(sample.new), len(sample.old)
        row = place if len(group) <= MAX_ROWS else _row(place, shape)
        values = [*sample.new, *sample.old]
        kept = kinds.setdefault(shape, {}).setdefault(row, [0.0] * len(values))
        for number, value in enumerate(values):
            kept[number] += value
    return {
        row: ways
        for shape, kept in kinds.items()
        for row, ways in zip(kept, np.array([*kept.values()]) @ _ways(*shape).T, strict=True)
    }


def _row(place: Place, shape: tuple[int, int]) -> Place:
    return str(shape), str(zlib.crc32("\0".join(place).encode()) % MAX_ROWS)


@cache
def _ways(new: int, old: int) -> "Floats":
    """Return the weight of each value under each exchange; the first is how they stand."""
    import numpy as np

    size = new + old
    if math.comb(size, new) <= _MAX_WAYS:
        chosen = [*combinations(range(size), new)]
    else:
        generator = np.random.default_rng(_SEED)
        drawn = [generator.permutation(size)[:new] for _ in range(_MAX_WAYS - 1)]
        chosen = [tuple(range(new)), *(tuple(map(int, each)) for each in drawn)]
    weights = np.full((len(chosen), size), -1 / old)
    for number, each in enumerate(chosen):
        weights[number, list(each)] = 1 / new
    return weights
