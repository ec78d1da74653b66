"""Differences between two texts, word by word."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from ci_eval.text.bounded_diff import BoundedMatcher

MAX_WORDS = 2_000
"""Maximum number of words of each text to compare."""
_ALIKE = 0.3
"""Texts with a smaller share of common words are shown in full, one after the other."""


class Words(NamedTuple):
    """Successive words of one kind."""

    kind: Literal["same", "removed", "added"]
    words: tuple[str, ...]


def word_diff(expected: str, actual: str) -> Iterator[Words]:
    """Yield the words of both texts in order, those removed before those added.

    >>> [(each.kind, " ".join(each.words)) for each in word_diff("at half power", "at full power")]
    [('same', 'at'), ('removed', 'half'), ('added', 'full'), ('same', 'power')]
    """
    before, after = tuple(expected.split()[:MAX_WORDS]), tuple(actual.split()[:MAX_WORDS])
    found = BoundedMatcher(before, after)
    codes = found.get_opcodes()
    if found.ratio() < _ALIKE:
        codes = [("replace", 0, len(before), 0, len(after))]
    for tag, start, end, other_start, other_end in codes:
        if tag == "equal":
            yield Words("same", before[start:end])
            continue
        if start < end:
            yield Words("removed", before[start:end])
        if other_start < other_end:
            yield Words("added", after[other_start:other_end])
