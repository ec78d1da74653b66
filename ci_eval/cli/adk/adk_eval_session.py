"""The session of a case in ADK's result files, which `adk web` shows."""

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import uuid4

from pydantic import Field

from ci_eval.formats.event_lists import trajectory_events
from ci_eval.records.cases import (
    Content,
    EvalCase,
    Invocation,
    Json,
    Record,
)

_PREFIX = "adk-eval-session-"
"""Prefix of the session ids that `adk eval` generates."""
_DEFAULT_USER = "test_user_id"


class Event(Record):
    """One message of a session."""

    id: str = Field(default_factory=lambda: str(uuid4()))
    invocation_id: str
    author: str
    content: Content | None = None
    timestamp: float


class SessionDetails(Record):
    """A session like ADK's `Session`, without the fields that were not observed."""

    id: str
    app_name: str
    user_id: str
    state: dict[str, Json] = Field(default_factory=dict)
    events: tuple[Event, ...] = ()
    last_update_time: float = 0.0


def session_details(
    case: EvalCase, app: str, seen: Sequence[Invocation], state: dict[str, Json] | None
) -> SessionDetails:
    """Return the session of a finished case; `state` is its final state."""
    given = case.session_input
    return SessionDetails(
        id=(given.session_id if given else None) or f"{_PREFIX}{uuid4()}",
        app_name=(given.app_name if given else None) or app,
        user_id=(given.user_id if given else None) or _DEFAULT_USER,
        state=state or {},
        events=tuple(event for each in seen for event in _events(each, app)),
        last_update_time=max((each.creation_timestamp for each in seen), default=0.0),
    )


def _events(invocation: Invocation, app: str) -> Iterator[Event]:
    at: dict[str, Any] = {
        "invocation_id": invocation.invocation_id or str(uuid4()),
        "timestamp": invocation.creation_timestamp,
    }
    yield Event(author="user", content=invocation.user_content, **at)
    for event in trajectory_events(invocation, app):
        if event.content:
            yield Event(author=event.author, content=event.content, **at)
    if invocation.final_response:
        yield Event(author=app, content=invocation.final_response, **at)
