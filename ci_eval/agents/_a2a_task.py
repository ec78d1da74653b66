"""What an A2A agent does on one message, put together from what it tells of its task.

What a task made, its artifacts, is the response; where it made nothing new, what the agent said
last is.  ADK's servers send the calls of tools along, in messages or in artifacts, which then are
the trajectory; others do not tell, so that there is none.
"""

from collections.abc import Iterator, Mapping

from pydantic import Field
from pydantic.alias_generators import to_snake

from ci_eval.agents._a2a_wire import (
    ENDED,
    INPUT_REQUIRED,
    STOPPED,
    Artifact,
    ArtifactUpdate,
    Message,
    Status,
    StatusUpdate,
    Task,
    Update,
    as_parts,
)
from ci_eval.formats.events import AGENT, USER, parts_of
from ci_eval.records.model import (
    Content,
    FunctionCall,
    Invocation,
    InvocationEvent,
    InvocationEvents,
    Json,
    Part,
    Stored,
)

_OF_ADK = "adk_"
"""How the names in ADK's metadata begin."""


class Heard(Stored):
    """What was heard in a conversation, by which what is new is told from what is told again."""

    messages: set[str] = Field(default_factory=set)
    """The ids of messages."""
    calls: set[str] = Field(default_factory=set)
    """The ids of calls of tools."""
    answers: set[str] = Field(default_factory=set)
    """The ids of the calls that were answered."""
    artifacts: dict[str, Artifact] = Field(default_factory=dict)
    """What tasks made, as it was last."""


