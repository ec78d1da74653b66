"""Inputs of agents: the message, and the session of the conversation."""

from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple

from ci_eval.records.cases import Content, Json, Part, SessionInput
from ci_eval.records.errors import TrialError
from ci_eval.records.trials import Trial
from ci_eval.runtime.context import RunContext


def as_asked(message: Content) -> Json:
    """Return `message` as agents get it: its text, or the whole content if it has more."""
    if message.is_plain_text:
        return message.text
    return message.model_dump(mode="json", exclude_none=True)


class Attachment(NamedTuple):
    """A file in a message: its address or its content."""

    mime_type: str | None
    uri: str | None
    data: str | None
    """The content as base64."""


def attachment(part: Part) -> Attachment | None:
    """Return the file in `part`, if any; its keys may be in either spelling."""
    found = part.inline_data or part.file_data
    if not isinstance(found, dict):
        return None

    def text(*keys: str) -> str | None:
        given = next((found[key] for key in keys if found.get(key)), None)
        return None if given is None else str(given)

    return Attachment(text("mime_type", "mimeType"), text("file_uri", "fileUri"), text("data"))


def opening(trial: Trial, session_id: str) -> dict[str, Any]:
    """Return the initial session of the conversation of `trial`.

    Its id is `session_id`, unless the case names one.
    """
    default = SessionInput(app_name=trial.key.agent, user_id="ci-eval")
    given = trial.case.session_input or default
    return {
        "id": given.session_id or session_id,
        "app_name": given.app_name,
        "user_id": given.user_id,
        "state": given.state,
    }


def session_ids(context: RunContext) -> Iterator[str]:
    """Yield ids for the sessions of a run, unique among all runs.

    A service may keep sessions for longer than a run, and have other users.
    """
    prefix = f"ci-eval-{context.now() * 1e6:.0f}-"
    return (f"{prefix}{number}" for number in count(1))


def refuse_tool_mocks(trial: Trial, agent_type: str) -> None:
    """Reject a case with `tool_mocks` for an agent that calls its tools itself.

    Raises:
        TrialError: the case has them.

    """
    mocks = trial.case.tool_mocks
    if mocks and (mocks.tools or mocks.unmatched == "error"):
        message = (
            f"the case has `tool_mocks`, but an agent of type {agent_type!r} calls its tools "
            "itself, so they would really be called"
        )
        raise TrialError("unsupported", message)


def turn_of(asked: Json, reply: Json) -> Json:
    """Return the entry of `history` for a message and the reply to it."""
    fields = reply if isinstance(reply, dict) else {"response": reply}
    calls = fields.get("tool_calls") or []
    return {"message": asked, "response": fields.get("response"), "tool_calls": calls}
