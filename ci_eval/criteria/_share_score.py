"""Shared parts of criteria whose score is a share, with 1.0 as the default threshold."""

from collections.abc import Iterable, Sequence
from typing import Annotated

from pydantic import BeforeValidator, Field

from ci_eval.plugins.points import Criterion
from ci_eval.records.bounds import Value
from ci_eval.text.validation_messages import describe


class Share(Criterion):
    """A share from 0 to 1; by default all of it is required."""

    threshold: Value | None = 1.0
    """Cases with at least this share pass."""


def share(holding: Iterable[bool]) -> float:
    """Return the share of true values; `holding` must not be empty."""
    found = list(holding)
    return sum(found) / len(found)


def _listed(value: object) -> object:
    if not isinstance(value, str | list | tuple):
        raise ValueError(f"expected a text or a list of texts, found {describe(value)}")  # noqa: TRY004  # pydantic's
    return (value,) if isinstance(value, str) else value


NotEmpty = Annotated[str, Field(min_length=1)]
"""A non-empty text."""
Texts = Annotated[
    tuple[NotEmpty, ...],
    BeforeValidator(_listed, json_schema_input_type=NotEmpty | Sequence[NotEmpty]),
    Field(min_length=1),
]
"""A text, or a list of texts."""
