"""Shared parts of AgentFlow's criteria without a judge.

"Documented" semantics are those of AgentFlow's documentation; "observed" ones are the formulas of
10xscale-agentflow 0.10.1, which `tests/vectors` compares with the package.
"""

from typing import Literal

from ci_eval.plugins.points import Criterion
from ci_eval.records.bounds import Value
from ci_eval.records.cases import EvalCase


class AgentFlowCriterion(Criterion):
    """A measure documented by AgentFlow."""

    threshold: Value | None = 0.8
    """Cases with at least this value pass."""
    semantics: Literal["documented", "observed"] = "documented"
    """`observed` uses the formula of the published package 10xscale-agentflow 0.10.1 instead."""


def last_expected(case: EvalCase) -> str:
    """Return the last non-empty expected response."""
    return next((turn.response for turn in reversed(case.conversation or ()) if turn.response), "")


def last_given(case: EvalCase) -> str:
    """Return the last expected response, even if it is empty, as the package does."""
    given = (turn for turn in reversed(case.conversation or ()) if turn.final_response is not None)
    return next((turn.response for turn in given), "")
