"""What is asked of an agent, and what it does: evalsets, cases, invocations, messages.

`EvalCase`, `Invocation`, `Content` and their parts read Google ADK's files, in both spellings.
"""

from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    model_validator,
)
from pydantic.alias_generators import to_camel

from ci_eval.records.bounds import Moment, Seconds, Total
from ci_eval.records.finish_reasons import FinishReason

SCHEMA_VERSION = 1
"""The version of every stored file; raised when a reader of the old one would go wrong."""

Json = Any
"""A JSON value; pydantic's own type for it copies every value."""


class Record(BaseModel):
    """A frozen value without NaN or infinity; the docstring under a field describes it."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True
    )


class Stored(Record):
    """A record that is read back from a file which a newer version may have written."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="ignore")


class Status(StrEnum):
    """What became of a criterion, a trial or a run; JUnit's four."""

    PASSED = "passed"
    """Measured, and good enough."""
    FAILED = "failed"
    """Measured, and not good enough."""
    ERROR = "error"
    """Should have been measured, and could not be."""
    SKIPPED = "skipped"
    """Does not apply."""

    @classmethod
    def worst(cls, statuses: "list[Status]") -> "Status":
        """Return the worst: error, failed, passed, skipped; nothing at all is skipped."""
        return max(statuses, key=_SEVERITY.__getitem__, default=cls.SKIPPED)


_SEVERITY = {Status.SKIPPED: 0, Status.PASSED: 1, Status.FAILED: 2, Status.ERROR: 3}


class AdkRecord(Record):
    """A value of ADK's files: snake_case or camelCase when read, snake_case when written."""

    model_config: ClassVar[ConfigDict] = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class FunctionCall(AdkRecord):
    """A call of a tool, in a message."""

    id: str | None = None
    name: str | None = None
    args: dict[str, Json] | None = None
    partial_args: Json = None
    will_continue: Json = None


class FunctionResponse(AdkRecord):
    """What a tool answered, in a message."""

    id: str | None = None
    name: str | None = None
    response: dict[str, Json] | None = None
    parts: Json = None
    scheduling: Json = None
    will_continue: Json = None


class Part(AdkRecord):
    """A piece of a message: text, a tool call, a tool's answer, or data."""

    text: str | None = None
    thought: bool | None = None
    thought_signature: Json = None
    function_call: FunctionCall | None = None
    function_response: FunctionResponse | None = None
    inline_data: Json = None
    file_data: Json = None
    code_execution_result: Json = None
    executable_code: Json = None
    video_metadata: Json = None
    media_resolution: Json = None
    media_processing: Json = None
    tool_call: Json = None
    tool_response: Json = None
    part_metadata: Json = None
    audio_transcription: Json = None
    audio_metadata: Json = None
    speech_metadata: Json = None
    document_metadata: Json = None
    spreadsheet_metadata: Json = None


class Content(AdkRecord):
    """A message."""

    role: str | None = None
    parts: tuple[Part, ...] | None = None

    @classmethod
    def of_text(cls, text: str, *, role: str) -> "Content":
        """Return a message of one text."""
        return cls(role=role, parts=(Part(text=text),))

    @cached_property
    def text(self) -> str:
        """The texts of all parts, thoughts too, one under the other, as ADK joins them."""
        return "\n".join(part.text for part in self.parts or () if part.text)

    @cached_property
    def is_plain_text(self) -> bool:
        """Whether the texts are all there is."""
        plain = {"text", "thought", "thought_signature"}
        return all(
            value is None or field in plain for part in self.parts or () for field, value in part
        )


class IntermediateData(AdkRecord):
    """What happened before the final response, as lists."""

    tool_uses: tuple[FunctionCall, ...] = ()
    tool_responses: tuple[FunctionResponse, ...] = ()
    intermediate_responses: tuple[tuple[str, tuple[Part, ...]], ...] = ()


