"""Cases that two runs measured under one criterion."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Self

from ci_eval.run_files.score_cell import LOST, Cell
from ci_eval.run_files.score_column import Column

if TYPE_CHECKING:
    from ci_eval.run_files.score_column import Chosen, Floats, Whole


@dataclass(eq=False, slots=True)
class Pair:
    """One case now and before, under one criterion; nothing modifies it."""

    now: Cell
    before: Cell
    value: float
    """The mean now; missing values count as the best possible, so that a regression holds whatever
    they would have been."""
    base: float

    def rounds(self, look: int) -> list[tuple[float, ...]]:
        """Return the measurements of this run, by round, up to a look."""
        # Skips rounds in which nothing of the case was measured.
        return [unit for unit in self.now.units if unit][: look + 1]

    @property
    def runs_before(self) -> list[tuple[float, ...]]:
        """The measurements of each baseline run."""
        return [unit for unit in self.before.units if unit]


@lru_cache(maxsize=4096)
def _pair(now: Cell, before: Cell, value: float, base: float) -> Pair:
    """Return a pair; cached, because thousands of cases have equal ones."""
    return Pair(now, before, value, base)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Cases that two runs measured, in arrays; a pair is only made when it is read."""

    now: Column
    before: Column
    rows: "Whole"
    """The row of each case in `now`, ascending."""
    rows_before: "Whole"
    means: "Floats"
    """`Pair.value` of each case."""
    bases: "Floats"
    """`Pair.base` of each case."""

    @classmethod
    def of(cls, now: Column, before: Column, best: float | None) -> Self:
        """Return all cases that both columns measured; they number the cases alike."""
        import numpy as np

        rows_before, means = before.rows_of(now.numbers), now.with_missing(best)
        bases = before.means[rows_before] if len(before) else means * math.nan
        known = (rows_before >= 0) & ~(np.isnan(bases) | np.isnan(means))
        (rows,) = known.nonzero()
        return cls(now, before, rows, rows_before[known], means[known], bases[known])

    @property
    def single(self) -> "Chosen":
        """Which cases lack nothing and were measured equally often in one round and in one run.

        `means` and `bases` are the only values that an exchange of their runs can exchange.
        """
        now, before = self.now.sizes()[self.rows], self.before.sizes()[self.rows_before]
        is_whole = self.now.counts(LOST)[self.rows] == 0
        units = [(sizes > 0).sum(axis=1) for sizes in (now, before)]
        alike = now.sum(axis=1) == before.sum(axis=1)
        found: Chosen = is_whole & alike & (units[0] == 1) & (units[1] == 1)
        return found

    def where(self, chosen: "Chosen | slice") -> "Pairs":
        """Return some of the cases."""
        rows, rows_before = self.rows[chosen], self.rows_before[chosen]
        means, bases = self.means[chosen], self.bases[chosen]
        return Pairs(self.now, self.before, rows, rows_before, means, bases)

    def among(self, cases: Iterable[str]) -> "Chosen":
        """Return which of these cases are among `cases`."""
        import numpy as np

        numbers = self.now.cases.numbers
        known = [numbers[case] for case in cases if case in numbers]
        return np.isin(self.now.numbers[self.rows], known)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[str]:
        return iter(self.now.named(self.rows))

    def __getitem__(self, case: str) -> Pair:
        place = self.rows.searchsorted(self.now.row(case))
        return next(self.where(slice(place, place + 1)).values())

    def items(self) -> Iterator[tuple[str, Pair]]:
        """Yield each case with its pair."""
        return zip(self, self.values(), strict=True)

    def values(self) -> Iterator[Pair]:
        """Yield the pair of each case."""
        cells = self.now.cells(self.rows), self.before.cells(self.rows_before)
        return map(_pair, *cells, self.means.tolist(), self.bases.tolist())
