"""Eval cases, invocations and messages, which read Google ADK's files, in both spellings."""

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
from ci_eval.records.model_usage import ModelUsage
from ci_eval.records.result_owners import result_owners

SCHEMA_VERSION = 1
"""The version of every stored file; raised if older readers would misread it."""

Json = Any
"""A JSON value; pydantic's own type would copy every value."""


class Record(BaseModel):
    """A frozen value without NaN or infinity; the docstring under a field describes it."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True
    )


class Stored(Record):
    """A record read from a file that a newer version may have written."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="ignore")


class Status(StrEnum):
    """The status of a criterion, a trial or a run; the same four as in JUnit."""

    PASSED = "passed"
    """Measured, good enough."""
    FAILED = "failed"
    """Measured, not good enough."""
    ERROR = "error"
    """Should have been measured, but could not be."""
    SKIPPED = "skipped"
    """Does not apply."""

    @classmethod
    def worst(cls, statuses: "list[Status]") -> "Status":
        """Return the worst of error, failed, passed, skipped; `SKIPPED` if there are none."""
        return max(statuses, key=_SEVERITY.__getitem__, default=cls.SKIPPED)


_SEVERITY = {Status.SKIPPED: 0, Status.PASSED: 1, Status.FAILED: 2, Status.ERROR: 3}


class AdkRecord(Record):
    """A record in ADK's files: reads snake_case and camelCase, writes snake_case."""

    model_config: ClassVar[ConfigDict] = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class FunctionCall(AdkRecord):
    """A tool call in a message."""

    id: str | None = None
    name: str | None = None
    args: dict[str, Json] | None = None
    partial_args: Json = None
    will_continue: Json = None


class FunctionResponse(AdkRecord):
    """A tool's result in a message."""

    id: str | None = None
    name: str | None = None
    response: dict[str, Json] | None = None
    parts: Json = None
    scheduling: Json = None
    will_continue: Json = None


class Part(AdkRecord):
    """A part of a message: text, a tool call, a tool's result, or data."""

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
        """Return a message with one text part."""
        return cls(role=role, parts=(Part(text=text),))

    @cached_property
    def text(self) -> str:
        """The texts of all parts, including thoughts, joined with newlines as in ADK."""
        return "\n".join(part.text for part in self.parts or () if part.text)

    @cached_property
    def is_plain_text(self) -> bool:
        """True if the message holds nothing but text."""
        plain = {"text", "thought", "thought_signature"}
        others = ((part, field) for part in self.parts or () for field in part.model_fields_set)
        return all(field in plain or getattr(part, field) is None for part, field in others)


class IntermediateData(AdkRecord):
    """The trajectory before the final response, as lists."""

    tool_uses: tuple[FunctionCall, ...] = ()
    tool_responses: tuple[FunctionResponse, ...] = ()
    intermediate_responses: tuple[tuple[str, tuple[Part, ...]], ...] = ()


class InvocationEvent(AdkRecord):
    """One message of one agent before the final response."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="ignore")

    author: str
    content: Content | None = None
    grounding_metadata: Json = None
    usage_metadata: dict[str, Json] | None = None
    model_version: str | None = None
    system_fingerprint: str | None = None
    finish_reason: FinishReason = None

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of its content; none if there is no content."""
        return (self.content and self.content.parts) or ()


class InvocationEvents(AdkRecord):
    """The trajectory before the final response, as events in order."""

    invocation_events: tuple[InvocationEvent, ...]


def _data_tag(value: object) -> str:
    keys = value if isinstance(value, dict) else ()
    named = "invocation_events" in keys or "invocationEvents" in keys
    return "<events>" if named or isinstance(value, InvocationEvents) else "<data>"


IntermediateDataType = Annotated[
    Annotated[IntermediateData, Tag("<data>")] | Annotated[InvocationEvents, Tag("<events>")],
    Discriminator(_data_tag),
]
"""Both forms of a trajectory; only events have the key that distinguishes them."""


class AgentDetails(AdkRecord):
    """An agent's instructions and tools."""

    name: str
    instructions: str = ""
    tool_declarations: tuple[Json, ...] = ()


class AppDetails(AdkRecord):
    """The participating agents, by name."""

    agent_details: dict[str, AgentDetails] = Field(default_factory=dict)


class RubricContent(AdkRecord):
    """A property to which a judge answers yes or no."""

    text_property: str | None = None
    """The property, as a sentence."""


class Rubric(AdkRecord):
    """One property by which a response or a trajectory is judged."""

    of_response: ClassVar[str] = "FINAL_RESPONSE_QUALITY"
    """The type of rubrics for the final response."""

    rubric_id: str
    """Its name in the evidence."""
    rubric_content: RubricContent
    """The property to judge."""
    description: str | None = None
    """For readers; not shown to judges."""
    type: str | None = None
    """For a rubric in a case: the `rubric_type` of the criteria that use it."""


class ToolCall(NamedTuple):
    """A tool call with its result."""

    name: str | None
    args: dict[str, Json] | None
    """The arguments; `None` if not stated, which differs from `{}`."""
    result: dict[str, Json] | None
    """The tool's result; `None` if not recorded."""


