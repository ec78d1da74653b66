"""Differences between two sequences, found in a bounded time."""

from collections import Counter
from collections.abc import Hashable, Sequence
from difflib import Match, SequenceMatcher
from typing import TypeVar

T = TypeVar("T", bound=Hashable)

MAX_PAIRS = 15_000
"""Maximum number of pairs of equal elements.  difflib looks at each of them, again for every
difference that it finds: a repeated word in two texts of 2,000 words could take minutes."""


class BoundedMatcher(SequenceMatcher[T]):
    """Compares two sequences; with too many equal elements, only the common ends match."""

    def __init__(self, before: Sequence[T], after: Sequence[T]) -> None:
        super().__init__(None, before, after, autojunk=False)
        self._before, self._after = before, after
        counts = Counter(after)
        self._is_fast = sum(counts[each] for each in before) <= MAX_PAIRS

    def get_matching_blocks(self) -> list[Match]:
        """Return the equal parts, as difflib does."""
        if self._is_fast:
            return super().get_matching_blocks()
        before, after = self._before, self._after
        size, other = len(before), len(after)
        most = min(size, other)
        begin = _common(before, after, most)
        end = _common(before[::-1], after[::-1], most - begin)
        found = [Match(0, 0, begin), Match(size - end, other - end, end)]
        return [*(each for each in found if each.size), Match(size, other, 0)]


def _common(one: Sequence[T], other: Sequence[T], most: int) -> int:
    """Return how many elements both begin with."""
    pairs = enumerate(zip(one[:most], other[:most], strict=True))
    return next((at for at, (a, b) in pairs if a != b), most)
