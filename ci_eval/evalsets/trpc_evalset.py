"""Evalsets of trpc-agent-go."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pydantic import Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from ci_eval.evalsets._case_entries import Entry, Source
from ci_eval.evalsets._evalset_reading import CaseFile, CaseReader, Notes
from ci_eval.formats.event_lists import as_args, as_response, distinct_ids, separate_lists
from ci_eval.formats.known_formats import first_object
from ci_eval.plugins.points import evalset
from ci_eval.records.cases import (
    Content,
    EvalCase,
    FunctionCall,
    Invocation,
    Json,
    Record,
    Rubric,
    RubricContent,
)
from ci_eval.text.validation_messages import errors_in

_UNREAD: Final = {
    "contextMessages": "messages before the conversation are left out",
    "actualConversation": "recorded conversations in an evalset are ignored",
    "toolMock": "tools are not mocked: the agent calls its real tools",
}
"""Keys of trpc-agent-go without an equivalent, with the warning for each."""


class _Given(Record, extra="ignore", alias_generator=to_camel):
    """A part of the file, in camelCase; unknown keys are ignored, as in Go."""


class _Message(_Given):
    role: str = ""
    content: str = ""
    content_parts: tuple[Json, ...] | None = None


class _Tool(_Given):
    id: str | None = None
    name: str = ""
    arguments: Json = None
    result: Json = None


class _Turn(_Given):
    invocation_id: str = ""
    user_content: _Message
    final_response: _Message | None = None
    tools: tuple[_Tool, ...] | None = None
    intermediate_responses: tuple[_Message, ...] | None = None
    creation_timestamp: float | None = None


class _Scenario(_Given):
    starting_prompt: str = ""
    conversation_plan: str


class _Session(_Given):
    app_name: str = ""
    user_id: str = ""
    state: dict[str, Json] | None = None


class _RubricText(_Given):
    text: str


class _Rubric(_Given):
    id: str
    content: _RubricText
    description: str | None = None


class _Case(_Given):
    eval_id: str = Field(min_length=1)
    conversation: tuple[_Turn, ...] | None = None
    conversation_scenario: _Scenario | None = None
    session_input: _Session | None = None
    rubrics: tuple[_Rubric, ...] | None = None
    creation_timestamp: float | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> "_Case":
        if (self.conversation is None) == (self.conversation_scenario is None):
            raise ValueError("needs either 'conversation' or 'conversationScenario'")
        return self


@evalset("trpc_agent_go")
class TrpcAgentGo(CaseReader):
    """An evalset of trpc-agent-go: ADK's keys in camelCase, and messages with `content`.

    `{"evalSetId", "evalCases": [{"evalId", "conversation": [{"userContent": {"content"}}]}]}`.
    The `tools` of a turn are the expected calls with their results; a turn without `tools` does
    not state which are called, whereas an empty list states that none are.  `arguments` that are
    not an object are stored under `arguments`, and a `result` that is not one under `result`.  Only
    the start and the plan of `conversationScenario` are read.  `contextMessages`,
    `actualConversation` and `toolMock` are ignored with a warning.
    """

    @classmethod
    def sniff(cls, head: Mapping[str, Json] | Sequence[Json] | None) -> bool:
        """Return True if the first case is in trpc-agent-go's format."""
        if not isinstance(head, Mapping) or "evalCases" not in head:
            return False
        case = first_object(head["evalCases"])
        message = first_object(case.get("conversation")).get("userContent")
        if isinstance(message, Mapping):
            return "content" in message or "contentParts" in message
        return bool({"userTurns", "evalMode", "expectedRunnerEnabled"} & case.keys()) or (
            isinstance(case.get("conversationScenario"), Mapping)
            and "driver" in case["conversationScenario"]
        )

    def cases(self, file: CaseFile) -> Iterator[EvalCase]:
        """Yield the valid cases of `file`, and note the problems of the others."""
        for entry in Source(file, "evalCases").entries():
            yield from _case(entry)

    def set_id(self, file: CaseFile) -> str:
        """Return the id in the file; by default the name of the file."""
        given = file.header["evalSetId"].value if "evalSetId" in file.header else None
        return given if isinstance(given, str) and given else file.path.stem


def _case(entry: Entry) -> Iterator[EvalCase]:
    try:
        given = _Case.model_validate(entry.value)
    except ValidationError as exc:
        for fault in errors_in(exc, _Case):
            is_missing = fault.kind == "missing"
            said = f"{to_camel(fault.key)!r} is missing" if is_missing else fault.message
            entry.notes.error(said, fault.loc)
        return
    _note_unread(entry.value, entry.notes)
    scenario, session = given.conversation_scenario, given.session_input
    turns = given.conversation
    yield EvalCase(
        eval_id=given.eval_id,
        conversation=None if turns is None else tuple(map(_invocation, turns)),
        conversation_scenario=scenario and scenario.model_dump(),
        session_input=session and {**session.model_dump(), "state": session.state or {}},
        rubrics=tuple(map(_rubric, given.rubrics or ())) or None,
        creation_timestamp=given.creation_timestamp or 0.0,
        line=entry.line,
    )


def _note_unread(case: Mapping[str, Json], notes: Notes) -> None:
    for key, message in _UNREAD.items():
        if case.get(key):
            notes.warning(message, (key,))
    for position, turn in enumerate(case.get("conversation") or ()):
        for key, message in _UNREAD.items():
            if turn.get(key):
                notes.warning(message, ("conversation", position, key))
        if turn["userContent"].get("contentParts"):
            place = ("conversation", position, "userContent", "contentParts")
            notes.warning("only 'content' of a message is read", place)


def _rubric(given: _Rubric) -> Rubric:
    content = RubricContent(text_property=given.content.text)
    return Rubric(
        rubric_id=given.id,
        rubric_content=content,
        description=given.description,
        type=Rubric.of_response,
    )


def _invocation(turn: _Turn) -> Invocation:
    final, tools, texts = turn.final_response, turn.tools or (), turn.intermediate_responses or ()
    calls = (
        FunctionCall(id=identity, name=tool.name, args=as_args(tool.arguments))
        for identity, tool in zip(distinct_ids([each.id for each in tools]), tools, strict=True)
    )
    results = (None if each.result is None else as_response(each.result) for each in tools)
    said = ((each.role or "agent", each.content) for each in texts)
    data = separate_lists(zip(calls, results, strict=True), said)
    return Invocation(
        invocation_id=turn.invocation_id,
        user_content=Content.of_text(turn.user_content.content, role="user"),
        final_response=Content.of_text(final.content, role="model") if final else None,
        intermediate_data=data if turn.tools is not None or texts else None,
        unseen=turn.tools is None and bool(texts),
        creation_timestamp=turn.creation_timestamp or 0.0,
    )
