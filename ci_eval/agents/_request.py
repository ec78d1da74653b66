"""What an agent is given: the message, and what is known of the conversation."""

from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple

from ci_eval.records.errors import TrialError
from ci_eval.records.model import Content, Json, Part
from ci_eval.records.trials import Trial
from ci_eval.runtime.context import RunContext


def as_asked(message: Content) -> Json:
    """Return `message` as agents get it: its text, or all of it where it is more than text."""
    if message.is_plain_text:
        return message.text
    return message.model_dump(mode="json", exclude_none=True)


class Attachment(NamedTuple):
    """A file that goes along with a message: where it is, or what is in it."""

    mime_type: str | None
    uri: str | None
    data: str | None
    """Its bytes, as base64."""


def attachment(part: Part) -> Attachment | None:
    """Return the file that `part` is, if it is one; its keys may be in either spelling."""
    found = part.inline_data or part.file_data
    if not isinstance(found, dict):
        return None

    def text(*keys: str) -> str | None:
        given = next((found[key] for key in keys if found.get(key)), None)
        return None if given is None else str(given)

    return Attachment(text("mime_type", "mimeType"), text("file_uri", "fileUri"), text("data"))


def opening(trial: Trial, session_id: str) -> dict[str, Any]:
    """Return the session that the conversation of `trial` starts with.

    Its id is `session_id`, unless the case names one.
    """
    given = trial.case.session_input
    if given is None:
        user_id = "ci-eval"
        return {"id": session_id, "app_name": trial.key.agent, "user_id": user_id, "state": {}}
    return {
        "id": given.session_id or session_id,
        "app_name": given.app_name,
        "user_id": given.user_id,
        "state": given.state,
    }


def session_ids(context: RunContext) -> Iterator[str]:
    """Yield ids for the sessions of a run that no other run has.

    What is asked may remember a session for longer than a run, and others may ask it, too.
    """
    prefix = f"ci-eval-{context.now() * 1e6:.0f}-"
    return (f"{prefix}{number}" for number in count(1))


def refuse_tool_mocks(trial: Trial, agent_type: str) -> None:
    """Refuse a case whose tools must not really be called to an agent that calls them itself.

    Raises:
        TrialError: it is such a case.

    """
    mocks = trial.case.tool_mocks
    if mocks and (mocks.tools or mocks.unmatched == "error"):
        message = (
            f"the case has `tool_mocks`, and an agent of type {agent_type!r} calls its tools by "
            "itself, so that they would really be called"
        )
        raise TrialError("unsupported", message)


def turn_of(asked: Json, reply: Json) -> Json:
    """Return what `history` says of a message, as an agent got it, and of the reply to it."""
    said = reply if isinstance(reply, dict) else {"response": reply}
    return {
        "message": asked,
        "response": said.get("response"),
        "tool_calls": said.get("tool_calls") or [],
    }
