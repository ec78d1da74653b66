"""AgentFlow's evalset, as written by `EvalSet.to_file` of 10xscale-agentflow."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel, Field

from ci_eval.evalsets._evalset_reading import CaseFile, CaseReader, Notes, notes_on
from ci_eval.formats.event_lists import distinct_ids, separate_lists, stored_result
from ci_eval.formats.known_formats import first_object
from ci_eval.plugins.points import evalset
from ci_eval.records.cases import (
    Content,
    EvalCase,
    FunctionCall,
    Invocation,
    Json,
    Record,
    SessionInput,
)
from ci_eval.text.fingerprint import fingerprint
from ci_eval.text.json_stream import Element, JsonFile
from ci_eval.text.suggest import did_you_mean
from ci_eval.text.yaml_files import Loc

_CASES: Final = "eval_cases"
_HEADER: Final = {
    "eval_set_id": (str, "text"),
    "name": (str, "text"),
    "description": (str, "text"),
    _CASES: (list, "a list of cases"),
    "metadata": (dict, "an object"),
}
"""Type of each key of the file."""


class _Given(Record, extra="ignore"):
    """A part of the file; as in AgentFlow, unknown keys are ignored."""


class _Message(_Given):
    role: str
    content: str | tuple[dict[str, Json], ...]
    metadata: dict[str, Json] = Field(default_factory=dict)

    @property
    def text(self) -> str:
        """The texts of all blocks, joined as in AgentFlow."""
        if isinstance(self.content, str):
            return self.content
        return " ".join(block["text"] for block in self.content if _is_text(block))


def _is_text(block: dict[str, Json]) -> bool:
    return isinstance(block.get("text"), str)


class _Call(_Given):
    name: str
    args: dict[str, Json] = Field(default_factory=dict)
    call_id: str | None = None
    result: Json = None


class _Turn(_Given):
    invocation_id: str = ""
    user_content: _Message
    expected_tool_trajectory: tuple[_Call, ...] = ()
    expected_node_order: tuple[str, ...] = ()
    expected_intermediate_responses: tuple[_Message, ...] = ()
    expected_final_response: _Message | None = None


_EXPECTED: Final = [key for key in _Turn.model_fields if key.startswith("expected_")]


class _Session(_Given):
    app_name: str = ""
    user_id: str = "test_user"
    state: dict[str, Json] = Field(default_factory=dict)
    config: dict[str, Json] = Field(default_factory=dict)


class _Case(_Given):
    eval_id: str = ""
    name: str = ""
    description: str = ""
    conversation: tuple[_Turn, ...] = ()
    session_input: _Session = Field(default_factory=_Session)
    tags: tuple[str, ...] = ()
    metadata: dict[str, Json] = Field(default_factory=dict)


@evalset("agentflow")
class AgentFlow(CaseReader):
    """AgentFlow's evalset: `{"eval_cases": [{"conversation": [{…, "expected_…"}, …]}, …]}`.

    Unlike ADK's evalset, its turns have `expected_…` keys, and a message has its text under
    `content`.  As in AgentFlow, only the text blocks of a message are read.  A case without an id
    is named after the user's messages, whereas AgentFlow gives it a new name at every load.
    A turn without `expected_tool_trajectory` does not state which tools are called, whereas an
    empty list states that none are; an empty `expected_node_order`, which AgentFlow always writes,
    states nothing unless another turn of the case expects nodes. An empty response is expected
    only after a turn that expects a text.
    """

    @classmethod
    def sniff(cls, head: Mapping[str, Json] | Sequence[Json] | None) -> bool:
        """Return True if the first case is AgentFlow's; without a turn, `metadata` decides."""
        if not isinstance(head, Mapping) or not isinstance(head.get(_CASES), list):
            return False
        case = first_object(head[_CASES])
        turn = first_object(case.get("conversation"))
        message = turn.get("user_content")
        if isinstance(message, Mapping) and message.keys() & {"content", "parts"}:
            return "content" in message
        if turn:
            return any(key in turn for key in _EXPECTED)
        return "metadata" in head and case.keys() <= _Case.model_fields.keys()

    def cases(self, file: CaseFile) -> Iterator[EvalCase]:
        """Yield the valid cases of `file`, and note the problems of the others."""
        position = 0
        document = JsonFile(file.path, shown=file.shown, unique=True)
        for name, element in document.walk(frozenset({_CASES})):
            if name == _CASES and file.header.get(name) == [] and not element.is_begin:
                yield from _case(element, notes_on(element, (name, position), file.problems))
                position += 1
            elif name in _HEADER:
                file.note_header(element, name, _HEADER)
            else:
                message = f"unknown key, ignored{did_you_mean(name, _HEADER)}"
                file.problems.add(message, element.line, name, severity="warning")
        if _CASES not in file.header:
            file.problems.add(f"{_CASES!r} is missing", 1)

    def set_id(self, file: CaseFile) -> str:
        """Return the id in the file; by default the name of the file."""
        return str(file.header.get("eval_set_id", file.path.name))


