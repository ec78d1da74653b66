"""Comparison of numbers in responses."""

from decimal import Decimal
from typing import Literal

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
"""Maximum number of a response's numbers in the evidence."""


@criterion("ci/numeric")
class Numeric(Share):
    """The share of responses that give the expected number, within a tolerance.

    Compares the last number of each final response with the last number of the expected one: 1 if
    they differ by at most the larger of both tolerances, 0 if not, or if the response has no
    number. The value is the mean over the invocations that expect a number; a case without one is
    skipped. With `value`, only the last response is compared, with that number.

    `1,234.5`, `1'234.5` and `-1.2345e3` are numbers, and so are `$1,234.50` and `12` in `12 %`:
    units are ignored. Thousands are separated by commas, apostrophes and narrow or non-breaking
    spaces, always before three digits. A digit after a letter, as in `H2O`, does not start a
    number, and a hyphen after a letter or a digit, as in `2024-05`, is not a sign.
    """

    needs_reference = True
    shorthand = "value"

    value: float | None = None
    """Expected number of the last response, instead of those of the cases."""
    tolerance: float = Field(default=0.0, ge=0)
    """Maximum absolute difference."""
    relative: float = Field(default=0.0, ge=0)
    """Maximum difference as a share of the expected number: 0.01 is one percent."""
    pick: Literal["last", "first", "any"] = "last"
    """The number of a response that counts. `any`: one of them must equal the last number of the
    expected response."""
    decimal_mark: DecimalMark = "."
    """Decimal separator. `,` reads `1.234,5`, with dots between thousands."""

    def lacks(self, case: EvalCase) -> str:
        """Return a message if no number is expected; empty otherwise."""
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
        """Return the numbers of `text` selected by `pick`."""
        found = list(numbers(text, self.decimal_mark))
        return {"first": found[:1], "last": found[-1:], "any": found}[self.pick]
