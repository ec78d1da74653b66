"""Comparison of responses with expected texts and numbers, given texts, and patterns."""

from abc import abstractmethod
from decimal import Decimal
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from ci_eval.criteria._invocation_turns import Turn, averaged, compared, pairs
from ci_eval.criteria._numbers_in_text import DecimalMark, decimal, near, numbers
from ci_eval.criteria._response_text import said
from ci_eval.criteria._share_score import Share, Texts, share
from ci_eval.plugins.points import criterion
from ci_eval.records.cases import EvalCase, Invocation, Json, Status
from ci_eval.records.results import Score
from ci_eval.records.stated_expectations import Expectation
from ci_eval.records.trials import Trace
from ci_eval.text.patterns import Pattern, matches

_EXACT_IN_FLOAT = 2**53
"""Up to here, every integer is a `float`, too."""
_MAX_NUMBERS = 20
"""Maximum number of a response's numbers in the evidence."""


@criterion("ci/exact_match")
class ExactMatch(Share):
    """The share of responses that equal the expected text.

    Compares each final response with the expected one of its invocation: 1 if they are equal, 0
    if they differ or there is no response. The value is the mean over the invocations that expect a
    response; a case without one is skipped. With `expected`, only the last response is compared,
    with that text. Thoughts are not part of a response.
    """

    needs_reference = True
    shorthand = "expected"

    expected: str | None = None
    """Expected text of the last response, instead of those of the cases."""
    strip: bool = True
    """Ignore white space at both ends."""
    ignore_case: bool = False
    """Ignore case."""

    @property
    def compared(self) -> Expectation | None:
        """The expected response, unless there is a fixed text."""
        return "reply" if self.expected is None else None

    def score(self, case: EvalCase, trace: Trace) -> Score:
        """Compare each expected response, or the last one with the fixed text."""
        if self.expected is not None:
            turns = [self._turn(self.expected, turn) for turn in trace.invocations[-1:]]
            return averaged(self, turns)
        return compared(
            self, case, trace, lambda expected, actual: self._turn(said(expected), actual)
        )

    def _turn(self, expected: str, actual: Invocation) -> Turn:
        response = said(actual)
        is_there = actual.final_response is not None
        equal = is_there and self._plain(expected) == self._plain(response)
        return Turn(float(equal), {"expected": expected, "actual": response})

    def _plain(self, text: str) -> str:
        text = text.strip() if self.strip else text
        return text.casefold() if self.ignore_case else text


class InResponses(Share):
    """A search in responses."""

    absent: bool = False
    """Require that there is no match."""
    ignore_case: bool = False
    """Ignore case."""
    responses: Literal["last", "all"] | None = None
    """`last`: search only the last response. `all`: search each response of the conversation; a
    match in one is enough. Default: `last`, but `all` with `absent`."""

    def score(self, case: EvalCase, trace: Trace) -> Score:
        """Search the selected responses."""
        del case
        if not trace.invocations:
            return self.scored(None, reason="the conversation has no response")
        which = self.responses or ("all" if self.absent else "last")
        meant = trace.invocations if which == "all" else trace.invocations[-1:]
        if self.absent and all(each.final_response is None for each in meant):
            return self.unscored(Status.ERROR, "there is no response to search")
        return self.judged_by([said(each) for each in meant if each.final_response is not None])

    @abstractmethod
    def judged_by(self, responses: list[str]) -> Score:
        """Score the texts of the responses; none if the agent gave no response."""


