"""Invocations of A2A agents, assembled from the updates of a task.

The response is the artifacts of the task or, without new artifacts, the agent's last message.
ADK's servers also send tool calls, in messages or artifacts, which become the trajectory; other
servers do not report them, so there is no trajectory.
"""

from collections.abc import Iterator, Mapping
from itertools import groupby

from pydantic import Field
from pydantic.alias_generators import to_snake

from ci_eval.agents import _a2a_wire as wire
from ci_eval.formats.event_lists import AGENT, USER
from ci_eval.records.cases import (
    Content,
    FunctionCall,
    Invocation,
    InvocationEvent,
    InvocationEvents,
    Json,
    Part,
    Stored,
)

_Metadata = Mapping[str, Json] | None
_ADK_PREFIX = "adk_"
"""The prefix of names in ADK's metadata."""


class Received(Stored):
    """Ids of the data that a conversation has received, to tell new data from repetitions."""

    messages: set[str] = Field(default_factory=set)
    """The ids of messages."""
    calls: set[str] = Field(default_factory=set)
    """The ids of tool calls."""
    answers: set[str] = Field(default_factory=set)
    """The ids of the calls that were answered."""
    artifacts: dict[str, wire.Artifact] = Field(default_factory=dict)
    """The latest version of each artifact."""


