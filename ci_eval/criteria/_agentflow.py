"""Shared parts of AgentFlow's criteria without a judge.

"Documented" semantics are those of AgentFlow's documentation; "observed" ones are the formulas of
10xscale-agentflow 0.10.1, which `tests/vectors` compares with the package.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from ci_eval.criteria._turns import pairs
from ci_eval.plugins.points import Criterion
from ci_eval.records.bounds import Value
from ci_eval.records.model import EvalCase, Invocation, Json, Status, ToolCall
from ci_eval.records.results import InvocationScore, Score
from ci_eval.records.stated_expectations import Expectation
from ci_eval.records.trials import Trace


class AgentFlowCriterion(Criterion):
    """A measure documented by AgentFlow."""

    threshold: Value | None = 0.8
    """Cases with at least this value pass."""
    semantics: Literal["documented", "observed"] = "documented"
    """`observed` uses the formula of the published package 10xscale-agentflow 0.10.1 instead."""


class Sequenced(AgentFlowCriterion):
    """A measure of a whole case, with the steps of all its turns in one sequence.

    The value is computed over all invocations that state an expectation, taken as one sequence; the
    others are skipped.  The values of single invocations are shown, but are not averaged.
    """

    needs_reference: ClassVar[bool] = True
    supports_scenario: ClassVar[bool] = False
    unseen: ClassVar[str]
    """What is missing if the agent did not report it, and how an agent reports it."""
    may_be_left_out: ClassVar[bool] = False
    """Whether a reporting agent may omit turns without such a step."""

    def score(self, case: EvalCase, trace: Trace) -> Score:
        """Score all invocations as one sequence, and each by itself."""
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
        """Return the steps of `invocation`; `None` if the agent did not report any."""

    @abstractmethod
    def compare(self, expected: Sequence[Any], actual: Sequence[Any]) -> float:
        """Return how well `actual` matches `expected`, from 0.0 to 1.0."""

    @abstractmethod
    def shown(self, expected: Sequence[Any], actual: Sequence[Any]) -> dict[str, Json]:
        """Return the evidence for a score."""


def last_expected(case: EvalCase) -> str:
    """Return the last non-empty expected response."""
    return next((turn.response for turn in reversed(case.conversation or ()) if turn.response), "")


def last_given(case: EvalCase) -> str:
    """Return the last expected response, even if it is empty, as the package does."""
    given = (turn for turn in reversed(case.conversation or ()) if turn.final_response is not None)
    return next((turn.response for turn in given), "")


class OfToolCalls(Sequenced):
    """A measure of the tool calls of a case."""

    reads_tool_calls: ClassVar[bool] = True
    compares: ClassVar[Expectation | None] = "tool_calls"
    unseen: ClassVar[str] = "its tool calls (an empty list means that it made none)"
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
