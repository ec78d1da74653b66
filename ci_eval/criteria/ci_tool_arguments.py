"""How well the arguments of tool calls are the expected ones."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from ci_eval.criteria._argument_rules import EXACT, ArgumentRule, Rule
from ci_eval.criteria._assignment import best_total
from ci_eval.criteria._share import Share, share
from ci_eval.criteria._trajectory import NOT_CAPTURED, calls_of, is_captured, shown
from ci_eval.criteria._turns import Turn, averaged, pairs
from ci_eval.plugins.points import criterion
from ci_eval.records.errors import TrialError
from ci_eval.records.model import EvalCase, Invocation, Json, Status, ToolCall
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace

_MAX_PAIRS = 10_000
"""How many pairs of calls of one tool are compared in an invocation: some tenths of a second."""


@criterion("ci/tool_arguments")
class ToolArguments(Share):
    """The share of arguments that expected tool calls were made with, in the best pairing.

    In each invocation, every expected call is paired with an observed call of the same tool, or
    with none, so that their credits add up to the most. A pair's credit is the share of its
    arguments that fit: those of both calls count, an unexpected argument as one that does not
    fit. A call without a partner has no credit; an expected call without `args` asks for none in
    particular, and has full credit for any call of its tool. Order and further calls do not
    matter.

    The value of an invocation is the mean credit of its expected calls, that of a case the mean
    over the invocations that expect calls. A case that expects none is skipped, and a trace that
    does not tell of tools is an error.
    """

    reads_tool_calls: ClassVar[bool] = True
    needs_reference: ClassVar[bool] = True
    supports_scenario: ClassVar[bool] = False
    example: ClassVar = {"args": {"refund": {"reason": "ignore", "amount": {"tolerance": 0.01}}}}

    args: Mapping[str, Mapping[str, Rule]] = {}
    """How arguments are compared where not `exact`, by tool and argument, of which `*` stands for
    every other one: `ignore`, `subset` (the given value may hold more), `{regex: …}`,
    `{tolerance: 0.01}` or `{relative: 0.05}` for numbers."""
    allow_extra: bool = False
    """Do not count arguments that were given and not expected."""

    def lacks(self, case: EvalCase) -> str:
        """Say that no tool call is expected."""
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
        return Turn(credit / len(wanted), evidence)

    def _credit(self, wanted: Sequence[ToolCall], given: Sequence[ToolCall]) -> float:
        """Return what the calls of one tool are worth together."""
        if len(wanted) * len(given) > _MAX_PAIRS:
            message = (
                f"{len(given):,} calls of {wanted[0].name!r} in one invocation are more than can "
                f"be compared with {len(wanted):,} expected ones"
            )
            raise TrialError("unsupported", message)
        return best_total([[self._of_pair(one, other) for other in given] for one in wanted])

    def _of_pair(self, wanted: ToolCall, given: ToolCall) -> float:
        """Return the share of arguments that fit."""
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
        for rules in (self.args.get(tool, {}), self.args.get("*", {})):
            rule = rules.get(argument) or rules.get("*")
            if rule:
                return rule
        return EXACT
