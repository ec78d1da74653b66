"""The values of a run under one criterion, in typed arrays: 12 bytes for an observation.

A `Cell` is only made when a case is read, and is not kept.
"""

import math
from collections.abc import Container, Iterator, Sequence
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from ci_eval.records.cases import Status
from ci_eval.records.findings import Counts
from ci_eval.records.results import CriterionFacts
from ci_eval.run_files.score_cases import Cases
from ci_eval.run_files.score_cell import (
    CONFIRMING,
    KINDS,
    LOST,
    MEASURED,
    UNCONFIRMED,
    Cell,
    cell_of,
    mean,
)

if TYPE_CHECKING:
    from numpy import bool_, float64, int32, int64
    from numpy.typing import NDArray

    Floats = NDArray[float64]
    Codes = NDArray[int32]
    Whole = NDArray[int64]
    Chosen = NDArray[bool_]

RANKED = Status.SKIPPED, Status.PASSED, Status.ERROR, Status.FAILED
"""The last status that occurs decides a case: a failure is certain, an error is not."""
_CHUNK = 512
"""Number of cells that are prepared at once."""
_FIELDS = [("number", "i4"), ("code", "i4"), ("value", "f8"), ("seconds", "f8")]
"""The fields of an observation: the number of its case, code, value, and the trial's duration."""
_PACKED = Struct("=iidd")


class _Sorted(NamedTuple):
    """Observations by row: a row for each case that has any, in the order of the cases."""

    numbers: "Whole"
    """The number of the case of each row."""
    starts: "Whole"
    """The index of each row's first observation, and the end of the last row; no row is empty."""
    codes: "Codes"
    values: "Floats"
    """0 where nothing was measured."""
    seconds: "Floats"
    """The duration of all trials of each row."""

    @property
    def rows(self) -> "Whole":
        """The row of each observation."""
        import numpy as np

        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


