"""Whether tool calls succeeded."""

from collections.abc import Mapping, Sequence

from ci_eval.criteria._share import share
from ci_eval.criteria._trajectory import OfTrajectory
from ci_eval.plugins import criterion
from ci_eval.records import EvalCase, Json, Status, ToolCall
from ci_eval.results import Score

_FAILED = frozenset({"error", "failed", "failure"})
_MAX_SHOWN = 20
"""How many failed calls the evidence names."""


@criterion("ci/tool_errors")
class ToolErrors(OfTrajectory):
    """The share of tool calls that did not end in an error.

    1 where no call failed, 0 where all did. A call failed where its answer has an `error` or an
    `exception` that says anything, `isError` or `is_error` true, `success` false, or a `status`
    of `error`, `failed` or `failure`; where its `result` is such an object; or where its `result`
    is a text that begins with `Error:`.

    Calls without a recorded answer are not counted, and where no call has one the score is an
    error. A conversation without tool calls is skipped.
    """

    def judged_by(self, case: EvalCase, calls: Sequence[ToolCall]) -> Score:
        """Look for errors in the answers."""
        del case
        if not calls:
            return self.scored(None, reason="no tool was called")
        answered = [call for call in calls if call.result is not None]
        if not answered:
            reason = "tools were called, but the trace does not say what they answered"
            return self.unscored(Status.ERROR, reason)
        failed = [has_failed(call.result) for call in answered]
        wrong: list[Json] = [
            {"name": call.name, "args": call.args, "result": call.result}
            for call, is_wrong in zip(answered, failed, strict=True)
            if is_wrong
        ]
        value = share(not is_wrong for is_wrong in failed)
        return self.scored(value, evidence={"failed_calls": wrong[:_MAX_SHOWN]})


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
