"""Many hostile texts in one test: one for each would cost more than what is tested."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hostile.corpus import CORPUS

_STRIDE = 3
"""One text in this number is tried in every run, whatever it tries; the others are slow."""
_OTHERS = ", others"
_BY_KIND: dict[str, list[str]] = {}
for _name in CORPUS:
    _BY_KIND.setdefault(_name.rpartition(" ")[0], []).append(_name)

BATCHES: dict[str, list[str]] = {}
"""The names of the texts by what they try."""
for _kind, _names in _BY_KIND.items():
    BATCHES[_kind] = _names[::_STRIDE]
    BATCHES[_kind + _OTHERS] = [each for each in _names if each not in BATCHES[_kind]]

in_batches = pytest.mark.parametrize(
    "batch",
    [
        pytest.param(each, marks=pytest.mark.slow if each.endswith(_OTHERS) else ())
        for each in BATCHES
    ],
)


@contextmanager
def named(name: str) -> Iterator[None]:
    """Tell with a failure which of the texts it is about."""
    try:
        yield
    except BaseException as failure:
        failure.add_note(f"the text is {name!r}: {CORPUS[name]!a:.1000}")
        raise
