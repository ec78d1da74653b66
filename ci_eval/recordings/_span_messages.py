"""Messages of a span, in every version of OpenTelemetry's conventions for generative AI."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from ci_eval.formats.event_lists import USER, as_args, as_response, said
from ci_eval.formats.openai_messages import events_of
from ci_eval.recordings._span_attributes import dicts, first, from_json, text_in
from ci_eval.recordings._trace_spans import Span, SpanEvent
from ci_eval.records.cases import (
    Content,
    FunctionCall,
    FunctionResponse,
    InvocationEvent,
    Json,
    Part,
)

_DETAILS: Final = "gen_ai.client.inference.operation.details"


class _Source(NamedTuple):
    """The places where spans store the input or output messages of a model."""

    attribute: str
    """Attribute since version 1.37, on the span or on its event with the details."""
    roles: Mapping[str, str]
    """Role of the message by the name of its event, up to version 1.36."""
    content: str
    """Event with the attribute `older`, up to version 1.27."""
    older: str
    """Also an attribute of the span itself, in OpenLLMetry."""
    of_adk: tuple[str, str]
    """ADK's attribute with a request or a response, and the key of the messages in it."""
    role: str
    """Role of messages that do not state it."""


INPUT: Final = _Source(
    "gen_ai.input.messages",
    {f"gen_ai.{role}.message": role for role in ("system", "user", "assistant", "tool")},
    "gen_ai.content.prompt",
    "gen_ai.prompt",
    ("gcp.vertex.agent.llm_request", "contents"),
    "user",
)
OUTPUT: Final = _Source(
    "gen_ai.output.messages",
    {"gen_ai.choice": "assistant"},
    "gen_ai.content.completion",
    "gen_ai.completion",
    ("gcp.vertex.agent.llm_response", "content"),
    "assistant",
)


def messages_of(span: Span, source: _Source) -> list[InvocationEvent]:
    """Return the input of an agent or a model, or its output, one message for each choice."""
    given = _attribute(span, source.attribute)
    if given is None:
        given = _older(span, source)
    if given is not None:
        return _all(given, source.role)
    attribute, key = source.of_adk
    return [_content(each) for each in dicts(first(from_json(span.get(attribute)), key))]


def _attribute(span: Span, name: str) -> Json:
    """Return an attribute of the span, or of its event with the details."""
    details = (event.attributes for event in span.events if event.name == _DETAILS)
    found = [first(attributes, name) for attributes in (span.attributes, *details)]
    return from_json(next((value for value in found if value is not None), None))


def _older(span: Span, source: _Source) -> Json:
    """Return the messages in the events of a span, or in its older attribute."""
    events = [
        {"role": source.roles[event.name], **_message(event)}
        for event in span.events
        if event.name in source.roles
    ]
    contents = (event.attributes for event in span.events if event.name == source.content)
    content = next((first(attributes, source.older) for attributes in contents), None)
    return events or from_json(content) or from_json(span.get(source.older))


def _message(event: SpanEvent) -> dict[str, Json]:
    """Return the message in an event, whose parts may be JSON text."""
    found = {key: from_json(value) for key, value in event.attributes.items()}
    inner = found.get("message")
    message = dict(inner) if isinstance(inner, Mapping) else found
    if isinstance(inner, str):
        message = {"content": inner}
    if "tool_calls" in message:
        message["tool_calls"] = from_json(message["tool_calls"])
    if event.name == "gen_ai.tool.message":
        message["tool_call_id"] = message.get("id")
    content = message.get("content")
    are_parts = isinstance(content, list) and bool(dicts(content))
    if "content" in event.attributes and not are_parts:
        # The text only looks like JSON.
        message["content"] = event.attributes["content"]
    return {key: value for key, value in message.items() if value is not None}


def _all(given: Json, default: str) -> list[InvocationEvent]:
    """Return the events of messages in either of the two notations."""
    if isinstance(given, str):
        return [said(USER if default == "user" else "agent", given)]
    found: list[InvocationEvent] = []
    for message in dicts(given):
        role = message.get("role", default)
        if isinstance(message.get("parts"), list):
            parts = tuple(part for part in map(_part, dicts(message["parts"])) if part)
            found += [_event_by(role, parts)] if role != "system" else []
        else:
            found += events_of({**message, "role": role})
    return found


def _event_by(role: Json, parts: tuple[Part, ...]) -> InvocationEvent:
    is_user = role == "user"
    return InvocationEvent(
        author=USER if is_user else "agent",
        content=Content(role=USER if role in ("user", "tool") else "model", parts=parts),
    )


def _content(given: Mapping[str, Json]) -> InvocationEvent:
    """Convert a message in ADK's format."""
    parts = tuple(part for part in map(_adk_part, dicts(given.get("parts"))) if part)
    return _event_by("user" if given.get("role") == "user" else "model", parts)


def _adk_part(given: Mapping[str, Json]) -> Part | None:
    call, answer = given.get("function_call"), given.get("function_response")
    if isinstance(call, Mapping):
        return Part(function_call=_called(call.get("id"), call.get("name"), call.get("args")))
    if isinstance(answer, Mapping):
        return _answered(answer.get("id"), answer.get("name"), answer.get("response"))
    return _texted(given.get("text"), thought=given.get("thought") is True)


def _part(given: Mapping[str, Json]) -> Part | None:
    """Convert a part of a message per the conventions; `None` if its type is unknown."""
    found: Part | None = None
    match given.get("type"):
        case "text" | "reasoning" as kind:
            found = _texted(given.get("content"), thought=kind == "reasoning")
        case "tool_call" | "server_tool_call" as kind:
            arguments = given.get("arguments", given.get(kind))
            found = Part(function_call=_called(given.get("id"), given.get("name"), arguments))
        case "tool_call_response" | "server_tool_call_response" as kind:
            answer = given.get("response", given.get("result", given.get(kind)))
            found = _answered(given.get("id"), given.get("name"), answer)
        case "uri" | "file":
            found = Part(file_data={"file_uri": given.get("uri", given.get("file_id"))})
        case "blob":
            data = {"mime_type": given.get("mime_type"), "data": given.get("content")}
            found = Part(inline_data=data)
    return found


def _texted(text: Json, *, thought: bool) -> Part | None:
    return Part(text=text, thought=thought or None) if isinstance(text, str) else None


def _called(given: Json, name: Json, arguments: Json) -> FunctionCall:
    return FunctionCall(id=text_in(given), name=text_in(name), args=as_args(arguments))


def _answered(given: Json, name: Json, answer: Json) -> Part:
    response = as_response(answer)
    return Part(
        function_response=FunctionResponse(id=text_in(given), name=text_in(name), response=response)
    )
