"""Streamed answers of a model: the single chunks, and the answer assembled from them.

The rules are those of ADK 2.13.0 (`StreamingResponseAggregator`, progressive mode); tests compare
the results with ADK's.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any

from pydantic import BeforeValidator, ValidationError
from pydantic.alias_generators import to_snake

from ci_eval.formats.partial_tool_calls import OpenCall
from ci_eval.records.cases import AdkRecord, Content, FunctionCall, FunctionResponse, Json, Part
from ci_eval.records.errors import TrialError
from ci_eval.text.sanitize import one_line
from ci_eval.text.validation_messages import described

MADE_BY_US = "adk-"
"""Prefix of generated call ids, as in ADK."""
SHOWN_CHARS = 500
"""Length limit of a model's error reason in messages."""


# --- Chunks -----------------------------------------------------------------------------------

_INNER: Mapping[str, type[AdkRecord]] = {
    "parts": Part,
    "function_call": FunctionCall,
    "function_response": FunctionResponse,
}


_snake = lru_cache(maxsize=1000)(to_snake)
"""Cached, because the same few names recur."""


def _known(value: Json, model: type[AdkRecord] = Content) -> Json:
    """Drop unknown fields of `value`: providers may add some at any time."""
    if isinstance(value, list):
        return [_known(each, model) for each in value]
    if not isinstance(value, dict):
        return value
    fields = ((_snake(key), each) for key, each in value.items())
    return {
        name: _known(each, _INNER[name]) if name in _INNER else each
        for name, each in fields
        if name in model.model_fields
    }


def snaked(value: Json) -> Json:
    """Convert the keys of `value` to snake_case, as in usage metadata."""
    if isinstance(value, list):
        return [snaked(each) for each in value]
    if isinstance(value, dict):
        return {_snake(key): snaked(each) for key, each in value.items()}
    return value


ReceivedContent = Annotated[Content, BeforeValidator(_known)]
"""A provider's message, reduced to known fields."""


class _Received(AdkRecord, extra="ignore"):
    """A received object; unknown fields are ignored."""


class Candidate(_Received):
    """One of the alternative answers in a response."""

    content: ReceivedContent | None = None
    finish_reason: str | None = None
    finish_message: str | None = None
    grounding_metadata: Json = None
    citation_metadata: Json = None


class ModelResponse(Candidate):
    """A model's answer or a chunk of it; ADK's events have the same fields."""

    partial: bool | None = None
    """Whether it is a chunk."""
    error_code: str | None = None
    """Why there is no answer, or why it ends early; there may be content nevertheless."""
    error_message: str | None = None
    usage_metadata: Annotated[dict[str, Json], BeforeValidator(snaked)] | None = None
    model_version: str | None = None
    system_fingerprint: str | None = None
    """From OpenAI; never in Gemini's answers."""

    @property
    def reason(self) -> str:
        """Why there is no answer, for messages."""
        said = self.error_code or "it gave no reason", self.error_message
        return one_line(": ".join(filter(None, said)), SHOWN_CHARS)


class _Feedback(_Received):
    block_reason: str | None = None
    block_reason_message: str | None = None


class GenerateContentResponse(_Received):
    """A response of the Gemini API, https://ai.google.dev/api/generate-content."""

    candidates: tuple[Candidate, ...] | None = None
    prompt_feedback: _Feedback | None = None
    usage_metadata: dict[str, Json] | None = None
    model_version: str | None = None


def read_response(value: Json) -> ModelResponse:
    """Parse a `GenerateContentResponse`, in snake_case or camelCase.

    Raises:
        TrialError: it is not one.

    """
    try:
        reply = GenerateContentResponse.model_validate(value)
    except ValidationError as exc:
        where = next(described(exc, GenerateContentResponse))
        raise TrialError("protocol", f"unexpected answer from the model: {where}") from None
    common = {"usage_metadata": reply.usage_metadata, "model_version": reply.model_version}
    if reply.candidates:
        return _of_candidate(reply.candidates[0], common)
    feedback = reply.prompt_feedback
    if feedback is None:
        return ModelResponse(content=Content(role="model", parts=()), **common)
    said = feedback.block_reason_message
    return ModelResponse(error_code=feedback.block_reason, error_message=said, **common)


def _of_candidate(found: Candidate, common: Mapping[str, Any]) -> ModelResponse:
    fields: dict[str, Any] = {
        **common,
        "finish_reason": found.finish_reason,
        "finish_message": found.finish_message,
        "citation_metadata": found.citation_metadata,
    }
    if (found.content and found.content.parts) or found.finish_reason == "STOP":
        grounding = found.grounding_metadata
        return ModelResponse(content=found.content, grounding_metadata=grounding, **fields)
    code, said = found.finish_reason, found.finish_message
    return ModelResponse(error_code=code, error_message=said, **fields)