OWN_FIELDS = frozenset({"cost_usd", "nodes", "waits_for", "finish_reason", "metered", "unseen"})
"""The fields of invocations that are not ADK's, which refuses them."""


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
    """Seconds of `duration` during which a model was running."""
    tool_duration: Seconds | None = None
    """Seconds of `duration` during which a tool but no model was running."""
    # Our own fields:
    cost_usd: Total | None = None
    """Cost of the models, if the agent reports it."""
    nodes: tuple[str, ...] | None = None
    """The graph nodes in the order visited; `None` if not observed."""
    waits_for: tuple[FunctionCall, ...] = ()
    """Calls that need an external answer before the agent continues."""
    finish_reason: FinishReason = None
    """Why the final response is incomplete, such as `MAX_TOKENS`."""
    metered: ModelUsage | None = None
    """Usage of models that the gateway metered."""
    unseen: bool = False
    """Whether the called or expected tool calls are unknown."""

    @property
    def user(self) -> str:
        """The text of the user's message."""
        return self.user_content.text

    @property
    def response(self) -> str:
        """The text of the final response; empty if there is none."""
        return self.final_response.text if self.final_response else ""

    @property
    def events(self) -> tuple[InvocationEvent, ...] | None:
        """The events, if the trajectory consists of events."""
        data = self.intermediate_data
        return data.invocation_events if isinstance(data, InvocationEvents) else None

    @cached_property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The trajectory: every tool call in order, each with its last result."""
        calls, results = self.calls_and_responses()
        owners = result_owners(calls, results)
        last = {owner: each.response for owner, each in zip(owners, results, strict=True)}
        return tuple(ToolCall(call.name, call.args, last.get(at)) for at, call in enumerate(calls))

    def calls_and_responses(self) -> tuple[list[FunctionCall], list[FunctionResponse]]:
        """Return the calls and results of the trajectory, each in order."""
        data = self.intermediate_data
        if isinstance(data, IntermediateData):
            return list(data.tool_uses), list(data.tool_responses)
        parts = [part for event in self.events or () for part in event.parts]
        calls = [part.function_call for part in parts if part.function_call]
        return calls, [part.function_response for part in parts if part.function_response]


class SessionInput(AdkRecord):
    """The session a conversation starts from."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")

    app_name: str
    user_id: str
    state: dict[str, Json] = Field(default_factory=dict)
    session_id: str | None = None


class ConversationScenario(AdkRecord):
    """A conversation with a simulated user."""

    starting_prompt: str
    conversation_plan: str
    user_persona: Json = None


class CannedResult(Record):
    """A canned result of a mocked tool; exactly one of the last three fields is set."""

    args: dict[str, Json] | None = None
    """Match calls that have at least these arguments. Default: match all calls."""
    result: Json = None
    """The result of every call."""
    results: tuple[Json, ...] | None = Field(default=None, min_length=1)
    """The results of the first call, the second call …; the last one repeats."""
    error: str | None = None
    """The error message with which the call fails."""

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        if len({"result", "results", "error"} & self.model_fields_set) != 1:
            raise ValueError("needs one of 'result', 'results' and 'error'")
        return self


def _as_list(value: object) -> object:
    return [value] if isinstance(value, Mapping) else value


CannedResults = Annotated[
    dict[str, Annotated[tuple[CannedResult, ...], BeforeValidator(_as_list)]],
    Field(default_factory=dict),
]
"""Canned results by tool name, one or a list; the first that matches a call is used."""


class ToolMocks(Record):
    """Mocked tools."""

    tools: CannedResults
    """Canned results by tool name; the first entry that matches a call is used."""
    unmatched: Literal["error", "pass"] = "error"
    """For a call that matches no entry: fail the trial with an error, or pass the call on to the
    real tool."""

    def before(self, others: "ToolMocks") -> "ToolMocks":
        """Return these mocks combined with `others`, which come second."""
        names = dict.fromkeys((*self.tools, *others.tools))
        tools = {name: self.tools.get(name, ()) + others.tools.get(name, ()) for name in names}
        decisive = self if "unmatched" in self.model_fields_set else others
        return ToolMocks(tools=tools, unmatched=decisive.unmatched)


class EvalCase(AdkRecord):
    """One conversation to hold with the agent, and what is expected of it."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")

    eval_id: str
    conversation: tuple[Invocation, ...] | None = None
    conversation_scenario: ConversationScenario | None = None
    session_input: SessionInput | None = None
    creation_timestamp: Moment = 0.0
    rubrics: tuple[Rubric, ...] | None = None
    final_session_state: dict[str, Json] | None = Field(default_factory=dict)
    tags: tuple[str, ...] = ()
    """Tags for selecting the case; like the fields below, not part of ADK's format."""
    assertions: tuple[dict[str, Json], ...] = ()
    """Assertions about this case alone, which `ci/assertions` checks."""
    tool_mocks: ToolMocks | None = None
    """Tools that are mocked in this case."""
    human_answers: CannedResults
    """The human's answers when the agent stops to ask, by tool name."""
    rerun_on_resume: bool = False
    """Whether a resumed agent continues with the answers instead of ending with them."""
    line: int | None = Field(default=None, exclude=True)
    """First line of the case in its file; not data."""
    of_adk: bool = Field(default=False, exclude=True, alias="of_adk")
    """Whether it is from ADK's own format, for which missing expectations count; not data."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.conversation is None) == (self.conversation_scenario is None):
            raise ValueError("needs either 'conversation' or 'conversation_scenario'")
        return self
