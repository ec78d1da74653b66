"""Messages of OpenAI's chat completions, and of formats that imitate them.

The roles and keys are those of `messages` in `POST /v1/chat/completions`
(https://platform.openai.com/docs/api-reference/chat/create).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import ValidationError, field_validator

from ci_eval.formats.event_lists import AGENT, USER, as_args, as_response
from ci_eval.formats.sniff import read_head, syntax_of
from ci_eval.records.cases import (
    Content,
    FunctionCall,
    FunctionResponse,
    InvocationEvent,
    Json,
    Part,
    Stored,
)
from ci_eval.text.json_stream import Element, JsonFile, Refuse, walk_lines
from ci_eval.text.json_text import read_json
from ci_eval.text.validation_messages import describe, existing, read_as
from ci_eval.text.yaml_files import Loc

_TEXTS = ("text", "input_text", "output_text")


class _Function(Stored):
    name: str
    arguments: Json = None


class _Custom(Stored):
    name: str
    input: Json = None


class _Call(Stored):
    id: str | None = None
    function: _Function | None = None
    custom: _Custom | None = None
    name: str | None = None
    arguments: Json = None
    args: Json = None

    def as_part(self) -> Part:
        """Return the call; its name and arguments may be given without a `function`."""
        if self.function:
            name, arguments = self.function.name, self.function.arguments
        elif self.custom:
            name, arguments = self.custom.name, self.custom.input
        else:
            name = self.name or ""
            arguments = self.args if self.arguments is None else self.arguments
        call = FunctionCall(id=self.id or None, name=name, args=as_args(arguments))
        return Part(function_call=call)


class _Message(Stored):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | tuple[dict[str, Json], ...] | None = None
    name: str | None = None
    refusal: str | None = None
    tool_calls: tuple[_Call, ...] | None = None
    function_call: _Function | None = None
    tool_call_id: str | None = None

    @field_validator("content", mode="before")
    @classmethod
    def _parts(cls, value: Json) -> Json:
        """Convert strings among the parts to text parts."""
        if not isinstance(value, list | tuple):
            return value
        return [{"type": "text", "text": each} if isinstance(each, str) else each for each in value]


class Talk(Stored):
    """A conversation and its metadata; unknown keys are ignored."""

    messages: tuple[_Message, ...]
    id: str | None = None
    eval_id: str | None = None
    tags: tuple[str, ...] = ()
    metadata: dict[str, Json] | None = None

    @property
    def case(self) -> str | None:
        """The id of the eval case: `eval_id`, or `eval_id` in `metadata`."""
        within = (self.metadata or {}).get("eval_id")
        return self.eval_id or (within if isinstance(within, str) else None)

    def events(self) -> list[InvocationEvent]:
        """Return the events of the conversation."""
        return [event for each in self.messages for event in _events(each)]


def is_message(value: Json) -> bool:
    """Return True if `value` looks like a message."""
    return isinstance(value, dict) and isinstance(value.get("role"), str) and "parts" not in value


def is_talk(head: Json) -> bool:
    """Return True if a document that begins like `head` has one or more conversations."""
    if isinstance(head, dict):
        messages = head.get("messages")
        return isinstance(messages, list) and bool(messages) and is_message(messages[0])
    if not isinstance(head, list) or not head:
        return False
    return is_message(head[0]) or is_talk(head[0])


def read_talk(value: Json) -> tuple[Talk | None, list[tuple[Loc, str]]]:
    """Parse a conversation; return it, or its problems with their locations.

    `value` is a list of messages, or an object with `messages`.
    """
    bare = isinstance(value, list)
    given = {"messages": value} if bare else value
    wrong: list[tuple[Loc, str]] = []
    talk = read_as(Talk, given, lambda message, loc: wrong.append(_in_file(given, loc, message)))
    for position, each in enumerate(talk.messages if talk else ()):
        for loc, message in _unreadable(each):
            wrong.append((("messages", position, *loc), message))
    if talk and not wrong and not any(each.role == "user" for each in talk.messages):
        wrong = [(("messages",), "has no user message")]
    places = dict.fromkeys(wrong)  # without duplicates from the alternatives of a union
    return None if wrong else talk, [(loc[1:] if bare else loc, said) for loc, said in places]


def _in_file(value: Json, loc: Loc, message: str) -> tuple[Loc, str]:
    """Return the location and the message without pydantic's names of alternatives."""
    place, found = existing(value, loc)
    if place[-1:] == ("content",):
        message = f"expected text or a list of parts, found {describe(found)}"
    return place, message