# --- Assembly ---------------------------------------------------------------------------------


class Aggregator:
    """Assembles the chunks of one answer; `new_id` generates missing call ids.

    Consecutive texts become one part, thoughts separately, with the first signature among them.  A
    call keeps the place of its first piece, even if other parts arrive before its last piece.
    """

    def __init__(self, new_id: Callable[[], str]) -> None:
        self._new_id = new_id
        self._parts: list[Part | None] = []
        """`None` reserves the place of an incomplete call."""
        self._run: _Run | None = None
        self._call: OpenCall | None = None
        self._last: ModelResponse | None = None
        self._kept: dict[str, Any] = {}
        """Last non-empty value of some fields."""

    def add(self, chunk: ModelResponse) -> ModelResponse:
        """Add the next chunk, and return it with an id for each call.

        Raises:
            TrialError: it does not fit the other chunks.

        """
        self._last = chunk
        for name in ("usage_metadata", "grounding_metadata", "citation_metadata", "finish_reason"):
            if value := getattr(chunk, name):
                self._kept[name] = value
        content = chunk.content
        if content and content.parts:
            parts = tuple(map(self._take, content.parts))
            content = content.model_copy(update={"parts": parts})
        return chunk.model_copy(update={"content": content, "partial": True})

    def close(self) -> ModelResponse | None:
        """Return the whole answer; `None` if there was no chunk."""
        if self._last is None:
            return None
        self._end_run()
        self._end_call()
        parts = tuple(_without_repeats(part for part in self._parts if part is not None))
        finish = self._kept.get("finish_reason")
        code, said = self._last.error_code, self._last.error_message
        if finish not in (None, "STOP"):
            code, said = finish, self._last.finish_message
        return ModelResponse(
            content=Content(role="model", parts=parts) if parts else None,
            partial=False,
            error_code=code,
            error_message=said,
            finish_message=self._last.finish_message,
            model_version=self._last.model_version,
            **self._kept,
        )

    def _take(self, part: Part) -> Part:
        if part.text:
            self._take_text(part, part.text)
            return part
        if part.function_call:
            return self._take_call(part, part.function_call)
        self._end_run()
        self._parts.append(part)
        return part

    def _take_text(self, part: Part, text: str) -> None:
        if self._run and self._run.thought != bool(part.thought):
            self._end_run()
        self._run = self._run or _Run(thought=bool(part.thought))
        self._run.texts.append(text)
        self._run.signature = self._run.signature or part.thought_signature

    def _take_call(self, part: Part, call: FunctionCall) -> Part:
        goes_on = self._call is not None and not call.args
        if not (call.partial_args or call.will_continue is not None or goes_on):
            self._end_run()
            self._end_call()
            if not call.name:
                return part
            part = _identified(part, call, call.id or self._new_id())
            self._parts.append(part)
            return part
        if self._call and self._call.name and call.name and call.name != self._call.name:
            self._end_run()
            self._end_call()
        if self._call is None:
            self._end_run()
            self._call = OpenCall(call.id or self._new_id(), place=len(self._parts))
            self._parts.append(None)
        open_call = self._call
        open_call.take(part, call)
        if not call.will_continue:
            self._end_run()
            self._end_call()
        return _identified(part, call, call.id or open_call.id)

    def _end_run(self) -> None:
        if self._run:
            self._parts.append(self._run.part)
            self._run = None

    def _end_call(self) -> None:
        if self._call and self._call.name:
            self._parts[self._call.place] = self._call.part
        self._call = None


@dataclass
class _Run:
    """Consecutive texts."""

    thought: bool
    texts: list[str] = field(default_factory=list)
    signature: Json = None

    @property
    def part(self) -> Part:
        text = "".join(self.texts)
        return Part(text=text, thought=self.thought or None, thought_signature=self.signature)


def with_ids(content: Content, new_id: Callable[[], str]) -> Content:
    """Return `content` with an id for each call that has none."""
    parts = tuple(
        _identified(part, call, call.id or new_id()) if (call := part.function_call) else part
        for part in content.parts or ()
    )
    return content.model_copy(update={"parts": parts})


def _identified(part: Part, call: FunctionCall, call_id: str) -> Part:
    if call.id == call_id:
        return part
    return part.model_copy(update={"function_call": call.model_copy(update={"id": call_id})})


def _without_repeats(parts: Iterator[Part]) -> Iterator[Part]:
    """Yield `parts` without calls that repeat an id given by the model."""
    seen: set[str] = set()
    for part in parts:
        call_id = part.function_call.id if part.function_call else None
        if call_id and not call_id.startswith(MADE_BY_US):
            if call_id in seen:
                continue
            seen.add(call_id)
        yield part