@criterion("ci/contains")
class Contains(InResponses):
    """The share of given texts that the response contains.

    1 if it contains all of them, 0 if none. Searches the last response of the conversation. With
    `any`, one of the texts is enough; with `absent`, the value is the share of texts that no
    response contains, and an error if there is no response at all. White space matters, and
    thoughts are not part of a response.
    """

    shorthand = "text"
    example: ClassVar = {"text": ["refunded", "order 7"]}

    text: Texts
    """A text, or a list of texts."""
    any: bool = False
    """Require only one of the texts."""

    @model_validator(mode="after")
    def _any_or_absent(self) -> Self:
        if self.any and self.absent:
            raise ValueError("'any' and 'absent' cannot be combined")
        return self

    def judged_by(self, responses: list[str]) -> Score:
        """Search for each text."""
        plain = [self._plain(response) for response in responses]
        found = [any(self._plain(text) in response for response in plain) for text in self.text]
        value = float(any(found)) if self.any else share(each != self.absent for each in found)
        wrong: list[Json] = [
            text for text, is_there in zip(self.text, found, strict=True) if is_there == self.absent
        ]
        evidence: dict[str, Json] = {
            "found" if self.absent else "missing": wrong,
            "actual": "\n\n".join(responses),
        }
        return self.scored(value, evidence=evidence)

    def _plain(self, text: str) -> str:
        return text.casefold() if self.ignore_case else text


@criterion("ci/regex")
class Regex(InResponses):
    r"""Whether the response matches a regular expression: 1 or 0.

    Searches the last response of the conversation. With `absent`, the value is 1 if no response
    matches, and an error if there is no response at all. The syntax is that of Python's `re`, with
    flags inside the pattern: `(?s)` lets a dot match a newline, `(?m)` lets `^` and `$` match at
    each line. A search that takes more than a second is an error. Thoughts are not part of a
    response.
    """

    shorthand = "pattern"
    example: ClassVar = {"pattern": r"[Oo]rder \d+"}

    pattern: Pattern
    """Pattern to find anywhere in the response."""
    full: bool = False
    """Require that the pattern matches the whole response."""

    def judged_by(self, responses: list[str]) -> Score:
        """Search for the pattern."""
        found = [text for text in responses if self._matches(text)]
        evidence: dict[str, Json] = {
            "unwanted_pattern" if self.absent else "pattern": self.pattern,
            "actual": "\n\n".join(found if self.absent else responses),
        }
        return self.scored(float(bool(found) != self.absent), evidence=evidence)

    def _matches(self, text: str) -> bool:
        return matches(self.pattern, text, ignore_case=self.ignore_case, full=self.full)


def _whole(value: object) -> object:
    """Return a number as `float`, or as it is if that would change it."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _EXACT_IN_FLOAT:
        return float(value)
    return value


@criterion("ci/numeric")
class Numeric(Share):
    """The share of responses that give the expected number, within a tolerance.

    Compares the last number of each final response with the last number of the expected one: 1 if
    they differ by at most the larger of the two tolerances, 0 if they do not or the response has no
    number. The value is the mean over the invocations that expect a number; a case without one is
    skipped. With `value`, only the last response is compared, with that number.

    `1,234.5`, `1'234.5` and `-1.2345e3` are numbers, and so are `$1,234.50` and `12` in `12 %`:
    units are ignored. Thousands are separated by commas, apostrophes and narrow or non-breaking
    spaces, always before three digits. A digit after a letter, as in `H2O`, does not start a
    number, and a hyphen after a letter or a digit, as in `2024-05`, is not a sign.
    """

    needs_reference = True
    shorthand = "value"

    value: Annotated[float | int, BeforeValidator(_whole)] | None = None
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
            last = [self._turn(wanted, said(each)) for each in trace.invocations[-1:]]
            return averaged(self, last)
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
        shown: list[Json] = [str(each) for each in self._picked(response)[:_MAX_NUMBERS]]
        evidence = {"expected_number": str(wanted), "numbers": shown, "actual": response}
        return Turn(float(fits), evidence)

    def _picked(self, text: str) -> list[Decimal]:
        """Return the numbers of `text` selected by `pick`."""
        found = list(numbers(text, self.decimal_mark))
        return {"first": found[:1], "last": found[-1:], "any": found}[self.pick]
