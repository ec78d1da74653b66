"""Rules for matching an argument of a tool call with the expected one."""

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from ci_eval.criteria._json_values import equal, within
from ci_eval.criteria._numbers import decimal, near
from ci_eval.criteria._patterns import Pattern, matches
from ci_eval.records.model import Json, Record

Match = Literal["exact", "ignore", "subset"]
"""Comparisons without a parameter."""


class ArgumentRule(Record):
    """How to compare one argument; exactly one of these."""

    match: Match | None = None
    """`exact`: equal values. `subset`: the expected value is contained in the actual one, which may
    have more keys and elements. `ignore`: not compared."""
    regex: Pattern | None = None
    """The actual text contains a match of this pattern, whatever the expected one is."""
    tolerance: float | None = Field(default=None, ge=0)
    """Maximum absolute difference of the actual number from the expected one."""
    relative: float | None = Field(default=None, ge=0)
    """Maximum difference as a share of the expected number: 0.01 is one percent."""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        given = (self.match, self.regex, self.tolerance, self.relative)
        if sum(each is not None for each in given) != 1:
            raise ValueError("needs one of 'match', 'regex', 'tolerance' and 'relative'")
        return self

    def fits(self, expected: Json, actual: Json) -> bool:
        """Return True if the argument `actual` matches `expected`."""
        if self.regex is not None:
            return isinstance(actual, str) and matches(self.regex, actual)
        if self.match == "subset":
            return within(expected, actual)
        if self.match is not None:
            return equal(expected, actual)
        if not (_is_number(expected) and _is_number(actual)):
            return False
        return near(
            decimal(actual),
            decimal(expected),
            tolerance=self.tolerance or 0,
            relative=self.relative or 0,
        )


def _spelled_out(value: object) -> object:
    return {"match": value} if isinstance(value, str) else value


Rule = Annotated[
    ArgumentRule, BeforeValidator(_spelled_out, json_schema_input_type=Match | ArgumentRule)
]
"""A rule, or the name of a comparison."""
EXACT = ArgumentRule(match="exact")


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