class Progress:
    """How far an agent has come with one message."""

    def __init__(self, heard: Heard) -> None:
        self._heard = heard
        self._before = dict(heard.artifacts)
        self._events: list[InvocationEvent] = []
        self._is_captured = False
        self._status = Status()
        self._answer: Message | None = None
        self.task_id: str | None = None
        self.context_id: str | None = None

    @property
    def state(self) -> str:
        """The state of the task; `completed`, too, where the agent answered without one."""
        return "completed" if self._answer else self._status.state

    @property
    def is_settled(self) -> bool:
        """Whether nothing more happens before somebody says something."""
        return self.state in ENDED | STOPPED

    @property
    def said(self) -> str:
        """What the agent says of the state."""
        message = self._status.message
        return Content(parts=as_parts(message.parts)).text if message else ""

    def add(self, update: Update) -> None:
        """Add what the agent tells."""
        self._note(update.metadata)
        self.context_id = update.context_id or self.context_id
        if isinstance(update, Message):
            self._answer = update
            self.task_id = update.task_id
            return
        self.task_id = update.id if isinstance(update, Task) else update.task_id
        if isinstance(update, Task):
            for message in update.history:
                self._hear(message)
            for artifact in update.artifacts:
                self._make(artifact)
            self._take(update.status)
        elif isinstance(update, StatusUpdate):
            self._take(update.status, update.metadata)
        else:
            self._make(self._grown(update))

    def invocation(self, asked: Content, seconds: float) -> Invocation:
        """Return what the agent did on the message `asked`."""
        events, final = self._outcome()
        data = InvocationEvents(invocation_events=tuple(events)) if self._is_captured else None
        return Invocation(
            user_content=asked,
            final_response=Content(role="model", parts=final) if final else None,
            intermediate_data=data,
            duration=seconds,
            waits_for=tuple(self._waits_for()) if self.state == "input-required" else (),
        )

    # --- What comes -----------------------------------------------------------------------------

    def _take(self, status: Status, metadata: Mapping[str, Json] | None = None) -> None:
        self._status = status
        if status.message:
            self._hear(status.message, metadata)

    def _hear(self, message: Message, metadata: Mapping[str, Json] | None = None) -> None:
        """Take down what the agent says, if it is new."""
        if message.role == USER or message.message_id in self._heard.messages:
            return
        if message.message_id:
            self._heard.messages.add(message.message_id)
        self._note(message.metadata)
        known = {**(metadata or {}), **(message.metadata or {})}
        self._happen(as_parts(message.parts), known)

    def _make(self, artifact: Artifact) -> None:
        self._note(artifact.metadata)
        self._heard.artifacts[artifact.artifact_id] = artifact

    def _grown(self, update: ArtifactUpdate) -> Artifact:
        earlier = self._heard.artifacts.get(update.artifact.artifact_id)
        if not update.append or earlier is None:
            return update.artifact
        parts = earlier.parts + update.artifact.parts
        return update.artifact.model_copy(update={"parts": parts})

    def _happen(self, parts: tuple[Part, ...], metadata: Mapping[str, Json]) -> None:
        """Add an event of what is new among `parts`."""
        new = tuple(part for part in parts if self._is_new(part))
        self._is_captured |= any(part.function_call or part.function_response for part in new)
        usage = _usage(metadata.get(f"{_OF_ADK}usage_metadata"))
        if not new and not usage:
            return
        answers = all(part.function_response for part in new)
        content = Content(role=USER if answers else "model", parts=new) if new else None
        author = metadata.get(f"{_OF_ADK}author")
        author = author if isinstance(author, str) else AGENT
        self._events.append(InvocationEvent(author=author, content=content, usage_metadata=usage))

    def _is_new(self, part: Part) -> bool:
        """Say whether `part` is anything but a call or an answer that was told before."""
        call, answer = part.function_call, part.function_response
        known = self._heard.calls if call else self._heard.answers
        identity = call.id if call else answer and answer.id
        if identity in known:
            return False
        known |= {identity} if identity else set()
        return True

    def _note(self, metadata: Mapping[str, Json] | None) -> None:
        """Take note of a server of ADK, which tells of every call, so that silence means none."""
        self._is_captured |= any(key.startswith(_OF_ADK) for key in metadata or ())

    # --- What came of it ------------------------------------------------------------------------

    def _outcome(self) -> tuple[list[InvocationEvent], tuple[Part, ...]]:
        """Return what happened, and the response."""
        final: tuple[Part, ...] = ()
        if self._answer:
            final = as_parts(self._answer.parts)
        for artifact in self._made():
            parts = tuple(_joined(as_parts(artifact.parts)))
            # Before a call, a text is no response yet.
            cut = 1 + max((at for at, part in enumerate(parts) if _is_tool(part)), default=-1)
            if cut:
                self._happen((*final, *parts[:cut]), artifact.metadata or {})
                final = parts[cut:]
            else:
                final += parts
        events = self._events
        if not final:
            last = next((each for each in reversed(events) if _is_spoken(each)), None)
            final = parts_of(last) if last else ()
        return list(_without(events, final)), final

    def _made(self) -> Iterator[Artifact]:
        """Yield what was made on this message."""
        for name, artifact in self._heard.artifacts.items():
            earlier = self._before.get(name)
            if earlier is None or earlier.parts != artifact.parts:
                yield artifact

    def _waits_for(self) -> Iterator[FunctionCall]:
        message = self._status.message
        calls = [part.waits_for for part in (message.parts if message else ())]
        yield from (call for call in calls if call)
        if not any(calls):
            identity = f"{self.task_id}-{len(self._heard.messages)}"
            yield FunctionCall(id=identity, name=INPUT_REQUIRED, args={"message": self.said})


def _joined(parts: tuple[Part, ...]) -> Iterator[Part]:
    """Yield the parts of an artifact; texts in a row are the pieces of one, as they were made."""
    texts: list[str] = []
    for part in parts:
        if part.text is not None and not part.thought:
            texts.append(part.text)
            continue
        if texts:
            yield Part(text="".join(texts))
            texts.clear()
        yield part
    if texts:
        yield Part(text="".join(texts))


def _is_tool(part: Part) -> bool:
    return bool(part.function_call or part.function_response)


def _is_spoken(event: InvocationEvent) -> bool:
    parts = parts_of(event)
    return any(part.text for part in parts) and not any(map(_is_tool, parts))


def _without(events: list[InvocationEvent], final: tuple[Part, ...]) -> Iterator[InvocationEvent]:
    """Yield `events`; what became the response is not said twice, but its usage counts."""
    for event in events:
        if not final or parts_of(event) != final:
            yield event
        elif event.usage_metadata:
            yield event.model_copy(update={"content": None})


def _usage(given: Json) -> dict[str, Json] | None:
    """Return the tokens of an answer of a model, which come as any numbers of JSON."""
    if not isinstance(given, dict):
        return None
    counts = {to_snake(key): value for key, value in given.items()}
    return {
        key: int(value)
        for key, value in counts.items()
        if isinstance(value, int | float) and key.endswith("_token_count")
    } or None
