"""Datasets of agents-cli."""

from collections.abc import Iterator, Mapping, Sequence

from ci_eval.evalsets._case_entries import Entry, Source
from ci_eval.evalsets._evalset_reading import CaseFile, CaseReader, MadeNames
from ci_eval.formats.agents_cli_cases import AgentsCliCase, is_agents_cli, is_answered
from ci_eval.formats.event_lists import as_expected, invocations
from ci_eval.plugins.points import evalset
from ci_eval.records.cases import EvalCase, Json


@evalset("agents_cli")
class AgentsCliDataset(CaseReader):
    """A dataset of agents-cli: `{"eval_cases": [{"eval_case_id", "prompt"}, …]}`.

    A case is the message in `prompt`, or the conversation in `agent_data.turns[].events`.  The
    user's messages in it are sent one after the other, and the agent's messages are the expected
    responses, whereas agents-cli passes them to the agent as history; a warning says so.  The
    `reference` is the expected response to the last message.  A conversation without any tool call
    does not state which tools are called.  A case without an id is named after the user's messages,
    as with `cases`.
    """

    @classmethod
    def sniff(cls, head: Mapping[str, Json] | Sequence[Json] | None) -> bool:
        """Return True if the first case is from agents-cli and has no agent's answer."""
        return is_agents_cli(head) and not is_answered(head)

    def cases(self, file: CaseFile) -> Iterator[EvalCase]:
        """Yield the valid cases of `file`, and note the problems of the others."""
        for entry in Source(file, "eval_cases").entries():
            yield from _case(entry, file.names)


def _case(entry: Entry, names: MadeNames) -> Iterator[EvalCase]:
    given = entry.notes.validated(AgentsCliCase, entry.value)
    if given is None:
        return
    conversation = invocations(given.events())
    prompts = [turn.user for turn in conversation]
    case_id = names.id_of(given.eval_case_id, prompts, entry.line, entry.notes)
    if case_id is None:
        return
    for key in entry.value:
        if key not in AgentsCliCase.model_fields:
            entry.notes.warning("is ignored", (key,))
    if any(turn.final_response for turn in conversation):
        message = "the agent's messages are used as expectations; agents-cli sends them as history"
        entry.notes.warning(message, ("agent_data",))
    if given.reference and (expected := given.reference.response) and expected.parts:
        last = conversation[-1].model_copy(update={"final_response": expected})
        conversation = (*conversation[:-1], last)
    yield EvalCase(eval_id=case_id, conversation=as_expected(conversation), line=entry.line)
