"""Errors in tool results."""

from collections.abc import Mapping
from typing import ClassVar

from ci_eval.criteria._share import Share
from ci_eval.criteria._trajectory import (
    NO_INVOCATION,
    NOT_CAPTURED,
    answers_of,
    calls_of,
    is_captured,
)
from ci_eval.plugins.points import criterion
from ci_eval.records.model import EvalCase, Json, Status
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace

_FAILED = frozenset({"error", "failed", "failure"})
_MAX_SHOWN = 20
"""Maximum number of failed calls in the evidence."""


@criterion("ci/tool_errors")
class ToolErrors(Share):
    """The share of tool results in the conversation that are not errors.

    1 if no call failed, 0 if all did. A call failed if its result has a non-empty `error` or
    `exception`, `isError` or `is_error` true, `success` false, or a `status` of `error`, `failed`
    or `failure`; if its `result` is such an object; or if its `result` is a text that begins with
    `Error:`.

    Calls without a recorded result do not count. If tools were called but no result was recorded,
    and in a trace without a record of tool calls, the score is an error; a conversation without
    tool calls is skipped.
    """

    reads_tool_calls: ClassVar[bool] = True

    def score(self, case: EvalCase, trace: Trace) -> Score:
        """Look for errors in the results."""
        del case
        if not trace.invocations:
            return self.scored(None, reason=NO_INVOCATION)
        if not is_captured(trace):
            return self.unscored(Status.ERROR, NOT_CAPTURED)
        answers = [each for invocation in trace.invocations for each in answers_of(invocation)]
        if not answers and not calls_of(trace.invocations):
            return self.scored(None, reason="no tool was called")
        if not answers:
            reason = "tools were called, but the trace has no record of their results"
            return self.unscored(Status.ERROR, reason)
        wrong = [each for each in answers if has_failed(each.response)]
        failed: list[Json] = [
            {"name": each.name, "answer": each.response} for each in wrong[:_MAX_SHOWN]
        ]
        value = (len(answers) - len(wrong)) / len(answers)
        return self.scored(value, evidence={"failed_calls": failed})


def has_failed(answer: Json) -> bool:
    """Return True if a tool result is an error."""
    if not isinstance(answer, Mapping):
        return False
    result = answer.get("result")
    if isinstance(result, str):
        return result.lstrip().lower().startswith("error:") or _tells_of_error(answer)
    return _tells_of_error(answer) or (isinstance(result, Mapping) and _tells_of_error(result))


def _tells_of_error(answer: Mapping[str, Json]) -> bool:
    status = answer.get("status")
    return (
        bool(answer.get("error"))
        or bool(answer.get("exception"))
        or answer.get("isError") is True
        or answer.get("is_error") is True
        or answer.get("success") is False
        or (isinstance(status, str) and status.strip().lower() in _FAILED)
    )
