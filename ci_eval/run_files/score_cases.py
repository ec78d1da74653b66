"""The cases of an evalset in a run, to which the columns of values refer by number."""

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
        """By id, in the order of the run."""
        self.contents = array("q")
        """The hash of the fingerprint of each, which has no more bits."""

    def number_of(self, case: str, content: str = "") -> int:
        """Return the number of a case, and keep its fingerprint."""
        number = self.numbers.get(case)
        if number is None:
            # Runs that are compared have the same ids: memory holds each once.
            number = self.numbers[sys.intern(case)] = len(self.contents)
            self.contents.append(0)
        self.contents[number] = hash(content)
        return number

    def numbers_in(self, other: "Cases") -> "Whole":
        """Return the number that each of these cases has in `other`, -1 if it is not there."""
        import numpy as np

        if other is self:
            return np.arange(len(self.numbers))
        found = (other.numbers.get(case, -1) for case in self.numbers)
        return np.fromiter(found, np.int64, len(self.numbers))

    def same_in(self, other: "Cases", numbers: "Whole") -> "Chosen":
        """Return whether each case, with its number in `other`, has the same content there."""
        import numpy as np

        found: Chosen = np.append(other.contents, 0)[numbers] == self.contents
        return found & (numbers >= 0)

    def changed_in(self, other: "Cases") -> int:
        """Return the number of cases that have another content in `other`."""
        numbers = self.numbers_in(other)
        return int(((numbers >= 0) & ~self.same_in(other, numbers)).sum())
