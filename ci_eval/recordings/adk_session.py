"""ADK's sessions as recordings."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ci_eval.formats.event_lists import invocations
from ci_eval.plugins.points import RecordingReader, recording
from ci_eval.recordings._recording_reading import read_each
from ci_eval.records.cases import AdkRecord, InvocationEvent, Json
from ci_eval.records.trials import Recording
from ci_eval.text.json_text import read_json
from ci_eval.text.yaml_files import Loc


@recording("adk_session")
class AdkSession(RecordingReader):
    """A session of ADK: `{"id", "events": [{"author", "content", …}], "state"}`.

    In the format of ADK's session services, `adk run --save_session` and the web UI, or a list of
    sessions.  Each user message begins an invocation; the last text without calls is its final
    response.  Partial events of a streaming model are left out, because the complete event follows.
    Token counts are those of the events.  The `id` may be the id of a case; otherwise the user's
    messages must be exactly those of the case.  `state` is the final state.
    """

    @classmethod
    def sniff(cls, head: Mapping[str, Json] | Sequence[Json] | None) -> bool:
        """Return True for a session, or a list of sessions."""
        if isinstance(head, list) and head:
            head = head[0]
        if not isinstance(head, Mapping) or "id" not in head:
            return False
        events = head.get("events")
        return isinstance(events, list) and all(
            isinstance(each, Mapping) and "author" in each for each in events
        )

    def read(self, path: Path, *, shown: str) -> Iterator[Recording]:
        """Yield the conversations of the file at `path`."""
        document = read_json(path, shown=shown)
        sessions: dict[Loc, Json] = {(): document.value}
        if isinstance(document.value, list):
            sessions = {(position,): given for position, given in enumerate(document.value)}
        return iter(read_each(document, sessions, _Session, _recording))


class _Event(InvocationEvent):
    """One event of a session; most of ADK's fields are ignored."""

    partial: bool | None = None


class _Session(AdkRecord, extra="ignore"):
    """One session."""

    id: str
    events: tuple[_Event, ...]
    state: dict[str, Any] | None = None


def _recording(session: _Session) -> Recording:
    turns = invocations(event for event in session.events if not event.partial)
    if not turns:
        error = "the session has no user message"
        return Recording(session=session.id, error=error)
    return Recording(session=session.id, invocations=turns, final_state=session.state)
