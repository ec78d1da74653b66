"""Conversion of event lists into invocations."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ci_eval.records.cases import (
    Content,
    FunctionCall,
    FunctionResponse,
    IntermediateData,
    Invocation,
    InvocationEvent,
    InvocationEvents,
    Json,
    Part,
)
from ci_eval.text.json_text import json_or_text

USER = "user"
"""Author of the user's messages; every other author is an agent."""
AGENT = "agent"
"""Author of the events of an agent without a name."""


def as_args(value: Json) -> dict[str, Json]:
    """Return the arguments of a call, which many formats store as JSON text.

    Without arguments the result is `{}`; a value that is not an object is stored under `arguments`.
    """
    return _object(value, "arguments")


def as_response(value: Json) -> dict[str, Json]:
    """Return the result of a tool; as in ADK, anything but an object is stored under `result`."""
    return _object(value, "result")


def stored_result(value: Json) -> dict[str, Json]:
    """Return the result of a tool as ADK stores it, without parsing JSON in texts."""
    return value if isinstance(value, dict) else {"result": value}


def _object(value: Json, key: str) -> dict[str, Json]:
    if value is None or value == "":
        return {}
    found = json_or_text(value) if isinstance(value, str) else value
    return found if isinstance(found, dict) else {key: value}


def distinct_ids(given: Sequence[str | None]) -> list[str]:
    """Return an id for each call of a list; if given ids are repeated, none of them is used."""
    ids = [each or f"call-{number}" for number, each in enumerate(given, 1)]
    return ids if len(set(ids)) == len(ids) else [f"call-{at}" for at in range(1, len(ids) + 1)]


def separate_lists(
    calls: Iterable[tuple[FunctionCall, dict[str, Json] | None]],
    texts: Iterable[tuple[str, str]] = (),
) -> IntermediateData:
    """Return a trajectory without an order.

    Each call comes with its response, if it is known, and each text with its author.
    """
    listed = list(calls)
    return IntermediateData(
        tool_uses=tuple(call for call, _ in listed),
        tool_responses=tuple(
            FunctionResponse(id=call.id, name=call.name, response=response)
            for call, response in listed
            if response is not None
        ),
        intermediate_responses=tuple((author, (Part(text=text),)) for author, text in texts),
    )


def said(author: str, text: str) -> InvocationEvent:
    """Return an event with a text by `author`."""
    role = USER if author == USER else "model"
    return InvocationEvent(author=author, content=Content.of_text(text, role=role))


def calls_of(content: Content | None) -> tuple[FunctionCall, ...]:
    """Return the tool calls in a message."""
    parts = (content.parts if content else None) or ()
    return tuple(part.function_call for part in parts if part.function_call)


def invocations(events: Iterable[InvocationEvent]) -> tuple[Invocation, ...]:
    """Split a conversation into invocations.

    Each user message begins an invocation; several in a row are one message of several parts, and
    events before the first are dropped.  The last message with text and without tool calls is the
    final response; other texts before and after it are intermediate responses.  A result belongs to
    the call with the same id; a result without an id belongs to the first call without a result,
    and, if it names a tool, the first such call of that tool.
    """
    found: list[_Turn] = []
    for event in events:
        if event.author == USER and not any(part.function_response for part in event.parts):
            if not found or found[-1].events:
                found.append(_Turn())
            found[-1].asked += event.parts
        elif found:
            found[-1].events.append(event)
    return tuple(turn.invocation() for turn in found)


def as_expected(turns: Iterable[Invocation], *, stated: bool = False) -> tuple[Invocation, ...]:
    """Convert a recorded conversation into expectations.

    A message without an answer states no expectation.  A conversation without any tool call does
    not state that none is expected, unless `stated` is true.
    """
    listed = list(turns)
    stated = stated or any(turn.tool_calls for turn in listed)
    return tuple(
        turn if stated and (turn.final_response or turn.tool_calls) else _left_open(turn)
        for turn in listed
    )


