"""What an agent is given: the message, and what is known of the conversation."""

from typing import Any

from ci_eval.records import Content, Json
from ci_eval.trials import Trial


def as_asked(message: Content) -> Json:
    """Return `message` as agents get it: its text, or all of it where it is more than text."""
    if message.is_plain_text:
        return message.text
    return message.model_dump(mode="json", exclude_none=True)


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
