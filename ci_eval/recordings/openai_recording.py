"""OpenAI chat completions as recordings."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ci_eval.formats.event_lists import invocations
from ci_eval.formats.openai_messages import is_talk, read_talk, talks_in
from ci_eval.plugins.points import RecordingReader, recording
from ci_eval.recordings._recording_reading import numbered, refuse_long
from ci_eval.records.cases import Json
from ci_eval.records.trials import Recording
from ci_eval.text.file_problems import FileProblems
from ci_eval.text.yaml_files import dotted


@recording("openai")
class OpenAIMessages(RecordingReader):
    """Message lists of OpenAI's chat completions, as recorded conversations.

    JSONL with one conversation per line, or JSON with one conversation or a list of them, in the
    same format as the evalset format `openai`.  `eval_id`, or `eval_id` in `metadata`, names the
    case; an `id` may be the id of a case; otherwise the user's messages must be exactly those of
    the case.  Several conversations of a case are its repeats, in the order of the file.
    """

    syntaxes = frozenset({"json", "jsonl"})

    @classmethod
    def sniff(cls, head: Mapping[str, Json] | Sequence[Json] | None) -> bool:
        """Return True if it begins with a conversation."""
        return is_talk(head)

    def read(self, path: Path, *, shown: str) -> Iterator[Recording]:
        """Yield the conversations of the file at `path`."""
        refuse_long(path, shown=shown)
        problems = FileProblems(shown)
        found = []
        for element, where in talks_in(path, shown=shown, refuse=problems.add):
            talk, wrong = read_talk(element.value)
            for loc, message in wrong:
                problems.add(message, element.line_of(loc), dotted((*where, *loc)))
            if talk:
                turns = invocations(talk.events())
                found.append(Recording(eval_id=talk.case, session=talk.id, invocations=turns))
        problems.raise_errors()
        return numbered(found)