class InvocationEvent(AdkRecord):
    """One message of one agent on the way to the final response."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="ignore")

    author: str
    content: Content | None = None
    grounding_metadata: Json = None
    usage_metadata: dict[str, Json] | None = None
    model_version: str | None = None
    finish_reason: FinishReason = None


class InvocationEvents(AdkRecord):
    """What happened before the final response, in order."""

    invocation_events: tuple[InvocationEvent, ...]


def _which_data(value: object) -> str:
    keys = value.keys() if isinstance(value, Mapping) else ()
    named = not {"invocation_events", "invocationEvents"}.isdisjoint(keys)
    return "<events>" if named or isinstance(value, InvocationEvents) else "<data>"


IntermediateDataType = Annotated[
    Annotated[IntermediateData, Tag("<data>")] | Annotated[InvocationEvents, Tag("<events>")],
    Discriminator(_which_data),
]
"""Both ways to keep a trajectory, told apart by the one key that only events have."""


class AgentDetails(AdkRecord):
    """What an agent was told and which tools it had."""

    name: str
    instructions: str = ""
    tool_declarations: tuple[Json, ...] = ()


class AppDetails(AdkRecord):
    """The agents that took part, by name."""

    agent_details: dict[str, AgentDetails] = {}


class RubricContent(AdkRecord):
    """A property that a judge answers yes or no to."""

    text_property: str | None = None
    """The property, in a sentence."""


class Rubric(AdkRecord):
    """One property that a response or a trajectory is judged on."""

    of_response: ClassVar[str] = "FINAL_RESPONSE_QUALITY"
    """The type of those that the final response is judged on."""

    rubric_id: str
    """What it is called in the evidence."""
    rubric_content: RubricContent
    """What is judged."""
    description: str | None = None
    """For readers; no judge sees it."""
    type: str | None = None
    """Which criteria it is meant for, where a case brings it: their `rubric_type`."""


class ToolCall(NamedTuple):
    """A tool call with what came back."""

    name: str | None
    args: dict[str, Json] | None
    """The arguments; `None` where none were written down, which is not the same as `{}`."""
    result: dict[str, Json] | None
    """What the tool answered; `None` where no answer was recorded."""


class Invocation(AdkRecord):
    """One user message and everything up to the final response, expected or observed."""

    invocation_id: str = ""
    user_content: Content
    final_response: Content | None = None
    intermediate_data: IntermediateDataType | None = None
    creation_timestamp: Moment = 0.0
    rubrics: tuple[Rubric, ...] | None = None
    app_details: AppDetails | None = None
    duration: Seconds | None = None
    """Seconds from the message to the final response."""
    model_duration: Seconds | None = None
    """Seconds of these in which a model was at work."""
    tool_duration: Seconds | None = None
    """Seconds of these in which a tool was at work and no model."""
    cost_usd: Total | None = None
    """What the models cost, where the agent says so; ours, ADK has no such field."""
    nodes: tuple[str, ...] | None = None
    """The nodes of a graph as they were visited, `None` where nobody looked; ours, too."""
    waits_for: tuple[FunctionCall, ...] = ()
    """Calls that somebody outside has to answer before the agent goes on; ours, too."""
    finish_reason: FinishReason = None
    """Why the final response ended before it was whole, such as `MAX_TOKENS`; ours, too."""
    unseen: bool = False
    """Whether nothing tells which tools were called, or are expected to be; ours, too."""

    @property
    def user(self) -> str:
        """The text of the user's message."""
        return self.user_content.text

    @property
    def response(self) -> str:
        """The text of the final response; empty where there is none."""
        return self.final_response.text if self.final_response else ""

    @property
    def events(self) -> tuple[InvocationEvent, ...] | None:
        """The events, where the trajectory was kept as events."""
        data = self.intermediate_data
        return data.invocation_events if isinstance(data, InvocationEvents) else None

    @cached_property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The trajectory: every tool call in order, each with the answer of the same id."""
        calls, responses = self._calls_and_responses()
        by_id = {response.id: response.response for response in responses}
        return tuple(ToolCall(call.name, call.args, by_id.get(call.id)) for call in calls)

    def _calls_and_responses(self) -> tuple[list[FunctionCall], list[FunctionResponse]]:
        data = self.intermediate_data
        if isinstance(data, IntermediateData):
            return list(data.tool_uses), list(data.tool_responses)
        parts = [
            part
            for event in self.events or ()
            if event.content
            for part in event.content.parts or ()
        ]
        return (
            [part.function_call for part in parts if part.function_call is not None],
            [part.function_response for part in parts if part.function_response is not None],
        )


class SessionInput(AdkRecord):
    """The session a conversation starts from."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")

    app_name: str
    user_id: str
    state: dict[str, Json] = {}
    session_id: str | None = None