# --- One case -------------------------------------------------------------------------------


def _case(element: Element, notes: Notes) -> Iterator[EvalCase]:
    """Yield the case that `element` holds, or note its problems."""
    given = notes.validated(_Case, element.value)
    if given is None:
        return
    _note_unknown(given, element.value, notes, ())
    _note_oddities(given, notes)
    # AgentFlow's fields without an equivalent here are kept unchanged.
    more = given.model_dump(include={"name", "description", "metadata"}, exclude_defaults=True)
    yield EvalCase(
        eval_id=given.eval_id or _name_of(given),
        conversation=_invocations(given.conversation),
        session_input=SessionInput(**given.session_input.model_dump()),
        tags=given.tags,
        line=element.line,
        **more,
    )


def _name_of(case: _Case) -> str:
    """Return a name for `case` that depends only on the user's messages."""
    said = [turn.user_content.text for turn in case.conversation]
    return f"unnamed-{fingerprint(said)[:8]}"


def _note_unknown(model: BaseModel, value: dict[str, Any], notes: Notes, loc: Loc) -> None:
    """Warn about keys that AgentFlow does not know."""
    known = type(model).model_fields
    for key, inner in value.items():
        if key not in known:
            notes.warning(f"unknown key, ignored{did_you_mean(key, known)}", (*loc, key))
            continue
        read = getattr(model, key)
        if isinstance(read, BaseModel):
            _note_unknown(read, inner, notes, (*loc, key))
        elif isinstance(read, tuple):
            for position, each in enumerate(read):
                if isinstance(each, BaseModel):
                    _note_unknown(each, inner[position], notes, (*loc, key, position))


def _note_oddities(case: _Case, notes: Notes) -> None:
    """Warn about likely mistakes."""
    if not case.eval_id:
        notes.warning(
            f"has no 'eval_id'; its generated name {_name_of(case)!r} changes with the user's "
            "messages; give it an id"
        )
    if not case.conversation:
        notes.warning("has no invocation, so there is nothing to measure", ("conversation",))
    for position, turn in enumerate(case.conversation):
        for key in ("user_content", "expected_final_response"):
            message = getattr(turn, key)
            blocks = message.content if message and not isinstance(message.content, str) else ()
            for number, block in enumerate(blocks):
                if not _is_text(block):
                    loc = ("conversation", position, key, "content", number)
                    notes.warning("has no text, so it is left out, as in AgentFlow", loc)


def _invocations(turns: Sequence[_Turn]) -> tuple[Invocation, ...]:
    """Return the turns as invocations; a part that all of them leave empty is not expected."""
    has_nodes = any(turn.expected_node_order for turn in turns)
    found, has_response = [], False
    for turn in turns:
        final = turn.expected_final_response
        has_response = has_response or bool(final and final.text)
        said = final.text if final and has_response else None
        found.append(_invocation(turn, said, turn.expected_node_order if has_nodes else None))
    return tuple(found)


def _invocation(turn: _Turn, said: str | None, nodes: tuple[str, ...] | None) -> Invocation:
    """Return a turn as an invocation that expects this response and these nodes."""
    return Invocation(
        invocation_id=turn.invocation_id,
        user_content=Content.of_text(turn.user_content.text, role="user"),
        final_response=None if said is None else Content.of_text(said, role="model"),
        **_trajectory(turn),
        nodes=nodes,
    )


def _trajectory(turn: _Turn) -> dict[str, Json]:
    """Return the expected calls and responses; `unseen` marks that calls are not stated."""
    texts = turn.expected_intermediate_responses
    stated = "expected_tool_trajectory" in turn.model_fields_set
    if not (stated or texts):
        return {}
    calls = turn.expected_tool_trajectory
    ids = distinct_ids([call.call_id for call in calls])
    asked = (
        FunctionCall(id=identity, name=call.name, args=call.args)
        for identity, call in zip(ids, calls, strict=True)
    )
    results = (None if each.result is None else stored_result(each.result) for each in calls)
    said = ((each.role, each.text) for each in texts)
    data = separate_lists(zip(asked, results, strict=True), said)
    return {"intermediate_data": data, "unseen": not stated}
