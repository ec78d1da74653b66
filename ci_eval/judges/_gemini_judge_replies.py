"""Parser of the Gemini API's `GenerateContentResponse`.

https://ai.google.dev/api/generate-content
"""

from collections.abc import Mapping
from typing import Literal

from ci_eval.formats.gemini_stream import Candidate, GenerateContentResponse
from ci_eval.records.cases import AdkRecord
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


class _Usage(AdkRecord, extra="ignore"):
    prompt_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None


def read_answer(body: str) -> Answer:
    """Parse the answer in the body of a response.

    Raises:
        ValueError: the body has neither an answer nor a reason for its absence.

    """
    reply = GenerateContentResponse.model_validate(parse_json(body))
    if not reply.model_fields_set:
        raise ValueError("has no 'candidates'")
    candidate = reply.candidates[0] if reply.candidates else Candidate()
    parts = (candidate.content and candidate.content.parts) or ()
    feedback = reply.prompt_feedback
    blocked = feedback is not None and feedback.block_reason is not None
    usage = _Usage.model_validate(reply.usage_metadata or {})
    return Answer(
        text="".join(part.text or "" for part in parts if not part.thought),
        finish="blocked" if blocked else _FINISHES.get(candidate.finish_reason, "other"),
        input_tokens=usage.prompt_token_count or 0,
        output_tokens=(usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0),
        model=reply.model_version or "",
    )
