"""Whether a response gives the right number."""

from decimal import Decimal
from typing import ClassVar, Literal

from pydantic import Field

from ci_eval.criteria._numbers import DecimalMark, decimal, near, numbers
from ci_eval.criteria._responses import said
from ci_eval.criteria._share import Share
from ci_eval.criteria._turns import Turn, averaged, pairs
from ci_eval.plugins.points import criterion
from ci_eval.records.model import EvalCase, Json
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace

_MAX_SHOWN = 20
"""How many of a response's numbers the evidence names."""


@criterion("ci/numeric")
class Numeric(Share):
    """The share of responses that give the expected number, within a tolerance.

    Each final response is compared with the expected one of its invocation, of each the last
    number: 1 where they are as near as the larger of both tolerances allows, 0 where they are
    not or the response has no number. The value is the mean over the invocations that expect a
    number; a case without one is skipped. With `value`, the last response alone is compared,
    with that number.

    `1,234.5`, `1'234.5` and `-1.2345e3` are numbers, and so are `$1,234.50` and `12` in `12 %`:
    units are not looked at. Thousands are separated by commas, apostrophes and narrow or
    non-breaking spaces, always before three digits. A digit that follows a letter, as in `H2O`,
    begins no number, and a hyphen that follows a letter or a digit, as in `2024-05`, is no sign.
    """

    needs_reference: ClassVar[bool] = True
    shorthand: ClassVar[str] = "value"

    value: float | None = None
    """The number of the last response, instead of what the cases expect."""
    tolerance: float = Field(default=0.0, ge=0)
    """How far off it may be."""
    relative: float = Field(default=0.0, ge=0)
    """How far off it may be, as a share of the expected number: 0.01 is one percent."""
    pick: Literal["last", "first", "any"] = "last"
    """Which number of a response counts. `any`: one of them all must be the expected one, which
    is the last of the expected response."""
    decimal_mark: DecimalMark = "."
    """What stands before a fraction. `,` reads `1.234,5`, with dots before thousands."""

    def lacks(self, case: EvalCase) -> str:
        """Say that no number is expected."""
        if self.value is not None:
            return ""
        expected = (self._picked(said(turn)) for turn in case.conversation or ())
        return "" if any(expected) else "expects no number"

    def score(self, case: EvalCase, trace: Trace) -> Score:
        """Compare the numbers of each invocation."""
        if self.value is not None:
            wanted = decimal(self.value)
            return averaged(
                self, [self._turn(wanted, said(each)) for each in trace.invocations[-1:]]
            )
        turns = []
        for expected, actual in pairs(case, trace):
            found = self._picked(said(expected))
            turns.append(self._turn(found[-1], said(actual)) if found else Turn(None))
        return averaged(self, turns)

    def _turn(self, wanted: Decimal, response: str) -> Turn:
        fits = any(
            near(found, wanted, tolerance=self.tolerance, relative=self.relative)
            for found in self._picked(response)
        )
        shown: list[Json] = [str(each) for each in self._picked(response)[:_MAX_SHOWN]]
        evidence = {"expected_number": str(wanted), "numbers": shown, "actual": response}
        return Turn(float(fits), evidence)

    def _picked(self, text: str) -> list[Decimal]:
        """Return the numbers of `text` that count."""
        found = list(numbers(text, self.decimal_mark))
        return {"first": found[:1], "last": found[-1:], "any": found}[self.pick]
