"""Chat completions of OpenAI, and of all that imitate them: what is asked and what is answered.

https://platform.openai.com/docs/api-reference/chat and …/chat-streaming
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import Field, ValidationError

from ci_eval.agents._request import attachment
from ci_eval.formats.events import as_args, calls_of
from ci_eval.formats.gemini_stream import ModelResponse
from ci_eval.records.errors import TrialError
from ci_eval.records.model import Content, FunctionCall, Json, Part, Stored
from ci_eval.runtime.http import Request

MAX_TOOL_CALLS = 1000
"""How many calls one streamed answer may have."""
_GAVE_NONE = {
    "length": "the answer was cut off at its longest; see `max_completion_tokens` of `settings`",
    "content_filter": "its provider withheld the answer (content_filter)",
}


class _Function(Stored):
    name: str = Field(min_length=1)
    arguments: str | None = None


class _Call(Stored):
    id: str | None = None
    function: _Function


class _Message(Stored):
    content: str | None = None
    refusal: str | None = None
    tool_calls: tuple[_Call, ...] | None = None


class _Choice(Stored):
    message: _Message
    finish_reason: str | None = None


class _InputDetails(Stored):
    cached_tokens: int | None = None


class _OutputDetails(Stored):
    reasoning_tokens: int | None = None


class _Usage(Stored):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: _InputDetails | None = None
    completion_tokens_details: _OutputDetails | None = None


class _Completion(Stored):
    choices: tuple[_Choice, ...] | None = None
    usage: _Usage | None = None
    model: str | None = None
    error: Json = None


def read(request: Request, body: Json, model: str) -> ModelResponse:
    """Return what `model`, asked by `request`, answered with `body`.

    Raises:
        TrialError: it is no answer.

    """
    try:
        found = _Completion.model_validate(body)
    except ValidationError:
        found = _Completion()
    if found.error:
        said = found.error.get("message") if isinstance(found.error, dict) else found.error
        message = f"{model!r} gave no answer: {request.quoted(str(said))}"
        raise TrialError("connection", message)
    if not found.choices:
        what = request.quoted(json.dumps(body, ensure_ascii=False))
        raise TrialError("protocol", f"{request.shown} answered no chat completion: {what}")
    choice = found.choices[0]
    text = choice.message.content or choice.message.refusal or ""
    calls = choice.message.tool_calls or ()
    reason = choice.finish_reason or ""
    if reason in _GAVE_NONE and (calls or not text):
        raise TrialError("raised", f"{model!r} gave no answer: {_GAVE_NONE[reason]}")
    return ModelResponse(
        content=Content(role="model", parts=tuple(_parts(text, calls))),
        usage_metadata=_counted(found.usage) if found.usage else None,
        model_version=found.model or model,
        finish_reason=reason or None,
    )


def _parts(text: str, calls: tuple[_Call, ...]) -> Iterator[Part]:
    if text or not calls:
        yield Part(text=text)
    for call in calls:
        args = as_args(call.function.arguments)
        yield Part(function_call=FunctionCall(id=call.id, name=call.function.name, args=args))


def _counted(usage: _Usage) -> dict[str, Json]:
    """Return the tokens under the names that Gemini has for them, as traces do."""
    thoughts = (usage.completion_tokens_details or _OutputDetails()).reasoning_tokens
    written = usage.completion_tokens
    counted = {
        "prompt_token_count": usage.prompt_tokens,
        # Gemini counts thoughts beside the answer, OpenAI as a part of it.
        "candidates_token_count": None if written is None else max(0, written - (thoughts or 0)),
        "thoughts_token_count": thoughts,
        "cached_content_token_count": (
            usage.prompt_tokens_details or _InputDetails()
        ).cached_tokens,
        "total_token_count": usage.total_tokens,
    }
    return {name: count for name, count in counted.items() if count is not None}


# --- What is sent -----------------------------------------------------------------------------


def messages(contents: Iterable[Content]) -> Iterator[dict[str, Json]]:
    """Yield `contents` as the messages of a chat.

    Raises:
        TrialError: a part of them has no place in one.

    """
    for content in contents:
        if content.role == "model":
            yield _of_model(content)
            continue
        parts = content.parts or ()
        for answer in (part.function_response for part in parts):
            if answer:
                text = _as_text(answer.response or {})
                yield {"role": "tool", "tool_call_id": answer.id, "content": text}
        said = [part for part in parts if not part.function_response and not part.thought]
        if said and content.is_plain_text:
            yield {"role": "user", "content": content.text}
        elif said:
            yield {"role": "user", "content": [_piece(part) for part in said]}


def _of_model(content: Content) -> dict[str, Json]:
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.args)},
        }
        for call in calls_of(content)
    ]
    said = {"role": "assistant", "content": content.text or None}
    return {**said, "tool_calls": calls} if calls else said


def _piece(part: Part) -> dict[str, Json]:
    if part.text is not None:
        return {"type": "text", "text": part.text}
    file = attachment(part)
    if file and file.mime_type and file.mime_type.startswith("image/"):
        url = file.uri or f"data:{file.mime_type};base64,{file.data}"
        return {"type": "image_url", "image_url": {"url": url}}
    named = ", ".join(part.model_dump(exclude_none=True))
    message = f"a chat takes texts and images; the message has {named}"
    raise TrialError("unsupported", message)


def _as_text(response: Mapping[str, Json]) -> str:
    """Return what a tool answered; a single result as it was before it was put into an object."""
    value = response["result"] if response.keys() == {"result"} else dict(response)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# --- Streams ----------------------------------------------------------------------------------


class Assembly:
    """An answer that comes in pieces."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {"content": [], "refusal": []}
        self._calls: dict[int, dict[str, Any]] = {}
        self._rest: dict[str, Json] = {}
        self._reason: str | None = None
        self._begun = False
        self.is_whole = False
        """Whether the last piece was among those that came."""

    def add(self, chunk: Json) -> None:
        """Add a piece; what is not understood is passed over."""
        if not isinstance(chunk, Mapping):
            return
        for key in ("usage", "model", "error"):
            if chunk.get(key):
                self._rest[key] = chunk[key]
        self.is_whole = self.is_whole or "error" in self._rest
        for choice in _mappings(chunk.get("choices"))[:1]:
            self._begun = True
            self._reason = choice.get("finish_reason") or self._reason
            self.is_whole = self._reason is not None
            delta = choice.get("delta")
            if isinstance(delta, Mapping):
                self._add_delta(delta)

    @property
    def body(self) -> dict[str, Json]:
        """The answer, as it would have come at once."""
        texts = {key: "".join(pieces) or None for key, pieces in self._texts.items()}
        calls = [self._calls[index] for index in sorted(self._calls)]
        choice = {"message": {**texts, "tool_calls": calls}, "finish_reason": self._reason}
        return {**self._rest, "choices": [choice] if self._begun else []}

    def _add_delta(self, delta: Mapping[str, Json]) -> None:
        for key, pieces in self._texts.items():
            if isinstance(delta.get(key), str):
                pieces.append(delta[key])
        for position, piece in enumerate(_mappings(delta.get("tool_calls"))):
            index = piece.get("index", position)
            if isinstance(index, int) and len(self._calls) < MAX_TOOL_CALLS:
                self._add_call(self._calls.setdefault(index, {}), piece)

    @staticmethod
    def _add_call(call: dict[str, Any], piece: Mapping[str, Json]) -> None:
        call["id"] = call.get("id") or piece.get("id")
        function = call.setdefault("function", {"name": "", "arguments": ""})
        given = piece.get("function")
        for key, value in given.items() if isinstance(given, Mapping) else ():
            if key in function and isinstance(value, str):
                function[key] += value


def _mappings(value: Json) -> list[Mapping[str, Json]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
