"""The cases of an evalset in a run; columns of values refer to them by number."""

import sys
from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import bool_, int64
    from numpy.typing import NDArray

    Whole = NDArray[int64]
    Chosen = NDArray[bool_]


class Cases:
    """The cases of an evalset in a run, which columns refer to by number."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        """The number of each case by its id."""
        self.ids: list[str] = []
        """The id of each case, in the order of the run."""
        self.contents = array("q")
        """The hash of each case's fingerprint; a fingerprint has no more bits."""

    def number_of(self, case: str, content: str = "") -> int:
        """Return the number of a case, and keep its fingerprint."""
        number = self.numbers.get(case)
        if number is None:
            # Runs that are compared share ids: memory holds each id once.
            self.ids.append(sys.intern(case))
            number = self.numbers[self.ids[-1]] = len(self.contents)
            self.contents.append(0)
        self.contents[number] = hash(content)
        return number

    def numbers_in(self, other: "Cases") -> "Whole":
        """Return the number of each of these cases in `other`; -1 if it is missing there."""
        import numpy as np

        if other is self:
            return np.arange(len(self.ids))
        found = (other.numbers.get(case, -1) for case in self.ids)
        return np.fromiter(found, np.int64, len(self.ids))

    def same_in(self, other: "Cases", numbers: "Whole") -> "Chosen":
        """Return, for each case and its number in `other`, whether the content is equal there."""
        import numpy as np

        found: Chosen = np.append(other.contents, 0)[numbers] == self.contents
        return found & (numbers >= 0)

    def changed_in(self, other: "Cases") -> int:
        """Return the number of cases whose content differs in `other`."""
        numbers = self.numbers_in(other)
        return int(((numbers >= 0) & ~self.same_in(other, numbers)).sum())
