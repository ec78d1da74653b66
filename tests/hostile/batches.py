"""Many hostile texts in one test, for a test for each costs more than what is tested."""

from collections.abc import Iterable, Iterator

import pytest
from hostile.corpus import CORPUS

BATCHES: dict[str, list[str]] = {}
"""The names of the texts by what they try."""
for _name in CORPUS:
    BATCHES.setdefault(_name.rpartition(" ")[0], []).append(_name)

in_batches = pytest.mark.parametrize("batch", BATCHES)


def each_of(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each name and its text; the one that a test ends with is told.

    A failure shows what was printed before it.
    """
    for name in names:
        print(f"{name}: {CORPUS[name]!a:.500}")  # noqa: T201  # the last one is it
        yield name, CORPUS[name]