def _left_open(turn: Invocation) -> Invocation:
    """Return an invocation without a statement about tool calls."""
    data = turn.intermediate_data
    if isinstance(data, IntermediateData) and data.intermediate_responses:
        return turn.model_copy(update={"unseen": True})
    return turn.model_copy(update={"intermediate_data": None})


@dataclass
class _Turn:
    """The events of one invocation."""

    asked: list[Part] = field(default_factory=list)
    events: list[InvocationEvent] = field(default_factory=list)

    def invocation(self) -> Invocation:
        events = list(_paired(self.events))
        last = next((at for at in reversed(range(len(events))) if _is_spoken(events[at])), None)
        final = None if last is None else events[last].content
        if last is not None:
            # Its token usage still counts.
            events[last] = events[last].model_copy(update={"content": None})
        return Invocation(
            user_content=Content(role=USER, parts=tuple(self.asked)),
            final_response=final,
            intermediate_data=_trajectory(events),
            finish_reason=None if last is None else events[last].finish_reason,
        )


def _is_spoken(event: InvocationEvent) -> bool:
    """Return True if `event` has text and neither calls nor results."""
    says = any(part.text and not part.thought for part in event.parts)
    return says and not any(part.function_call or part.function_response for part in event.parts)


def is_model_call(event: InvocationEvent) -> bool:
    """Return True if `event` is known to be a model call."""
    return event.usage_metadata is not None or event.model_version is not None


def _trajectory(events: Sequence[InvocationEvent]) -> IntermediateData | InvocationEvents:
    """Return the events if any is a model call, else separate lists of calls and texts."""
    if any(map(is_model_call, events)):
        kept = [event for event in events if event.content or is_model_call(event)]
        return InvocationEvents(invocation_events=tuple(kept))
    parts = [(event.author, part) for event in events for part in event.parts]
    return IntermediateData(
        tool_uses=tuple(part.function_call for _, part in parts if part.function_call),
        tool_responses=tuple(part.function_response for _, part in parts if part.function_response),
        intermediate_responses=tuple((author, (part,)) for author, part in parts if part.text),
    )


def trajectory_events(invocation: Invocation, author: str = AGENT) -> Iterator[InvocationEvent]:
    """Yield everything before the final response as events; calls in lists get `author`."""
    data = invocation.intermediate_data
    if not isinstance(data, IntermediateData):
        yield from invocation.events or ()
        return
    calls = tuple(Part(function_call=each) for each in data.tool_uses)
    if calls:
        yield InvocationEvent(author=author, content=Content(role="model", parts=calls))
    answers = tuple(Part(function_response=each) for each in data.tool_responses)
    if answers:
        yield InvocationEvent(author=author, content=Content(role=USER, parts=answers))
    for by, parts in data.intermediate_responses:
        yield InvocationEvent(author=by, content=Content(role="model", parts=parts))


def _paired(events: Iterable[InvocationEvent]) -> Iterator[InvocationEvent]:
    """Yield `events` with an id for every call, and the id of its call for every result."""
    open_calls: list[FunctionCall] = []
    number = 0
    for event in events:
        parts = []
        for part in event.parts:
            changed = part
            if part.function_call:
                number += 1
                call = part.function_call
                if call.id is None:
                    call = call.model_copy(update={"id": f"call-{number}"})
                    changed = part.model_copy(update={"function_call": call})
                open_calls.append(call)
            elif part.function_response:
                answer = _addressed(part.function_response, open_calls)
                changed = part.model_copy(update={"function_response": answer})
            parts.append(changed)
        if event.content and tuple(parts) != event.content.parts:
            content = event.content.model_copy(update={"parts": tuple(parts)})
            yield event.model_copy(update={"content": content})
        else:
            yield event


def _addressed(answer: FunctionResponse, open_calls: list[FunctionCall]) -> FunctionResponse:
    """Return `answer` with the id and name of its call, which is removed from `open_calls`."""

    def fits(call: FunctionCall) -> bool:
        if answer.id is not None:
            return call.id == answer.id
        return answer.name in (None, call.name)

    call = next(filter(fits, open_calls), None)
    if call is None:
        return answer
    open_calls.remove(call)
    return answer.model_copy(update={"id": call.id, "name": answer.name or call.name})
