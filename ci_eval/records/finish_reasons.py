"""Why a model ended its answer, as providers call it."""

from typing import Annotated

from pydantic import BeforeValidator

_ORDINARY = frozenset(
    {
        *("", "stop", "stop_sequence", "end_turn", "eos", "eos_token", "complete", "completed"),
        *("tool_calls", "tool_call", "tool_use", "function_call", "pause_turn"),
        *("finish_reason_unspecified", "unspecified", "unknown", "none", "null"),
    }
)
"""An answer that ends so is whole, in lower case."""
_MAX_CHARS = 100


def unless_ordinary(reason: object) -> object:
    """Return why an answer ended before it was whole; `None` for an ordinary end."""
    if not isinstance(reason, str):
        return reason
    # Python's enums are written with the name of their class.
    name = reason.strip().rpartition(".")[2]
    return None if name.casefold() in _ORDINARY else name[:_MAX_CHARS]


FinishReason = Annotated[str | None, BeforeValidator(unless_ordinary)]
"""Why an answer ended before it was whole, such as `MAX_TOKENS`; `None` for an ordinary end."""