class ConversationScenario(AdkRecord):
    """A conversation that a simulated user leads."""

    starting_prompt: str
    conversation_plan: str
    user_persona: Json = None


class CannedResult(Record):
    """What comes back from a tool that is not really called; one of the last three is given."""

    args: dict[str, Json] | None = None
    """Which calls are meant: those with at least these arguments; left out, all."""
    result: Json = None
    """What the tool answers."""
    results: tuple[Json, ...] | None = Field(default=None, min_length=1)
    """What it answers the first time, the second time …; the last is answered from then on."""
    error: str | None = None
    """The message of the error that it ends in."""

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        if len({"result", "results", "error"} & self.model_fields_set) != 1:
            raise ValueError("needs one of 'result', 'results' and 'error'")
        return self


def _listed(value: object) -> object:
    return [value] if isinstance(value, Mapping) else value


CannedResults = Annotated[
    dict[str, Annotated[tuple[CannedResult, ...], BeforeValidator(_listed)]],
    Field(default_factory=dict),
]
"""By the name of a tool, what comes back: the first that is meant by a call; one, or a list."""


class ToolMocks(Record):
    """Tools that are not really called."""

    tools: CannedResults
    """What comes back, by the name of the tool: the first entry that is meant by a call."""
    unmatched: Literal["error", "pass"] = "error"
    """A call for which nothing is given here is an error of the trial, or is really made."""

    def before(self, others: "ToolMocks") -> "ToolMocks":
        """Return what is given here and, where that is not meant by a call, by `others`."""
        names = dict.fromkeys((*self.tools, *others.tools))
        tools = {name: self.tools.get(name, ()) + others.tools.get(name, ()) for name in names}
        said = self if "unmatched" in self.model_fields_set else others
        return ToolMocks(tools=tools, unmatched=said.unmatched)


class EvalCase(AdkRecord):
    """One conversation to hold with the agent, and what is expected of it."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")

    eval_id: str
    conversation: tuple[Invocation, ...] | None = None
    conversation_scenario: ConversationScenario | None = None
    session_input: SessionInput | None = None
    creation_timestamp: Moment = 0.0
    rubrics: tuple[Rubric, ...] | None = None
    final_session_state: dict[str, Json] | None = {}
    tags: tuple[str, ...] = ()
    """Words to select the case by; ours, ADK has no such field."""
    assertions: tuple[dict[str, Json], ...] = ()
    """What must hold of this case alone, as `ci/assertions` reads it; ours, too."""
    tool_mocks: ToolMocks | None = None
    """Tools that are not really called in this case; ours, too."""
    human_answers: CannedResults
    """What a human answers where the agent stops and asks, by the name of the tool; ours, too."""
    rerun_on_resume: bool = False
    """Whether a resumed agent goes on with the answers, instead of ending with them; ours, too."""
    line: int | None = Field(default=None, exclude=True)
    """Where the case starts in its file; not part of the data."""
    of_adk: bool = Field(default=False, exclude=True)
    """Whether it stands in a file of ADK's own, where ADK counts what is left out; not part of the
    data either."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.conversation is None) == (self.conversation_scenario is None):
            raise ValueError("needs either 'conversation' or 'conversation_scenario'")
        return self
