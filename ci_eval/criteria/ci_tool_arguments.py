"""Comparison of the arguments of tool calls with the expected ones."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from ci_eval.criteria._best_assignment import best_total
from ci_eval.criteria._invocation_turns import Turn, averaged, pairs
from ci_eval.criteria._numbers_in_text import decimal, near
from ci_eval.criteria._share_score import Share, share
from ci_eval.criteria._tool_trajectory import NOT_CAPTURED, calls_of, is_captured, shown
from ci_eval.plugins.points import criterion
from ci_eval.records.cases import EvalCase, Invocation, Json, Record, Status, ToolCall
from ci_eval.records.errors import TrialError
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace
from ci_eval.runtime.workers.canned_tools import equal
from ci_eval.text.json_text import is_number
from ci_eval.text.patterns import Pattern, matches

_MAX_PAIRS = 10_000
"""Maximum pairs of calls of one tool per invocation; comparing them takes a few 0.1 s."""


Match = Literal["exact", "ignore", "subset"]
"""Comparisons without a parameter."""


class ArgumentRule(Record):
    """How to compare one argument; exactly one field is set."""

    match: Match | None = None
    """`exact`: equal values. `subset`: the expected value is contained in the actual one, which may
    have more keys and elements. `ignore`: not compared."""
    regex: Pattern | None = None
    """The actual text contains a match of this pattern, whatever the expected value."""
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
        if not (is_number(expected) and is_number(actual)):
            return False
        tolerance, relative = self.tolerance or 0, self.relative or 0
        return near(decimal(actual), decimal(expected), tolerance=tolerance, relative=relative)


def within(expected: Json, actual: Json) -> bool:
    """Return True if `actual` contains `expected`.

    An object contains another if it has all the other's keys, each with a value that contains the
    other's value; a list contains another if each element of the other is contained in one of its
    own.
    """
    match expected, actual:
        case dict(), dict():
            return all(
                key in actual and within(value, actual[key]) for key, value in expected.items()
            )
        case list(), list():
            return all(any(within(each, other) for other in actual) for each in expected)
        case _:
            return equal(expected, actual)


def _spelled_out(value: object) -> object:
    return {"match": value} if isinstance(value, str) else value


Rule = Annotated[
    ArgumentRule, BeforeValidator(_spelled_out, json_schema_input_type=Match | ArgumentRule)
]
"""A rule, or the name of a comparison."""
EXACT = ArgumentRule(match="exact")


@criterion("ci/tool_arguments")
class ToolArguments(Share):
    """The share of expected arguments in the observed tool calls, in the best pairing.

    In each invocation, every expected call is paired with a different observed call of the same
    tool, or with none, so that the sum of credits is as high as possible. A pair's credit is the
    share of matching arguments among those of both calls; an unexpected argument does not match. A
    call without a partner has no credit; an expected call without `args` has full credit for any
    call of its tool. Order and further calls do not matter.

    The value of an invocation is the mean credit of its expected calls; the value of a case is the
    mean over the invocations that expect calls. A case that expects none is skipped, and a trace
    without a record of tool calls is an error.
    """

    reads_tool_calls = True
    needs_reference = True
    supports_scenario = False
    example: ClassVar = {"args": {"refund": {"reason": "ignore", "amount": {"tolerance": 0.01}}}}

    args: Mapping[str, Mapping[str, Rule]] = {}
    """How to compare arguments, by tool and argument; `*` stands for all others. `exact` (default),
    `ignore`, `subset` (the actual value may contain more), `{regex: …}`, or `{tolerance: 0.01}` or
    `{relative: 0.05}` for numbers."""
    allow_extra: bool = False
    """Ignore unexpected arguments."""

    def lacks(self, case: EvalCase) -> str:
        """Return a message if no tool call is expected; empty otherwise."""
        return "" if calls_of(case.conversation or ()) else "expects no tool call"

    def score(self, case: EvalCase, trace: Trace) -> Score:
        """Score each invocation that expects calls, and return the mean."""
        if trace.invocations and not is_captured(trace):
            return self.unscored(Status.ERROR, NOT_CAPTURED)
        return averaged(self, [self._turn(*pair) for pair in pairs(case, trace)])

    def _turn(self, expected: Invocation, actual: Invocation) -> Turn:
        wanted = expected.tool_calls
        if not wanted:
            return Turn(None)
        names = dict.fromkeys(call.name for call in wanted)
        given = [call for call in actual.tool_calls if call.name in names]
        credit = sum(
            self._credit(
                [call for call in wanted if call.name == name],
                [call for call in given if call.name == name],
            )
            for name in names
        )
        evidence: dict[str, Json] = {
            "expected_tool_calls": shown(wanted),
            "actual_tool_calls": shown(given),
        }
        return Turn(float(credit / len(wanted)), evidence)

    def _credit(self, wanted: Sequence[ToolCall], given: Sequence[ToolCall]) -> Fraction:
        """Return the total credit of the calls of one tool."""
        if len(wanted) * len(given) > _MAX_PAIRS:
            message = (
                f"too many calls of {wanted[0].name!r} to compare in one invocation: "
                f"{len(given):,} with {len(wanted):,} expected ones"
            )
            raise TrialError("unsupported", message)
        return best_total([[self._of_pair(one, other) for other in given] for one in wanted])

    def _of_pair(self, wanted: ToolCall, given: ToolCall) -> float:
        """Return the share of arguments that match."""
        if wanted.args is None:
            return 1.0
        actual = given.args or {}
        rules = {key: self._rule(wanted.name or "", key) for key in {**wanted.args, **actual}}
        fitting = [
            key in wanted.args and key in actual and rule.fits(wanted.args[key], actual[key])
            for key, rule in rules.items()
            if rule.match != "ignore" and (key in wanted.args or not self.allow_extra)
        ]
        return share(fitting) if fitting else 1.0

    def _rule(self, tool: str, argument: str) -> ArgumentRule:
        by_tool = (self.args.get(tool, {}), self.args.get("*", {}))
        found = (rules.get(argument) or rules.get("*") for rules in by_tool)
        return next(filter(None, found), EXACT)
