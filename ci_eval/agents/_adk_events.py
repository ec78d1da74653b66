"""Conversion of an ADK agent's events to an invocation, as in `adk eval`.

Events are ADK's, as JSON in either spelling: from the adapter or from an API server.  The rules
are those of google-adk 2.13.0 (`EvaluationGenerator`,
`convert_events_to_eval_invocations`) and, where they differ, of 2.3.0.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, ConfigDict, ValidationError

from ci_eval.formats.event_lists import AGENT, USER, calls_of
from ci_eval.formats.gemini_stream import ModelResponse, snaked
from ci_eval.records.cases import (
    AdkRecord,
    AppDetails,
    Content,
    FunctionCall,
    Invocation,
    InvocationEvent,
    InvocationEvents,
    Json,
    Part,
)
from ci_eval.records.errors import TrialError
from ci_eval.text.validation_messages import described

Rules = Literal["adk", "adk@2.3"]
"""The version whose rules apply; 2.3 keeps neither the final event nor token usage."""


class _Actions(AdkRecord):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="ignore")

    skip_summarization: bool | None = None


class _Event(ModelResponse):
    """The fields of an event that are used here."""

    author: str | None = None
    invocation_id: str | None = None
    timestamp: float = 0.0
    actions: _Actions | None = None
    long_running_tool_ids: frozenset[str] | None = None
    grounding_metadata: Annotated[Json, BeforeValidator(snaked)] = None

    @property
    def parts(self) -> tuple[Part, ...]:
        return (self.content and self.content.parts) or ()

    @property
    def calls(self) -> tuple[FunctionCall, ...]:
        return calls_of(self.content)

    @property
    def answered(self) -> frozenset[str | None]:
        """The ids of the calls that it answers."""
        responses = (part.function_response for part in self.parts)
        return frozenset(each.id for each in responses if each)


def to_invocation(
    events: Sequence[Json],
    message: Content,
    *,
    rules: Rules = "adk",
    details: Mapping[str, Any] | None = None,
) -> Invocation:
    """Convert `events`, all those caused by `message`, to an invocation.

    `details` has the data that events lack: `app_details` and durations.  Omit the chunks of a
    streamed response, as `adk eval` does not stream.

    Raises:
        TrialError: an event is invalid.

    """
    read = _read(events)
    by_agent = [event for event in read if (event.author or "").lower() != USER]
    final = _final(by_agent, rules)
    kept = [event for event in by_agent if _is_kept(event, rules)]
    if rules == "adk@2.3":
        kept = [event for event in kept if event is not final or event.calls]
    details = details or {}
    app_details = details.get("app_details")
    return Invocation(
        invocation_id=(read[0].invocation_id if read else None) or "",
        user_content=message,
        final_response=final.content if final else None,
        intermediate_data=InvocationEvents(
            invocation_events=tuple(_shown(event, final, rules) for event in kept)
        ),
        creation_timestamp=read[0].timestamp if read else 0.0,
        app_details=None if app_details is None else AppDetails.model_validate(app_details),
        duration=details.get("duration"),
        model_duration=details.get("model_duration"),
        tool_duration=details.get("tool_duration"),
        waits_for=_waiting(by_agent),
        finish_reason=(final.finish_reason or final.error_code) if final else None,
    )


def refuse_silence(events: Sequence[Json], found: Invocation) -> None:
    """Reject a run without a response, which ADK would treat as an empty response.

    Raises:
        TrialError: there was no event, or an error instead of a response.

    """
    if not events:
        raise TrialError("raised", "the agent ended its run without a single event", seen=found)
    if found.final_response is not None:
        return
    failed = next((event for event in reversed(_read(events)) if event.error_code), None)
    if failed:
        raise TrialError("raised", f"the model gave no response: {failed.reason}", seen=found)


def _read(events: Sequence[Json]) -> tuple[_Event, ...]:
    return tuple(_read_one(number, event) for number, event in enumerate(events, 1))


def _read_one(number: int, event: Json) -> _Event:
    try:
        return _Event.model_validate(event)
    except ValidationError as exc:
        why = next(described(exc, _Event))
        raise TrialError("protocol", f"event {number} of the agent: {why}") from None


def _final(events: Iterable[_Event], rules: Rules) -> _Event | None:
    """Return the event with the final response: the last one, preferring text to audio."""
    final: _Event | None = None
    for event in events:
        if not event.parts or not _is_final(event, rules):
            continue
        if rules == "adk@2.3" or _has_text(event) or not (final and _has_text(final)):
            final = event
    return final


def _is_final(event: _Event, rules: Rules) -> bool:
    if (event.actions and event.actions.skip_summarization) or event.long_running_tool_ids:
        return True
    if event.partial or event.calls:
        return False
    if event.error_code and rules == "adk":
        return True
    return not event.answered and event.parts[-1].code_execution_result is None


def _has_text(event: _Event) -> bool:
    return any(part.text for part in event.parts)


def _is_kept(event: _Event, rules: Rules) -> bool:
    if event.grounding_metadata is not None and rules == "adk":
        return True
    kept = ("function_call", "function_response", "text", "inline_data")
    return any(getattr(part, name) for part in event.parts for name in kept)


def _shown(event: _Event, final: _Event | None, rules: Rules) -> InvocationEvent:
    """Return an event of the trajectory, without the final response."""
    content = event.content if event is not final or event.calls else None
    author = event.author or AGENT
    if rules == "adk@2.3":
        return InvocationEvent(author=author, content=content)
    return InvocationEvent(
        author=author,
        content=content,
        grounding_metadata=event.grounding_metadata,
        usage_metadata=event.usage_metadata,
        model_version=event.model_version,
        finish_reason=event.finish_reason,
    )


def _waiting(events: Sequence[_Event]) -> tuple[FunctionCall, ...]:
    """Return the long-running calls that were not answered in this run."""
    answered = frozenset[str | None]().union(*(event.answered for event in events))
    return tuple(
        call
        for event in events
        for call in event.calls
        if call.id in (event.long_running_tool_ids or ()) and call.id not in answered
    )
