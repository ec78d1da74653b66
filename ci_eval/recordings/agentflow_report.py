"""AgentFlow's JSON reports as recordings."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import Field

from ci_eval.formats.event_lists import separate_lists, stored_result
from ci_eval.plugins.points import RecordingReader, recording
from ci_eval.recordings._recording_reading import read_list, refuse_long
from ci_eval.records.cases import Content, FunctionCall, IntermediateData, Invocation, Json, Record
from ci_eval.records.trials import Recording
from ci_eval.text.json_text import read_json

_ID = "eval_set_id"
_CASES = "results"
_MERGED = "combined_eval"
"""The `eval_set_id` of the report that `agentflow eval` writes about several evalsets."""


@recording("agentflow_report")
class AgentFlowReport(RecordingReader):
    """A JSON report of AgentFlow (`eval_reports/*.json`): the conversations of its evaluation.

    The `turn_results` of each case in `results` are read, with the tool calls and the nodes
    visited, but not AgentFlow's scores.  `eval_id` names the case; several results of a case are
    its repeats, except in the one report that `agentflow eval` writes about several evalsets:
    there, they are of different evalsets, and cannot be told apart.  A case with an `error`, or
    without turns, could not be observed.  A turn without `tool_calls` or `node_visits` does not
    report them.
    """

    @classmethod
    def sniff(cls, head: Mapping[str, Json] | Sequence[Json] | None) -> bool:
        """Return True for a report of AgentFlow."""
        cases = head.get(_CASES) if isinstance(head, Mapping) else None
        first = cases[0] if isinstance(cases, Sequence) and cases else None
        return isinstance(first, Mapping) and {"eval_id", "criterion_results"} <= first.keys()

    def read(self, path: Path, *, shown: str) -> Iterator[Recording]:
        """Yield the conversations of the file at `path`."""
        refuse_long(path, shown=shown)
        document = read_json(path, shown=shown)
        found = list(read_list(document, _CASES, _Result, _recording))
        is_merged = isinstance(document.value, dict) and document.value.get(_ID) == _MERGED
        counts = Counter(each.eval_id for each in found if is_merged)
        for each in found:
            yield _of_unknown_evalset(each) if counts[each.eval_id] > 1 else each


class _Call(Record, extra="ignore"):
    name: str
    args: dict[str, Json] = Field(default_factory=dict)
    result: Json = None


class _Turn(Record, extra="ignore"):
    user_input: str
    agent_response: str = ""
    tool_calls: tuple[_Call, ...] | None = None
    node_visits: tuple[str, ...] | None = None


class _Result(Record, extra="ignore"):
    """One case of a report."""

    eval_id: str
    error: str | None = None
    turn_results: tuple[_Turn, ...] = ()
    duration_seconds: float = 0.0


def _of_unknown_evalset(given: Recording) -> Recording:
    error = (
        f"AgentFlow's report has several results of {given.eval_id!r} and does not say from which "
        "evalsets; write a report for each evalset, with an agent for each"
    )
    return Recording(eval_id=given.eval_id, repeat=given.repeat, error=error)


def _recording(result: _Result) -> Recording:
    """Return the conversation of one case."""
    if result.error or not result.turn_results:
        error = result.error or "AgentFlow's report has no turns of this case"
        return Recording(eval_id=result.eval_id, error=error)
    turns = tuple(map(_invocation, result.turn_results))
    if len(turns) == 1 and result.duration_seconds >= 0:
        turns = (turns[0].model_copy(update={"duration": result.duration_seconds}),)
    return Recording(eval_id=result.eval_id, invocations=turns)


def _invocation(turn: _Turn) -> Invocation:
    said = turn.agent_response
    return Invocation(
        user_content=Content.of_text(turn.user_input, role="user"),
        final_response=Content.of_text(said, role="model") if said else None,
        intermediate_data=None if turn.tool_calls is None else _trajectory(turn.tool_calls),
        unseen=turn.tool_calls is None,
        nodes=turn.node_visits,
    )


def _trajectory(given: Sequence[_Call]) -> IntermediateData:
    return separate_lists(
        (
            FunctionCall(id=str(number), name=call.name, args=call.args),
            None if call.result is None else stored_result(call.result),
        )
        for number, call in enumerate(given)
    )
