"""Finish reasons: why a model stopped generating, in the providers' words."""

from typing import Annotated

from pydantic import BeforeValidator

_ORDINARY = frozenset(
    {
        *("", "stop", "stop_sequence", "end_turn", "eos", "eos_token", "complete", "completed"),
        *("tool_calls", "tool_call", "tool_use", "function_call", "pause_turn"),
        *("finish_reason_unspecified", "unspecified", "unknown", "none", "null"),
    }
)
"""Finish reasons of complete answers, in lower case."""
_MAX_CHARS = 100


def unless_ordinary(reason: object) -> object:
    """Return the reason why an answer is incomplete; `None` if it is complete."""
    if not isinstance(reason, str):
        return reason
    # Python prints an enum member with its class name.
    name = reason.strip().rpartition(".")[2]
    return None if name.casefold() in _ORDINARY else name[:_MAX_CHARS]


FinishReason = Annotated[str | None, BeforeValidator(unless_ordinary)]
"""Why an answer is incomplete, such as `MAX_TOKENS`; `None` if it is complete."""
