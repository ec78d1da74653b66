"""What was said and done, event by event, cut into invocations."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from ci_eval.records.model import (
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
from ci_eval.text.json_text import NotJsonError, parse_json

USER = "user"
"""The author of what the user says; every other author is an agent."""
AGENT = "agent"
"""The author of what is done by an agent that has no name."""


def as_args(value: Json) -> dict[str, Json]:
    """Return the arguments of a call, which many formats keep as JSON in a text.

    No arguments are `{}`; what is no object stands under `arguments`, as it is.
    """
    return _object(value, "arguments")


def as_response(value: Json) -> dict[str, Json]:
    """Return what a tool answered; what is no object stands under `result`, as ADK puts it."""
    return _object(value, "result")


def _object(value: Json, key: str) -> dict[str, Json]:
    if value is None or value == "":
        return {}
    found = value
    if isinstance(value, str):
        with suppress(NotJsonError):
            found = parse_json(value)
    return found if isinstance(found, dict) else {key: value}


def said(author: str, text: str) -> InvocationEvent:
    """Return the event of `author` saying `text`."""
    role = USER if author == USER else "model"
    return InvocationEvent(author=author, content=Content.of_text(text, role=role))


def parts_of(event: InvocationEvent) -> tuple[Part, ...]:
    """Return what an event is made of."""
    return (event.content and event.content.parts) or ()


def calls_of(content: Content | None) -> tuple[FunctionCall, ...]:
    """Return the calls of tools in a message."""
    parts = (content.parts if content else None) or ()
    return tuple(part.function_call for part in parts if part.function_call)


def invocations(events: Iterable[InvocationEvent]) -> tuple[Invocation, ...]:
    """Cut a conversation into invocations.

    Each message of the user begins one; several in a row are one message of several parts, and
    what stands before the first belongs to none.  The last message that has a text and calls no
    tool is the final response; other texts before and behind it are intermediate responses.  An
    answer belongs to the call of the same id; without one, to the first call that has no answer
    yet, of the same tool where it is named.
    """
    found: list[_Turn] = []
    for event in events:
        if event.author == USER and not _answers(event):
            if not found or found[-1].events:
                found.append(_Turn())
            found[-1].asked += parts_of(event)
        elif found:
            found[-1].events.append(event)
    return tuple(turn.invocation() for turn in found)


def as_expected(turns: Iterable[Invocation], *, stated: bool = False) -> tuple[Invocation, ...]:
    """Return a conversation that took place as what is expected of another one.

    A message that nobody answered states nothing, and neither does a conversation without any call
    of a tool state that none is to be called, unless it is `stated` that there was none.
    """
    listed = list(turns)
    stated = stated or any(turn.tool_calls for turn in listed)
    return tuple(turn if stated and _is_answered(turn) else _left_open(turn) for turn in listed)


def _is_answered(turn: Invocation) -> bool:
    return bool(turn.final_response or turn.tool_calls)


def _left_open(turn: Invocation) -> Invocation:
    """Return an invocation that does not say which tools are called."""
    data = turn.intermediate_data
    if isinstance(data, IntermediateData) and data.intermediate_responses:
        return turn.model_copy(update={"unseen": True})
    return turn.model_copy(update={"intermediate_data": None})


@dataclass
class _Turn:
    """What becomes an invocation."""

    asked: list[Part] = field(default_factory=list)
    events: list[InvocationEvent] = field(default_factory=list)

    def invocation(self) -> Invocation:
        events = list(_paired(self.events))
        last = next((at for at in reversed(range(len(events))) if _is_spoken(events[at])), None)
        final = None if last is None else events[last].content
        if last is not None:
            # What the model used for it still counts.
            events[last] = events[last].model_copy(update={"content": None})
        return Invocation(
            user_content=Content(role=USER, parts=tuple(self.asked)),
            final_response=final,
            intermediate_data=_trajectory(events),
            finish_reason=None if last is None else events[last].finish_reason,
        )


def _answers(event: InvocationEvent) -> bool:
    return any(part.function_response for part in parts_of(event))


def _is_spoken(event: InvocationEvent) -> bool:
    """Say whether somebody says something in `event`, and calls nothing."""
    parts = parts_of(event)
    says = any(part.text and not part.thought for part in parts)
    return says and not any(part.function_call or part.function_response for part in parts)


def _is_counted(event: InvocationEvent) -> bool:
    """Say whether `event` is known to be a call of a model."""
    return event.usage_metadata is not None or event.model_version is not None


def _trajectory(events: Sequence[InvocationEvent]) -> IntermediateData | InvocationEvents:
    """Return the events as such where calls of a model were counted, and as lists where not."""
    if any(map(_is_counted, events)):
        kept = [event for event in events if event.content or _is_counted(event)]
        return InvocationEvents(invocation_events=tuple(kept))
    parts = [(event.author, part) for event in events for part in parts_of(event)]
    return IntermediateData(
        tool_uses=tuple(part.function_call for _, part in parts if part.function_call),
        tool_responses=tuple(part.function_response for _, part in parts if part.function_response),
        intermediate_responses=tuple((author, (part,)) for author, part in parts if part.text),
    )


def _paired(events: Iterable[InvocationEvent]) -> Iterator[InvocationEvent]:
    """Yield `events` with an id for every call, and with the id of its call for every answer."""
    open_calls: list[FunctionCall] = []
    number = 0
    for event in events:
        parts = []
        for part in parts_of(event):
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
    """Return `answer` with the id and the name of the call it belongs to, which is closed."""

    def fits(call: FunctionCall) -> bool:
        if answer.id is not None:
            return call.id == answer.id
        return answer.name in (None, call.name)

    call = next(filter(fits, open_calls), None)
    if call is None:
        return answer
    open_calls.remove(call)
    return answer.model_copy(update={"id": call.id, "name": answer.name or call.name})
