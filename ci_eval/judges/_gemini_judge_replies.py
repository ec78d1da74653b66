"""Parser of the Gemini API's `GenerateContentResponse`.

https://ai.google.dev/api/generate-content
"""

from collections.abc import Mapping
from typing import Literal

from pydantic.alias_generators import to_camel

from ci_eval.records.cases import Stored
from ci_eval.records.questions import Answer
from ci_eval.text.json_text import parse_json

_BLOCKED = (
    *("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR"),
    *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"),
)
"""Finish reasons that mean that a filter withheld the answer."""
Finish = Literal["stop", "length", "blocked", "other"]
_FINISHES: Mapping[str | None, Finish] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    **dict.fromkeys(_BLOCKED, "blocked"),
}


class _Wire(Stored, alias_generator=to_camel):
    """A part of a response, in camelCase."""


class _Part(_Wire):
    text: str | None = None
    thought: bool | None = None


class _Content(_Wire):
    parts: tuple[_Part, ...] | None = None


class _Candidate(_Wire):
    content: _Content | None = None
    finish_reason: str | None = None


class _Feedback(_Wire):
    block_reason: str | None = None


class _Usage(_Wire):
    prompt_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None


class _Reply(_Wire):
    candidates: tuple[_Candidate, ...] | None = None
    prompt_feedback: _Feedback | None = None
    usage_metadata: _Usage | None = None
    model_version: str | None = None


def read_answer(body: str) -> Answer:
    """Parse the answer in the body of a response.

    Raises:
        ValueError: the body has neither an answer nor a reason for its absence.

    """
    reply = _Reply.model_validate(parse_json(body))
    if not reply.model_fields_set:
        raise ValueError("has no 'candidates'")
    candidate = reply.candidates[0] if reply.candidates else _Candidate()
    parts = (candidate.content and candidate.content.parts) or ()
    feedback = reply.prompt_feedback
    blocked = feedback is not None and feedback.block_reason is not None
    usage = reply.usage_metadata or _Usage()
    return Answer(
        text="".join(part.text or "" for part in parts if not part.thought),
        finish="blocked" if blocked else _FINISHES.get(candidate.finish_reason, "other"),
        input_tokens=usage.prompt_token_count or 0,
        output_tokens=(usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0),
        model=reply.model_version or "",
    )
