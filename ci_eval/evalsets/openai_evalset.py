"""OpenAI chat completions as expected conversations."""

from collections.abc import Iterator, Mapping, Sequence

from ci_eval.evalsets._evalset_reading import CaseFile, CaseReader, MadeNames, Notes, notes_on
from ci_eval.formats.event_lists import as_expected, invocations
from ci_eval.formats.openai_messages import is_talk, read_talk, talks_in
from ci_eval.plugins.points import evalset
from ci_eval.records.cases import EvalCase, Json
from ci_eval.text.json_stream import Element


@evalset("openai")
class OpenAI(CaseReader):
    """Message lists of OpenAI's chat completions as expected conversations.

    JSONL with one conversation per line, or JSON with one conversation or a list of them.  A
    conversation is an object with `messages`, or only the list of messages; the object may also
    have `eval_id` or `id` (or `eval_id` in `metadata`) and `tags`; other keys, such as `model` or
    `tools`, are ignored.  Without an id it is named after the user's messages, as with `cases`.

    Each `user` message begins an invocation; several in a row are one message.  `system` and
    `developer` messages, and assistant messages before the first user message, are left out.  The
    assistant's last text without calls is the expected final response, earlier texts are
    intermediate responses, and `tool_calls` (or the older `function_call`) are the expected tools;
    a conversation without any call, and without an empty `tool_calls`, does not state which tools
    are called.  The `arguments` of a call are JSON text; if they are not an object, they are stored
    under `arguments`.  A `tool` or `function` message answers the call of its `tool_call_id`, or
    else the first open call of its name; if it is not a JSON object, it is stored under `result`.
    Text, images, audio and files in a message are kept.
    """

    syntaxes = frozenset({"json", "jsonl"})

    @classmethod
    def sniff(cls, head: Mapping[str, Json] | Sequence[Json] | None) -> bool:
        """Return True if it begins with a conversation."""
        return is_talk(head)

    def cases(self, file: CaseFile) -> Iterator[EvalCase]:
        """Yield the valid cases of `file`, and note the problems of the others."""
        for element, base in talks_in(file.path, shown=file.shown, refuse=file.problems.add):
            yield from _case(element, file.names, notes_on(element, base, file.problems))


def _case(element: Element, names: MadeNames, notes: Notes) -> Iterator[EvalCase]:
    talk, wrong = read_talk(element.value)
    for loc, message in wrong:
        notes.error(message, loc)
    if talk is None:
        return
    # An empty list states that no tool is called; a missing one states nothing.
    stated = any(each.tool_calls == () for each in talk.messages)
    conversation = as_expected(invocations(talk.events()), stated=stated)
    prompts = [turn.user for turn in conversation]
    case_id = names.id_of(talk.case or talk.id, prompts, element.line, notes)
    if case_id is not None:
        yield EvalCase(
            eval_id=case_id, conversation=conversation, tags=talk.tags, line=element.line
        )
