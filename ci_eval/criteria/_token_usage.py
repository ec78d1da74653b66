"""Token counts from the events of a trajectory."""

from ci_eval.records.bounds import MAX_COUNT
from ci_eval.records.cases import Invocation, Json
from ci_eval.records.model_usage import ModelUsage

_TOKENS = {
    "input": ("prompt_token_count", "tool_use_prompt_token_count"),
    "output": ("candidates_token_count", "thoughts_token_count"),
    "cached": ("cached_content_token_count",),
    "reasoning": ("thoughts_token_count",),
    "tool_use": ("tool_use_prompt_token_count",),
}
"""Kinds of tokens, each with the fields of Gemini's usage metadata that are added up."""


def tokens_of(invocation: Invocation) -> dict[str, int]:
    """Return the tokens of an invocation by kind: the gateway's counts, or else the agent's."""
    if invocation.metered is not None:
        return _metered(invocation.metered)
    tokens: dict[str, int] = {}
    for event in invocation.events or ():
        for kind, fields in _TOKENS.items():
            counts = [_count(event.usage_metadata, field) for field in fields]
            if any(count is not None for count in counts):
                tokens[kind] = tokens.get(kind, 0) + sum(count or 0 for count in counts)
    return tokens


def _metered(usage: ModelUsage) -> dict[str, int]:
    if usage.uncounted:
        return {}
    return {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cached": usage.cached_tokens,
        "reasoning": usage.thought_tokens,
    }


def _count(usage: dict[str, Json] | None, field: str) -> int | None:
    head, *rest = field.split("_")
    camel = head + "".join(word.title() for word in rest)
    value = (usage or {}).get(field, (usage or {}).get(camel))
    return value if isinstance(value, int) and abs(value) <= MAX_COUNT else None
