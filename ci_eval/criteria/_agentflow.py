"""AgentFlow's criteria that need no judge: what they share; and which response is expected.

Documented semantics are what AgentFlow's documentation promises; observed ones are the formulas
that 10xscale-agentflow 0.10.1 computes.  `tests/vectors` holds the latter to the package.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from ci_eval.criteria._turns import pairs
from ci_eval.plugins.points import Criterion
from ci_eval.records.bounds import Value
from ci_eval.records.model import EvalCase, Invocation, Json, Status, ToolCall
from ci_eval.records.results import InvocationScore, Score
from ci_eval.records.stated import Expectation
from ci_eval.records.trials import Trace


class AgentFlowCriterion(Criterion):
    """A measure that AgentFlow documents."""

    threshold: Value | None = 0.8
    """The value from which on a case passes."""
    semantics: Literal["documented", "observed"] = "documented"
    """`observed`: the formula of the published package 10xscale-agentflow 0.10.1 instead."""


class Sequenced(AgentFlowCriterion):
    """A measure of what was done in a whole case, one turn's after the other's.

    The value is of all invocations that state what is expected, taken as one; the others are
    skipped.  Their own values are shown beside it; it is not the mean of these.
    """

    needs_reference: ClassVar[bool] = True
    supports_scenario: ClassVar[bool] = False
    unseen: ClassVar[str]
    """What is not there where nobody looked, and how an agent reports it."""
    may_be_left_out: ClassVar[bool] = False
    """Whether an agent that reports at all may leave out a turn in which there was nothing."""

    def score(self, case: EvalCase, trace: Trace) -> Score:
        """Score all invocations as one, and each of them."""
        every = list(pairs(case, trace))
        turns = [pair for pair in every if self.measures(case, pair[0])]
        if not turns:
            return self.scored(None, reason=self.unstated(case) or "has no invocation")
        unseen = [self.done(actual) is None for _, actual in turns]
        if all(unseen) or (any(unseen) and not self.may_be_left_out):
            return self.unscored(Status.ERROR, f"the agent did not report {self.unseen}")
        sides = [(self.done(expected) or (), self.done(actual) or ()) for expected, actual in turns]
        wanted = [item for expected, _ in sides for item in expected]
        done = [item for _, actual in sides for item in actual]
        values = iter([self.compare(*each) for each in sides])
        parts = [
            self._part(next(values) if self.measures(case, expected) else None)
            for expected, _ in every
        ]
        return self.scored(self.compare(wanted, done), parts, evidence=self.shown(wanted, done))

    def _part(self, value: float | None) -> InvocationScore:
        return InvocationScore(status=self.status_of(value), value=value)

    @abstractmethod
    def done(self, invocation: Invocation) -> Sequence[Any] | None:
        """Return what was done in `invocation`; `None` where nobody looked."""

    @abstractmethod
    def compare(self, expected: Sequence[Any], actual: Sequence[Any]) -> float:
        """Return how far `actual` is what is expected, from 0.0 to 1.0."""

    @abstractmethod
    def shown(self, expected: Sequence[Any], actual: Sequence[Any]) -> dict[str, Json]:
        """Return the evidence."""


def last_expected(case: EvalCase) -> str:
    """Return the last expected response that says something."""
    return next((turn.response for turn in reversed(case.conversation or ()) if turn.response), "")


def last_given(case: EvalCase) -> str:
    """Return the last expected response, which the package takes even where it is empty."""
    given = (turn for turn in reversed(case.conversation or ()) if turn.final_response is not None)
    return next((turn.response for turn in given), "")


class OfToolCalls(Sequenced):
    """A measure of the tool calls of a case."""

    reads_tool_calls: ClassVar[bool] = True
    compares: ClassVar[Expectation | None] = "tool_calls"
    unseen: ClassVar[str] = "its tool calls: an empty list is how it says that it made none"
    may_be_left_out: ClassVar[bool] = True

    def done(self, invocation: Invocation) -> Sequence[ToolCall] | None:
        """Return the tool calls."""
        return None if invocation.intermediate_data is None else invocation.tool_calls

    def shown(self, expected: Sequence[ToolCall], actual: Sequence[ToolCall]) -> dict[str, Json]:
        """Return both lists of calls."""
        return {
            "expected_tool_calls": [{"name": each.name, "args": each.args} for each in expected],
            "actual_tool_calls": [{"name": each.name, "args": each.args} for each in actual],
        }
