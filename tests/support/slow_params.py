"""Parameters of which only some are tried in every run."""

from collections.abc import Iterable
from typing import Any

import pytest


def some(values: Iterable[Any], most: int) -> list[Any]:
    """Return parameters of a test; those behind the first `most` are slow."""
    given = [*values]
    return [*given[:most], *(_slow(each) for each in given[most:])]


def _slow(value: Any) -> Any:
    values = value if isinstance(value, tuple) else (value,)
    return pytest.param(*values, marks=pytest.mark.slow)