class Progress:
    """The agent's progress on one message."""

    def __init__(self, received: Received) -> None:
        self._received = received
        self._before = dict(received.artifacts)
        self._events: list[InvocationEvent] = []
        self._is_captured = False
        self._status = wire.Status()
        self._answer: wire.Message | None = None
        self.task_id: str | None = None
        self.context_id: str | None = None

    @property
    def state(self) -> str:
        """The state of the task; `completed` if the agent answered without a task."""
        return "completed" if self._answer else self._status.state

    @property
    def is_settled(self) -> bool:
        """Whether the task has ended or waits for input."""
        return self.state in wire.SETTLED

    @property
    def status_text(self) -> str:
        """The agent's message about the state."""
        message = self._status.message
        return Content(parts=wire.as_parts(message.parts)).text if message else ""

    def add(self, update: wire.Update) -> None:
        """Add an update from the agent."""
        self._note(update.metadata)
        self.context_id = update.context_id or self.context_id
        self.task_id = update.id if isinstance(update, wire.Task) else update.task_id
        match update:
            case wire.Message():
                self._answer = update
            case wire.Task():
                for message in update.history:
                    self._add_message(message)
                for artifact in update.artifacts:
                    self._add_artifact(artifact)
                self._set_status(update.status)
            case wire.StatusUpdate():
                self._set_status(update.status, update.metadata)
            case wire.ArtifactUpdate():
                self._add_artifact(self._merged(update))

    def invocation(self, asked: Content, seconds: float) -> Invocation:
        """Return the invocation for the message `asked`."""
        events, final = self._outcome()
        data = InvocationEvents(invocation_events=tuple(events)) if self._is_captured else None
        return Invocation(
            user_content=asked,
            final_response=Content(role="model", parts=final) if final else None,
            intermediate_data=data,
            duration=seconds,
            waits_for=tuple(self._waits_for()) if self.state == "input-required" else (),
        )

    # --- Updates --------------------------------------------------------------------------------

    def _set_status(self, status: wire.Status, metadata: _Metadata = None) -> None:
        self._status = status
        if status.message:
            self._add_message(status.message, metadata)

    def _add_message(self, message: wire.Message, metadata: _Metadata = None) -> None:
        """Add a message of the agent, if it is new."""
        if message.role == USER or message.message_id in self._received.messages:
            return
        if message.message_id:
            self._received.messages.add(message.message_id)
        self._note(message.metadata)
        known = {**(metadata or {}), **(message.metadata or {})}
        self._add_event(wire.as_parts(message.parts), known)

    def _add_artifact(self, artifact: wire.Artifact) -> None:
        self._note(artifact.metadata)
        self._received.artifacts[artifact.artifact_id] = artifact

    def _merged(self, update: wire.ArtifactUpdate) -> wire.Artifact:
        earlier = self._received.artifacts.get(update.artifact.artifact_id)
        if not update.append or earlier is None:
            return update.artifact
        parts = earlier.parts + update.artifact.parts
        return update.artifact.model_copy(update={"parts": parts})

    def _add_event(self, parts: tuple[Part, ...], metadata: Mapping[str, Json]) -> None:
        """Add an event with the new parts among `parts`."""
        new = tuple(part for part in parts if self._is_new(part))
        self._is_captured |= any(part.function_call or part.function_response for part in new)
        usage = _usage(metadata.get(f"{_ADK_PREFIX}usage_metadata"))
        if not new and not usage:
            return
        answers = all(part.function_response for part in new)
        content = Content(role=USER if answers else "model", parts=new) if new else None
        author = metadata.get(f"{_ADK_PREFIX}author")
        author = author if isinstance(author, str) else AGENT
        self._events.append(InvocationEvent(author=author, content=content, usage_metadata=usage))

    def _is_new(self, part: Part) -> bool:
        """Return False for a call or an answer that was received before."""
        call, answer = part.function_call, part.function_response
        known = self._received.calls if call else self._received.answers
        identity = call.id if call else answer and answer.id
        if identity in known:
            return False
        known |= {identity} if identity else set()
        return True

    def _note(self, metadata: _Metadata) -> None:
        """Detect an ADK server: it reports every call, so no reported call means none was made."""
        self._is_captured |= any(key.startswith(_ADK_PREFIX) for key in metadata or ())

    # --- Outcome --------------------------------------------------------------------------------

    def _outcome(self) -> tuple[list[InvocationEvent], tuple[Part, ...]]:
        """Return the events, and the response."""
        final: tuple[Part, ...] = ()
        if self._answer:
            final = wire.as_parts(self._answer.parts)
        for artifact in self._new_artifacts():
            parts = tuple(_joined(wire.as_parts(artifact.parts)))
            # A text before a call is not yet the response.
            cut = 1 + max((at for at, part in enumerate(parts) if _is_tool(part)), default=-1)
            if cut:
                self._add_event((*final, *parts[:cut]), artifact.metadata or {})
                final = parts[cut:]
            else:
                final += parts
        events = self._events
        if not final:
            last = next((each for each in reversed(events) if _is_spoken(each)), None)
            final = last.parts if last else ()
        return list(_without(events, final)), final

    def _new_artifacts(self) -> Iterator[wire.Artifact]:
        """Yield the artifacts that are new or changed since the message."""
        for name, artifact in self._received.artifacts.items():
            earlier = self._before.get(name)
            if earlier is None or earlier.parts != artifact.parts:
                yield artifact

    def _waits_for(self) -> Iterator[FunctionCall]:
        message = self._status.message
        calls = [part.waits_for for part in (message.parts if message else ())]
        yield from (call for call in calls if call)
        if not any(calls):
            identity = f"{self.task_id}-{len(self._received.messages)}"
            question = {"message": self.status_text}
            yield FunctionCall(id=identity, name=wire.INPUT_REQUIRED, args=question)


def _joined(parts: tuple[Part, ...]) -> Iterator[Part]:
    """Yield the parts of an artifact, with consecutive texts joined."""
    for is_said, group in groupby(parts, lambda part: part.text is not None and not part.thought):
        if is_said:
            yield Part(text="".join(part.text or "" for part in group))
        else:
            yield from group


def _is_tool(part: Part) -> bool:
    return bool(part.function_call or part.function_response)


def _is_spoken(event: InvocationEvent) -> bool:
    return any(part.text for part in event.parts) and not any(map(_is_tool, event.parts))


def _without(events: list[InvocationEvent], final: tuple[Part, ...]) -> Iterator[InvocationEvent]:
    """Yield `events` without the response, but with its usage."""
    for event in events:
        if not final or event.parts != final:
            yield event
        elif event.usage_metadata:
            yield event.model_copy(update={"content": None})


def _usage(given: Json) -> dict[str, Json] | None:
    """Return the token counts of a model's response, which may be any JSON numbers."""
    if not isinstance(given, dict):
        return None
    counts = {to_snake(key): value for key, value in given.items()}
    return {
        key: int(value)
        for key, value in counts.items()
        if isinstance(value, int | float) and key.endswith("_token_count")
    } or None
