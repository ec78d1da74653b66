"""Tool calls over a whole conversation."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from ci_eval.criteria._share_score import Share
from ci_eval.records.cases import EvalCase, FunctionResponse, Invocation, Json, Status, ToolCall
from ci_eval.records.result_owners import result_owners
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace

NO_INVOCATION = "the conversation has no invocation"
NOT_CAPTURED = "the trace has no record of tool calls: 'intermediate_data' is missing"
_MAX_SHOWN = 100
"""Maximum number of calls in the evidence."""


class OfTrajectory(Share):
    """A share computed from the tool calls of the whole conversation."""

    reads_tool_calls = True

    def score(self, case: EvalCase, trace: Trace) -> Score:
        """Score all tool calls of the conversation, in order."""
        if not trace.invocations:
            return self.scored(None, reason=NO_INVOCATION)
        if not is_captured(trace):
            return self.unscored(Status.ERROR, NOT_CAPTURED)
        return self.judged_by(case, trace.invocations)

    @abstractmethod
    def judged_by(self, case: EvalCase, invocations: Sequence[Invocation]) -> Score:
        """Score the tool calls of `invocations`, at least one."""


def is_captured(trace: Trace) -> bool:
    """Return True if tool calls were recorded at all, even if there were none."""
    return any(each.intermediate_data is not None for each in trace.invocations)


def calls_of(invocations: Iterable[Invocation]) -> list[ToolCall]:
    """Return the tool calls of these invocations, in order."""
    return [call for invocation in invocations for call in invocation.tool_calls]


def answers_of(invocation: Invocation) -> list[FunctionResponse]:
    """Return the tool results, in order; the last one if several belong to the same call."""
    calls, answers = invocation.calls_and_responses()
    ids = {call.id for call in calls}
    last: dict[int | str, FunctionResponse] = {}
    owners = result_owners(calls, answers)
    for number, (owner, each) in enumerate(zip(owners, answers, strict=True)):
        of_earlier_call = each.id if each.id not in ids else None
        last[owner if owner is not None else of_earlier_call or ~number] = each
    return list(last.values())


def is_called(call: ToolCall, pattern: str) -> bool:
    """Return True if the call is one of the tool `pattern`, where `*` matches anything."""
    return fnmatchcase(call.name or "", pattern)


def shown(calls: Sequence[ToolCall]) -> list[Json]:
    """Return calls for the evidence."""
    return [{"name": call.name, "args": call.args} for call in calls[:_MAX_SHOWN]]
