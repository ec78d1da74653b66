"""Criteria that ask for all of something: what they share."""

from collections.abc import Iterable, Sequence
from typing import Annotated

from pydantic import BeforeValidator, Field

from ci_eval.plugins.points import Criterion
from ci_eval.records.bounds import Value
from ci_eval.text.validation_messages import describe


class Share(Criterion):
    """A share from 0 to 1; the whole is asked for where no threshold says less."""

    threshold: Value | None = 1.0
    """The share from which on a case passes."""


def share(holding: Iterable[bool]) -> float:
    """Return how much of what was looked at holds; there must be something."""
    found = list(holding)
    return sum(found) / len(found)


def _listed(value: object) -> object:
    if not isinstance(value, str | list | tuple):
        raise ValueError(f"expected a text or a list of texts, found {describe(value)}")  # noqa: TRY004  # pydantic's
    return (value,) if isinstance(value, str) else value


NotEmpty = Annotated[str, Field(min_length=1)]
"""A text that says something."""
Texts = Annotated[
    tuple[NotEmpty, ...],
    BeforeValidator(_listed, json_schema_input_type=NotEmpty | Sequence[NotEmpty]),
    Field(min_length=1),
]
"""One text, or a list of them."""
