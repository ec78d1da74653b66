"""Whether tool calls succeeded."""

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
"""How many failed calls the evidence names."""


@criterion("ci/tool_errors")
class ToolErrors(Share):
    """The share of tools' answers, over the conversation, that tell of no error.

    1 where no call failed, 0 where all did. A call failed where its answer has an `error` or an
    `exception` that says anything, `isError` or `is_error` true, `success` false, or a `status`
    of `error`, `failed` or `failure`; where its `result` is such an object; or where its `result`
    is a text that begins with `Error:`.

    Calls without a recorded answer are not counted. Where tools were called and no answer was
    recorded, and in a trace that does not tell of tools, the score is an error; a conversation
    without tool calls is skipped.
    """

    reads_tool_calls: ClassVar[bool] = True

    def score(self, case: EvalCase, trace: Trace) -> Score:
        """Look for errors in the answers."""
        del case
        if not trace.invocations:
            return self.scored(None, reason=NO_INVOCATION)
        if not is_captured(trace):
            return self.unscored(Status.ERROR, NOT_CAPTURED)
        answers = [each for invocation in trace.invocations for each in answers_of(invocation)]
        if not answers and not calls_of(trace.invocations):
            return self.scored(None, reason="no tool was called")
        if not answers:
            reason = "tools were called, but the trace does not say what they answered"
            return self.unscored(Status.ERROR, reason)
        wrong = [each for each in answers if has_failed(each.response)]
        failed: list[Json] = [
            {"name": each.name, "answer": each.response} for each in wrong[:_MAX_SHOWN]
        ]
        value = (len(answers) - len(wrong)) / len(answers)
        return self.scored(value, evidence={"failed_calls": failed})


def has_failed(answer: Json) -> bool:
    """Say whether what a tool answered tells of an error."""
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