class Column:
    """One criterion on one evalset with one agent: a cell for each case."""

    def __init__(self, cases: Cases | None = None) -> None:
        self.cases = cases or Cases()
        self._new = bytearray()
        """The observations that are not sorted yet, each packed as `_FIELDS`."""
        self._held: _Sorted | None = None
        self._means: Floats | None = None

    def __len__(self) -> int:
        return len(self.sorted().numbers)

    def __iter__(self) -> Iterator[str]:
        return iter(self.named(slice(None)))

    def __contains__(self, case: str) -> bool:
        return self.row(case) >= 0

    def __getitem__(self, case: str) -> Cell:
        if (found := self.get(case)) is None:
            raise KeyError(case)
        return found

    def get(self, case: str) -> Cell | None:
        """Return the cell of a case, if there is one."""
        row = self.row(case)
        return next(self.cells([row])) if row >= 0 else None

    def row(self, case: str) -> int:
        """Return the row of a case; -1 if there is none."""
        number, numbers = self.cases.numbers.get(case, -1), self.numbers
        row = int(numbers.searchsorted(number))
        return row if row < len(numbers) and numbers[row] == number else -1

    def items(self) -> Iterator[tuple[str, Cell]]:
        """Yield each case with its cell."""
        return zip(self, self.values(), strict=True)

    def values(self) -> Iterator[Cell]:
        """Yield the cell of each case."""
        return self.cells(range(len(self)))

    def cells(self, rows: "Sequence[int] | Whole") -> Iterator[Cell]:
        """Yield the cells of some rows."""
        import numpy as np

        _, starts, codes, values, _ = self.sorted()
        for begin in range(0, len(rows), _CHUNK):
            chosen = np.asarray(rows[begin : begin + _CHUNK])
            first = starts[chosen]
            sizes = starts[chosen + 1] - first
            ends = np.cumsum(sizes)
            places = np.repeat(first - ends + sizes, sizes) + np.arange(ends[-1])
            observed = [*zip(codes[places].tolist(), values[places].tolist(), strict=True)]
            at = 0
            for end in ends.tolist():
                yield cell_of(*observed[at:end])
                at = end

    # --- Adding -------------------------------------------------------------------------------

    def add(self, case: str, value: float | None, kind: int = MEASURED, unit: int = 0) -> None:
        """Add an observation of a case."""
        known = self.cases.numbers.get(case)
        self.put(self.cases.number_of(case) if known is None else known, value, kind, unit)

    def put(
        self, number: int, value: float | None, kind: int, unit: int, seconds: float = 0.0
    ) -> None:
        """Add an observation of the case with this number."""
        self._new += _PACKED.pack(number, unit * KINDS + kind, value or 0.0, seconds)

    def pool(self, other: "Column", numbers: "Whole", *, as_unit: bool) -> None:
        """Add the observations of another column; `numbers` are the case numbers of its rows here.

        A number below 0 leaves a row out.  The rounds of `other` are added `as_unit`, one unit
        after a case's existing ones, or unchanged.
        """
        import numpy as np

        held = other.sorted()
        number = numbers[held.rows]
        kept = number >= 0
        number, codes, values = number[kept], held.codes[kept], held.values[kept]
        if as_unit:
            units = np.zeros(len(self.cases.ids), np.int32)
            units[self.numbers] = self.units
            codes = codes % KINDS + units[number] * KINDS
        self._extend(number, codes, values)

    def _extend(self, number: "Whole", codes: "Codes", values: "Floats") -> None:
        """Add observations of the cases with these numbers."""
        import numpy as np

        new = np.zeros(len(number), _FIELDS)
        new["number"], new["code"], new["value"] = number, codes, values
        self._new += new.tobytes()

    def rows_of(self, numbers: "Whole") -> "Whole":
        """Return the row of each of these cases; -1 if it has none, or if its number is below 0."""
        import numpy as np

        rows = np.full(len(self.cases.ids) + 1, -1)
        rows[self.numbers] = np.arange(len(self))
        return rows[numbers]

    # --- Arrays -------------------------------------------------------------------------------

    def sorted(self) -> _Sorted:
        """Return the observations by row; within a row, in the order in which they were added."""
        import numpy as np

        held = self._held
        if held is not None and not self._new:
            return held
        new = np.frombuffer(self._new, _FIELDS)
        numbers, codes, values, seconds = (new[name].copy() for name, _ in _FIELDS)
        totals = np.bincount(numbers, seconds, len(self.cases.ids)).astype(np.float64)
        if held is not None:
            numbers = np.concatenate([held.numbers[held.rows], numbers])
            codes = np.concatenate([held.codes, codes])
            values = np.concatenate([held.values, values])
            totals[held.numbers] += held.seconds
        if (numbers[1:] < numbers[:-1]).any():
            order = np.argsort(numbers, kind="stable")
            numbers, codes, values = numbers[order], codes[order], values[order]
        (firsts,) = np.diff(numbers, prepend=-1).nonzero()
        rows, starts = numbers[firsts].astype(np.int64), np.append(firsts, len(numbers))
        self._held = _Sorted(rows, starts, codes, values, totals[rows])
        self._new, self._means = bytearray(), None
        return self._held

    def only(self, units: int) -> "Column":
        """Return a copy with only the first `units`."""
        return self._chosen(self.sorted().codes < units * KINDS)

    def without(self, cases: Container[str]) -> "Column":
        """Return a copy without some cases."""
        import numpy as np

        kept = np.array([case not in cases for case in self], bool)
        return self._chosen(kept[self.sorted().rows])

    def _chosen(self, kept: "Chosen") -> "Column":
        held = self.sorted()
        found = Column(self.cases)
        found._extend(self.numbers[held.rows[kept]], held.codes[kept], held.values[kept])
        return found

    def filled(self, value: float) -> "Column":
        """Return a copy with `value` for every missing observation."""
        import numpy as np

        held = self.sorted()
        lost = held.codes % KINDS == LOST
        found = Column(self.cases)
        codes = np.where(lost, held.codes - LOST + MEASURED, held.codes)
        found._extend(self.numbers[held.rows], codes, np.where(lost, value, held.values))
        return found

    @property
    def numbers(self) -> "Whole":
        """The number of the case of each row."""
        return self.sorted().numbers

    @property
    def seconds(self) -> "Floats":
        """The mean duration of the trials of each row."""
        import numpy as np

        return self.sorted().seconds / np.diff(self.sorted().starts)

    def counts(self, *kinds: int) -> "Whole":
        """Return the number of observations of these kinds in each row."""
        import numpy as np

        held = self.sorted()
        return np.bincount(held.rows[np.isin(held.codes % KINDS, kinds)], minlength=len(self))

    @property
    def units(self) -> "Whole":
        """The number of units of each row, up to the last measured one."""
        import numpy as np

        sizes = self.sizes()
        found: Whole = ((sizes > 0) * np.arange(1, sizes.shape[1] + 1)).max(axis=1)
        return found

    @property
    def firsts(self) -> "Whole":
        """The number of measured values in the first unit of each row."""
        return self.sizes()[:, 0]

    def outcomes(self, facts: CriterionFacts) -> tuple["Whole", "Whole"]:
        """Return the numbers of measured values of each row that pass and that fail."""
        passed = self.sizes(facts).sum(axis=1)
        return passed, self.sizes().sum(axis=1) - passed

    def sizes(self, facts: CriterionFacts | None = None) -> "Whole":
        """Return the number of measured values in each unit of each row.

        With `facts`, only those that pass count.
        """
        import numpy as np

        rows, codes, values = self._measured()
        units = codes // KINDS
        most = int(units.max(initial=0)) + 1
        weights = None if facts is None else passing(values, facts)
        found = np.bincount(rows * most + units, weights, len(self) * most)
        return found.astype(np.int64).reshape(-1, most)

    @property
    def varied(self) -> "Chosen":
        """Whether the measured values of each row differ."""
        import numpy as np

        rows, _, values = self._measured()
        found = np.zeros(len(self), bool)
        found[rows[1:][(rows[1:] == rows[:-1]) & (values[1:] != values[:-1])]] = True
        return found

    @property
    def means(self) -> "Floats":
        """The mean of each row; NaN if nothing was measured."""
        import numpy as np

        self.sorted()  # forgets the means if there are new observations
        if self._means is None:
            rows, _, values = self._measured()
            found = np.full(len(self), np.nan)
            found[rows] = values
            varied = np.flatnonzero(self.varied)
            found[varied] = [mean(cell.observations) for cell in self.cells(varied)]
            self._means = found
        return self._means

    def with_missing(self, value: float | None) -> "Floats":
        """Return the means with `value` for every missing observation; NaN if unknown."""
        import numpy as np

        found, lost = self.means.copy(), np.flatnonzero(self.counts(LOST))
        found[lost] = [cell.with_missing(value) for cell in self.cells(lost)]
        return found

    def unit_means(self, rows: "Whole") -> "Floats":
        """Return the mean of each unit, for those of the `rows` that have no empty unit."""
        import numpy as np

        units = self.units[rows]
        most = int(units.max(initial=0))
        rows = rows[units == most]
        if most <= 1:
            return self.means[rows].reshape(len(rows), most)
        means = ([*map(mean, cell.units)] for cell in self.cells(rows) if all(cell.units))
        return np.fromiter(means, (np.float64, most))

    def failing(self, facts: CriterionFacts) -> "Chosen":
        """Return which rows lack no value and fail in all values, including confirming ones."""
        held = self.sorted()
        kinds = held.codes % KINDS
        good = (kinds == LOST) | (
            ((kinds == MEASURED) | (kinds == CONFIRMING)) & passing(held.values, facts)
        )
        found = self.counts(MEASURED, CONFIRMING) > 0
        found[held.rows[good]] = False
        return found

    def ended(self, facts: CriterionFacts) -> Counts:
        """Count the cases by status."""
        return counted(self.ranks(facts))

    def ranks(self, facts: CriterionFacts) -> "Whole":
        """Return the status of each case, as its index in `RANKED`."""
        import numpy as np

        means, lost = self.means, np.flatnonzero(self.counts(LOST))
        found = np.where(passing(means, facts), *map(RANKED.index, (Status.PASSED, Status.FAILED)))
        found[np.isnan(means)] = RANKED.index(Status.SKIPPED)
        found[lost] = [RANKED.index(cell.status(facts)) for cell in self.cells(lost)]
        return found

    def lacking(self, facts: CriterionFacts) -> list[str]:
        """Return the cases whose missing observations could change their findings."""
        import numpy as np

        rows = np.flatnonzero(self.counts(LOST, UNCONFIRMED))
        cells = zip(self.named(rows), self.cells(rows), strict=True)
        return [case for case, cell in cells if cell.lacks(facts)]

    def named(self, rows: "Whole | Chosen | slice") -> list[str]:
        """Return the cases of some rows."""
        ids = self.cases.ids
        return [ids[number] for number in self.numbers[rows].tolist()]

    def _measured(self) -> tuple["Whole", "Codes", "Floats"]:
        """Return row, code and value of each measured observation."""
        held = self.sorted()
        chosen = held.codes % KINDS == MEASURED
        return held.rows[chosen], held.codes[chosen], held.values[chosen]


def counted(ranks: "Whole") -> Counts:
    """Count cases by status, given the index of each status in `RANKED`."""
    import numpy as np

    skipped, passed, errors, failed = np.bincount(ranks, minlength=len(RANKED)).tolist()
    return Counts(passed=passed, failed=failed, errors=errors, skipped=skipped)


def passing(values: "Floats", facts: CriterionFacts) -> "Chosen":
    """Return which of some values meet the threshold."""
    import numpy as np

    if facts.threshold is None:
        return np.ones(len(values), bool)
    return values >= facts.threshold if facts.better == "higher" else values <= facts.threshold


def mean_of(column: Column) -> float | None:
    """Return the mean over the measured cases; `None` if there are none."""
    import numpy as np

    values = column.means
    values = values[~np.isnan(values)]
    return math.fsum(values) / len(values) if len(values) else None
