"""Requests and responses of OpenAI's chat completions API, and of compatible services.

https://platform.openai.com/docs/api-reference/chat and …/chat-streaming
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import Field, ValidationError

from ci_eval.agents._agent_input import attachment
from ci_eval.formats.event_lists import as_args, calls_of
from ci_eval.formats.gemini_stream import ModelResponse
from ci_eval.records.cases import Content, FunctionCall, Json, Part, Stored
from ci_eval.records.errors import TrialError
from ci_eval.runtime.http import Request
from ci_eval.text.json_text import objects_in

MAX_TOOL_CALLS = 1000
"""Maximum number of tool calls in one streamed response."""
_NO_ANSWER = {
    "length": "it was cut off at the token limit; raise `max_completion_tokens` in `settings`",
    "content_filter": "the provider's content filter blocked it",
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


class _Details(Stored):
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class _Usage(Stored):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    completion_tokens_details: _Details | None = None


class _Completion(Stored):
    choices: tuple[_Choice, ...] | None = None
    usage: _Usage | None = None
    model: str | None = None
    system_fingerprint: str | None = None
    error: Json = None


def read(request: Request, body: Json, model: str) -> ModelResponse:
    """Parse `body`, the response of `model` to `request`.

    Raises:
        TrialError: it is not a chat completion.

    """
    try:
        found = _Completion.model_validate(body)
    except ValidationError:
        found = _Completion()
    if found.error:
        error = found.error.get("message") if isinstance(found.error, dict) else found.error
        message = f"{model!r} gave no answer: {request.quoted(str(error))}"
        raise TrialError("connection", message)
    if not found.choices:
        what = request.quoted(json.dumps(body, ensure_ascii=False))
        raise TrialError("protocol", f"{request.shown} did not return a chat completion: {what}")
    choice = found.choices[0]
    text = choice.message.content or choice.message.refusal or ""
    calls = choice.message.tool_calls or ()
    reason = choice.finish_reason or ""
    if reason in _NO_ANSWER and (calls or not text):
        raise TrialError("raised", f"{model!r} gave no answer: {_NO_ANSWER[reason]}")
    return ModelResponse(
        content=Content(role="model", parts=tuple(_parts(text, calls))),
        usage_metadata=_counted(found.usage) if found.usage else None,
        model_version=found.model or model,
        system_fingerprint=found.system_fingerprint,
        finish_reason=reason or None,
    )


def _parts(text: str, calls: tuple[_Call, ...]) -> Iterator[Part]:
    if text or not calls:
        yield Part(text=text)
    for call in calls:
        args = as_args(call.function.arguments)
        yield Part(function_call=FunctionCall(id=call.id, name=call.function.name, args=args))


def _counted(usage: _Usage) -> dict[str, Json]:
    """Return the token counts under Gemini's names, as in traces."""
    cached = (usage.prompt_tokens_details or _Details()).cached_tokens
    thoughts = (usage.completion_tokens_details or _Details()).reasoning_tokens
    written = usage.completion_tokens
    counted = {
        "prompt_token_count": usage.prompt_tokens,
        # Gemini counts thoughts separately, OpenAI as a part of the output.
        "candidates_token_count": None if written is None else max(0, written - (thoughts or 0)),
        "thoughts_token_count": thoughts,
        "cached_content_token_count": cached,
        "total_token_count": usage.total_tokens,
    }
    return {name: count for name, count in counted.items() if count is not None}


# --- Requests ---------------------------------------------------------------------------------


def messages(contents: Iterable[Content]) -> Iterator[dict[str, Json]]:
    """Yield `contents` as chat messages.

    Raises:
        TrialError: chats do not support a part of them.

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
    calls = []
    for call in calls_of(content):
        function = {"name": call.name, "arguments": json.dumps(call.args)}
        calls.append({"id": call.id, "type": "function", "function": function})
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
    message = f"a chat message can have texts and images; this one has {named}"
    raise TrialError("unsupported", message)


def _as_text(response: Mapping[str, Json]) -> str:
    """Return a tool's response as text, with a single `result` unwrapped."""
    value = response["result"] if response.keys() == {"result"} else dict(response)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# --- Streams ----------------------------------------------------------------------------------


class Assembly:
    """Assembles a streamed response."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {"content": [], "refusal": []}
        self._calls: dict[int, dict[str, Any]] = {}
        self._rest: dict[str, Json] = {}
        self._reason: str | None = None
        self._begun = False
        self.is_whole = False
        """Whether the last piece has arrived."""

    def add(self, chunk: Json) -> None:
        """Add a piece, ignoring anything unknown."""
        if not isinstance(chunk, Mapping):
            return
        for key in ("usage", "model", "system_fingerprint", "error"):
            if chunk.get(key):
                self._rest[key] = chunk[key]
        self.is_whole = self.is_whole or "error" in self._rest
        for choice in objects_in(chunk.get("choices"))[:1]:
            self._begun = True
            self._reason = choice.get("finish_reason") or self._reason
            self.is_whole = self._reason is not None
            delta = choice.get("delta")
            if isinstance(delta, Mapping):
                self._add_delta(delta)

    @property
    def body(self) -> dict[str, Json]:
        """The response body, as without streaming."""
        texts = {key: "".join(pieces) or None for key, pieces in self._texts.items()}
        calls = [self._calls[index] for index in sorted(self._calls)]
        choice = {"message": {**texts, "tool_calls": calls}, "finish_reason": self._reason}
        return {**self._rest, "choices": [choice] if self._begun else []}

    def _add_delta(self, delta: Mapping[str, Json]) -> None:
        for key, pieces in self._texts.items():
            if isinstance(delta.get(key), str):
                pieces.append(delta[key])
        for position, piece in enumerate(objects_in(delta.get("tool_calls"))):
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
