"""Traces of agents-cli."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ci_eval.formats.agents_cli_cases import AgentsCliCase, is_agents_cli, is_answered
from ci_eval.formats.event_lists import invocations
from ci_eval.plugins.points import RecordingReader, recording
from ci_eval.recordings._recording_reading import read_list, refuse_long
from ci_eval.records.cases import Json
from ci_eval.records.trials import Recording
from ci_eval.text.json_text import read_json


@recording("agents_cli")
class AgentsCliTrace(RecordingReader):
    """A trace of agents-cli: `{"eval_cases": [{"eval_case_id", "agent_data", "responses"}]}`.

    The conversation is `prompt` and the events of `agent_data.turns`; each user message begins an
    invocation, and its final response is the last text without calls.  An answer that is only in
    `responses` comes last.  `eval_case_id` names the case; without it, the user's messages must be
    exactly those of the case.
    """

    @classmethod
    def sniff(cls, head: Mapping[str, Json] | Sequence[Json] | None) -> bool:
        """Return True if the first case is from agents-cli and has an agent's answer."""
        return is_agents_cli(head) and is_answered(head)

    def read(self, path: Path, *, shown: str) -> Iterator[Recording]:
        """Yield the conversations of the file at `path`."""
        refuse_long(path, shown=shown)
        document = read_json(path, shown=shown)
        return read_list(document, "eval_cases", AgentsCliCase, _recording)


def _recording(case: AgentsCliCase) -> Recording:
    return Recording(eval_id=case.eval_case_id, invocations=invocations(case.events()))
