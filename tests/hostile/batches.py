"""Many hostile texts in one test: one for each would cost more than what is tested."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hostile.corpus import CORPUS

BATCHES: dict[str, list[str]] = {}
"""The names of the texts by what they try."""
for _name in CORPUS:
    BATCHES.setdefault(_name.rpartition(" ")[0], []).append(_name)

in_batches = pytest.mark.parametrize("batch", BATCHES)


@contextmanager
def named(name: str) -> Iterator[None]:
    """Tell with a failure which of the texts it is about."""
    try:
        yield
    except BaseException as failure:
        failure.add_note(f"the text is {name!r}: {CORPUS[name]!a:.1000}")
        raise
