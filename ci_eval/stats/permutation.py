"""Fisher's permutation test over cases: exchanges which runs of a case count as the new ones.

If a change made nothing worse, the new runs of each case are interchangeable with its other runs.
The p-value is the share of all exchanges whose statistic is as low as the observed one; it
is exact for any distribution of the scores (Fisher, "The Design of Experiments", 1935, section 21;
Phipson and Smyth, 2010, for sampled instead of enumerated exchanges).  It is also monotone: a new
score that gets worse never becomes less significant.

The unit of exchange is the mean of a run over its repeats, because these may be correlated.  A case
is exchanged in the same way under all criteria, which preserves their correlation in a statistic of
all of them.
"""

import math
import zlib
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple, Self

if TYPE_CHECKING:
    from numpy import bool_, float64
    from numpy.typing import NDArray

    Floats = NDArray[float64]

EXACT = 1 << 16
"""Up to this number, all exchanges are enumerated; otherwise they are sampled."""
MAX_ROWS = 500
"""If there are more cases, they are merged into this many rows, each exchanged as one."""
_MAX_WAYS = 1024
"""Maximum number of exchanges of one case to sample from."""
_SEED = 20_241_101
_NEAR = 1e-9
"""Statistics that differ by less are equal except for floating-point rounding."""

Place = tuple[str, ...]
"""Identifies a case, whatever the criterion."""


class Sample(NamedTuple):
    """The values of one case under one criterion."""

    new: tuple[float, ...]
    """A value for each run of the change."""
    old: tuple[float, ...]
    """A value for each run of the baseline."""


@dataclass(frozen=True, eq=False)
class Samples:
    """The samples of a group, in a table for each number of new and old values."""

    scope: Place
    """The beginning of the place of each case; its id is the end."""
    tables: "Mapping[tuple[int, int], tuple[Sequence[str], Floats]]"
    """By these numbers: the ids of the cases, and a row of values for each, the new ones first."""

    @classmethod
    def of(
        cls,
        scope: Place,
        samples: Iterable[tuple[str, Sample]],
        paired: "tuple[Sequence[str], Floats, Floats] | None" = None,
    ) -> Self:
        """Return the samples of some cases.

        `paired` are further cases with one new and one old value each: the same, but much faster.
        """
        import numpy as np

        kinds: defaultdict[tuple[int, int], tuple[list[str], array[float]]]
        kinds = defaultdict(lambda: ([], array("d")))
        if paired and paired[0]:
            ids, *columns = paired
            kinds[1, 1] = ([*ids], array("d", np.column_stack(columns).tobytes()))
        for case, (new, old) in samples:
            cases, values = kinds[len(new), len(old)]
            cases.append(case)
            values.extend(new)
            values.extend(old)
        tables = {
            shape: (cases, np.array(values).reshape(len(cases), -1))
            for shape, (cases, values) in kinds.items()
        }
        return cls(scope, tables)

    def __len__(self) -> int:
        return sum(len(cases) for cases, _ in self.tables.values())

    @property
    def steady(self) -> bool:
        """Whether all values of each case are equal, so that exchanging them has no effect."""
        return all((values == values[:, :1]).all() for _, values in self.tables.values())


@dataclass(frozen=True)
class Permuted:
    """A mean difference, and its values under the exchanges."""

    observed: float
    others: "Floats | None"
    """`None` if no value can differ from the observed one."""
    complete: bool
    """Whether `others` are all possible values, including the observed one."""
    moved: "Floats | None" = None
    """`others` with noise that all cases share, if there is any."""

    @property
    def lower(self) -> float:
        """The p-value of "nothing got worse"."""
        return self._share(lambda others: others <= self.observed + _NEAR)

    def with_noise(self, spread: float, freedom: int, *, draws: int) -> "Permuted":
        """Return the same with added noise that all cases share.

        The noise has Student's distribution with this `spread` and these degrees of freedom.  Apart
        from its spread, it is the same in every call with the same `draws`.
        """
        if self.others is None:
            return self
        import numpy as np

        noise = np.random.default_rng(_SEED).standard_t(freedom, draws)
        return replace(self, moved=np.resize(self.others, draws) + spread * noise)

    @property
    def upper(self) -> float:
        """The p-value of "nothing got better"."""
        return self._share(lambda others: others >= self.observed - _NEAR)

    def _share(self, counts: "Callable[[Floats], NDArray[bool_]]") -> float:
        if self.others is None:
            return 1.0
        count, size = int(counts(self.others).sum()), len(self.others)
        share = count / size if self.complete else (count + 1) / (size + 1)
        if self.moved is None:
            return share
        # Noise splits the exchanges that are equal to the observed one, which must all count.
        return max(share, (int(counts(self.moved).sum()) + 1) / (len(self.moved) + 1))


def permute(groups: Sequence[Samples], *, draws: int) -> list[Permuted]:
    """Return the mean difference of each of the `groups`, all under the same exchanges.

    Each group has at least one sample; if there are too many exchanges to enumerate, `draws` are
    sampled with a fixed seed.
    """
    if all(each.steady for each in groups):
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
                # A case that a group lacks does not affect the group.
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
    all_moved = [each.moved for each in tests if each.moved is not None]
    moved = np.mean(all_moved, axis=0) if all_moved else None
    return Permuted(observed, np.mean(all_others, axis=0), tests[0].complete, moved)


def difference(one: Permuted, other: Permuted) -> Permuted:
    """Return the difference of two mean differences that were exchanged together.

    Whatever both share, such as noise, cancels out.
    """
    if one.others is None or other.others is None:
        return Permuted(one.observed - other.observed, None, complete=True)
    others = one.others - other.others
    return Permuted(one.observed - other.observed, others, one.complete)


def _table(group: Samples) -> "dict[Place, Floats]":
    """Return each row's contribution to the statistic under each exchange, the observed first."""
    import numpy as np

    found: dict[Place, Floats] = {}
    is_large = len(group) > MAX_ROWS
    start = zlib.crc32("\0".join((*group.scope, "")).encode())
    for shape, (cases, values) in group.tables.items():
        places, sums = [(*group.scope, case) for case in cases[:MAX_ROWS]], values
        if is_large:
            chosen = [zlib.crc32(case.encode(), start) % MAX_ROWS for case in cases]
            numbers, rows = np.unique(chosen, return_inverse=True)
            places = [(str(shape), str(number)) for number in numbers.tolist()]
            sums = np.array([np.bincount(rows, each) for each in values.T], np.float64).T
        found |= zip(places, sums @ _ways(*shape).T, strict=True)
    return found


@cache
def _ways(new: int, old: int) -> "Floats":
    """Return the weight of each value under each exchange; the first is the observed order."""
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
