"""ADK's result files as recordings."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ci_eval.formats import known_formats
from ci_eval.plugins.points import RecordingReader, recording
from ci_eval.recordings._recording_reading import read_list
from ci_eval.records.cases import AdkRecord, Invocation, Json
from ci_eval.records.trials import Recording
from ci_eval.text.json_text import parse_strict, read_json


@recording("adk_result")
class AdkResult(RecordingReader):
    """A result file of ADK (`*.evalset_result.json`): the conversations of an ADK evaluation.

    The `actual_invocation` of every turn of each case in `eval_case_results` is read, but not
    ADK's scores.  `eval_id` names the case; several results of a case are its repeats.  In a case
    without turns, the agent failed.  The format of older ADK versions, JSON inside a JSON string,
    is supported, too.
    """

    @classmethod
    def sniff(cls, head: Mapping[str, Json] | Sequence[Json] | None) -> bool:
        """Return True for ADK's results, or a JSON string that may contain them."""
        return known_formats.is_adk_result(head) or known_formats.is_json_in_text(head)

    def read(self, path: Path, *, shown: str) -> Iterator[Recording]:
        """Yield the conversations of the file at `path`."""
        document = read_json(path, shown=shown)
        if isinstance(document.value, str):
            document = parse_strict(document.value, shown=shown)
        value = document.value if isinstance(document.value, dict) else {}
        is_camel = isinstance(value.get("evalCaseResults"), list)
        key = "evalCaseResults" if is_camel else "eval_case_results"
        return read_list(document, key, _Result, _recording)


class _Observed(AdkRecord, extra="ignore"):
    """One turn of a result; ADK's scores are ignored."""

    actual_invocation: Invocation


class _Result(AdkRecord, extra="ignore"):
    """One case of a result."""

    eval_id: str
    eval_metric_result_per_invocation: tuple[_Observed, ...] | None = None


def _recording(result: _Result) -> Recording:
    """Return the conversation of one case of a result file."""
    turns = result.eval_metric_result_per_invocation
    if not turns:
        error = "ADK's result has no invocation, because the agent failed"
        return Recording(eval_id=result.eval_id, error=error)
    actual = tuple(turn.actual_invocation for turn in turns)
    return Recording(eval_id=result.eval_id, invocations=actual)