def _unreadable(message: _Message) -> Iterator[tuple[Loc, str]]:
    given = message.content
    for position, part in enumerate(given if isinstance(given, tuple) else ()):
        if _part(part) is None:
            kind = describe(part.get("type"))
            yield ("content", position), f"a part of the type {kind} cannot be read"
    for position, call in enumerate(message.tool_calls or ()):
        if not (call.function or call.custom or call.name):
            yield ("tool_calls", position), "'function' is missing"


def _events(message: _Message) -> Iterator[InvocationEvent]:
    match message.role:
        case "user":
            yield InvocationEvent(author=USER, content=Content(role=USER, parts=_parts(message)))
        case "assistant":
            calls = [call.as_part() for call in message.tool_calls or ()]
            if message.function_call:
                calls.append(_Call(function=message.function_call).as_part())
            parts = (*_parts(message), *calls)
            if parts:
                author = message.name or AGENT
                yield InvocationEvent(author=author, content=Content(role="model", parts=parts))
        case "tool" | "function":
            answer = FunctionResponse(
                id=message.tool_call_id or None,
                name=message.name,
                response=as_response("\n".join(part.text or "" for part in _parts(message))),
            )
            part = Part(function_response=answer)
            yield InvocationEvent(author=AGENT, content=Content(role=USER, parts=(part,)))


def _parts(message: _Message) -> tuple[Part, ...]:
    given = message.content
    if isinstance(given, str):
        texts = [Part(text=given)] if given else []
    else:
        texts = [part for part in map(_part, given or ()) if part is not None]
    return (*texts, *([Part(text=message.refusal)] if message.refusal else []))


def _part(given: dict[str, Json]) -> Part | None:
    """Convert a part of a message; `None` if its type is unknown or it is invalid."""
    kind = given.get("type", "text")
    if kind in _TEXTS and isinstance(given.get("text"), str):
        return Part(text=given["text"])
    if kind == "refusal" and isinstance(given.get("refusal"), str):
        return Part(text=given["refusal"])
    if kind in ("image_url", "input_image"):
        url = given.get("image_url")
        url = url.get("url") if isinstance(url, dict) else url
        return _linked(url) if isinstance(url, str) else None
    if kind == "input_audio" and isinstance(given.get("input_audio"), dict):
        audio = given["input_audio"]
        data = {"mime_type": f"audio/{audio.get('format')}", "data": audio.get("data")}
        return Part(inline_data=data)
    if kind in ("file", "input_file"):
        return Part(file_data=given.get("file", given))
    return None


def _linked(url: str) -> Part:
    """Return the part for a URL, or for the content of a data URL."""
    if not url.startswith("data:"):
        return Part(file_data={"file_uri": url})
    kind, _, data = url.removeprefix("data:").partition(",")
    return Part(inline_data={"mime_type": kind.removesuffix(";base64"), "data": data})


_OTHER_ROLES = {"human": "user", "ai": "assistant", "model": "assistant"}


def events_of(message: Json) -> list[InvocationEvent]:
    """Return the events of one message; none if it cannot be parsed."""
    if not isinstance(message, dict):
        return []
    role = message.get("role")
    known = _OTHER_ROLES.get(role, role) if isinstance(role, str) else role
    try:
        return list(_events(_Message.model_validate({**message, "role": known})))
    except ValidationError:
        return []


def talks_in(path: Path, *, shown: str, refuse: Refuse) -> Iterator[tuple[Element, Loc]]:
    """Yield the conversations of a file, each with its location; a JSON file may hold a single one.

    Errors in a line of a JSON Lines file are reported to `refuse`.
    """
    if syntax_of(path) == "jsonl":
        for element in walk_lines(path, shown=shown, refuse=refuse):
            yield element, ()
        return
    head = read_head(path, shown=shown)
    if isinstance(head, dict) or is_message(head[0]):
        document = read_json(path, shown=shown)
        yield Element(document.value, 1, document.text), ()
        return
    elements = JsonFile(path, shown=shown, unique=True).walk(frozenset())
    for position, (_, element) in enumerate(elements):
        yield element, (position,)
