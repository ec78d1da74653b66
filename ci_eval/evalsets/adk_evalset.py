"""ADK's evalset, an object with `eval_set_id` and `eval_cases`, and its two older formats.

These are a list of cases, and a list of turns (`*.test.json`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, Field
from pydantic.alias_generators import to_camel

from ci_eval.evalsets._evalset_reading import (
    ADK_RESPONSES,
    ADK_TRAJECTORY,
    CaseFile,
    CaseReader,
    Notes,
    note_persona,
    notes_on,
)
from ci_eval.evalsets.agentflow_evalset import AgentFlow
from ci_eval.evalsets.trpc_evalset import TrpcAgentGo
from ci_eval.formats.agents_cli_cases import is_agents_cli
from ci_eval.formats.known_formats import first_object
from ci_eval.plugins.points import evalset
from ci_eval.records.cases import OWN_FIELDS, EvalCase, Json, Record, Rubric
from ci_eval.records.stated_expectations import SILENCE, states
from ci_eval.text.json_stream import Element, JsonFile
from ci_eval.text.suggest import did_you_mean
from ci_eval.text.validation_messages import describe
from ci_eval.text.yaml_files import Loc

_ARRAYS = frozenset({"eval_cases", "evalCases"})
_HEADER = {
    "eval_set_id": (str, "text"),
    "eval_cases": (list, "a list of cases"),
    **dict.fromkeys(("name", "description", "creation_timestamp"), (object, "")),
}
"""The keys of the file, with the type of each that is checked."""
_CONTENTS = {"user_content": "user", "final_response": "model"}
_OWN_KEYS = OWN_FIELDS.union(map(to_camel, OWN_FIELDS))
OLD_KEYS = ("query", "reference", "expected_tool_use", "expected_intermediate_agent_responses")
"""Keys of a turn that only ADK's older formats use."""


@evalset("adk")
class Adk(CaseReader):
    """ADK's evalset: `{"eval_set_id": …, "eval_cases": [{"eval_id", "conversation"}, …]}`.

    As in ADK, keys inside a case may be snake_case or camelCase.  A file that ADK would refuse is
    accepted with a warning if its meaning is clear.
    """

    @classmethod
    def sniff(cls, head: Mapping[str, Json] | Sequence[Json] | None) -> bool:
        """Return True for an object with a list of cases that is in no other format."""
        return (
            isinstance(head, Mapping)
            and bool({"eval_cases", "evalCases", "eval_set_id", "evalSetId"} & head.keys())
            and not (AgentFlow.sniff(head) or TrpcAgentGo.sniff(head) or is_agents_cli(head))
        )

    def cases(self, file: CaseFile) -> Iterator[EvalCase]:
        """Yield the valid cases of `file`, and note the problems of the others."""
        position = 0
        for name, element in JsonFile(file.path, shown=file.shown, unique=True).walk(_ARRAYS):
            is_list = isinstance(file.header.get("eval_cases"), list)
            if name in _ARRAYS and is_list and not element.is_begin:
                case = _case(element, notes_on(element, (name, position), file.problems))
                position += 1
                if case:
                    yield case
            else:
                _note_header(name, element, file)
        for key in ("eval_set_id", "eval_cases"):
            if key not in file.header:
                file.problems.add(f"{key!r} is missing", 1)

    def set_id(self, file: CaseFile) -> str:
        """Return the id in the file."""
        return str(file.header["eval_set_id"])


def _note_header(name: str, element: Element, file: CaseFile) -> None:
    key = "".join("_" + char.lower() if char.isupper() else char for char in name)
    if key not in _HEADER:
        message = f"unknown key, ignored{did_you_mean(name, _HEADER)}"
        file.problems.add(message, element.line, name, severity="warning")
        return
    if key != name:
        message = f"ADK itself reads only {key!r}"
        file.problems.add(message, element.line, name, severity="warning", adk_refuses=True)
    file.note_header(element, key, _HEADER)


def _case(element: Element, notes: Notes) -> EvalCase | None:
    """Return the case that `element` holds, or note its problems."""
    value = element.value
    if not isinstance(value, dict):
        notes.error(f"expected an object, found {describe(value)}")
        return None
    if isinstance(value.get("conversation"), list):
        turns = [
            _converted_turn(turn, notes, ("conversation", index))
            for index, turn in enumerate(value["conversation"])
        ]
        value = {**value, "conversation": turns}
    case = notes.validated(EvalCase, {**value, "line": element.line, "of_adk": True})
    if case:
        note_persona(case, notes, ("conversation_scenario", "user_persona"))
        note_oddities(case, notes)
        _note_empty(case, notes)
    return case


def _note_empty(case: EvalCase, notes: Notes) -> None:
    """Note texts that may not be empty when ADK runs the case."""
    scenario, session = case.conversation_scenario, case.session_input
    if scenario and not scenario.starting_prompt:
        notes.warning("is empty, so that ADK fails", ("conversation_scenario", "starting_prompt"))
    if session and session.app_name == "":
        notes.warning("is empty, so that ADK fails", ("session_input", "app_name"))


def _converted_turn(turn: Any, notes: Notes, loc: Loc) -> Any:
    """Return an invocation with the keys of older formats converted."""
    if not isinstance(turn, dict):
        return turn
    if own := [key for key in turn if key in _OWN_KEYS]:
        names = ", ".join(map(repr, own))
        message = f"ADK refuses the file because of {names}, which only ci-eval knows"
        notes.problems.add(message, *notes.spot(loc), severity="warning", adk_refuses=True)
    texts = [key for key in _CONTENTS if isinstance(turn.get(key), str)]
    old = [key for key in OLD_KEYS if key in turn]
    if not old and not texts:
        return turn
    message = f"{_listed(old + texts)} in ADK's older format, which ADK refuses here"
    notes.problems.add(message, *notes.spot(loc), severity="warning", adk_refuses=True)
    mended = {key: value for key, value in turn.items() if key not in OLD_KEYS}
    for key in texts:
        mended[key] = _message(turn[key], role=_CONTENTS[key])
    for key, value in from_older({key: turn[key] for key in old}).items():
        mended.setdefault(key, value)
    return mended


def _listed(keys: Sequence[str]) -> str:
    return ", ".join(map(repr, keys)) + (" is" if len(keys) == 1 else " are") + " written"


def _message(text: Any, *, role: str) -> Any:
    """Return a string as a message, and anything else unchanged."""
    return {"role": role, "parts": [{"text": text}]} if isinstance(text, str) else text


def from_older(turn: Mapping[str, Any]) -> dict[str, Any]:
    """Return a turn of ADK's older format (`query`, `reference`, …) as an invocation."""
    found: dict[str, Any] = {}
    data: dict[str, Any] = {}
    if "query" in turn:
        found["user_content"] = _message(turn["query"], role="user")
    if "reference" in turn:
        found["final_response"] = _message(turn["reference"] or "", role="model")
    if "expected_tool_use" in turn:
        data["tool_uses"] = _each(turn["expected_tool_use"], _tool_use)
    if "expected_intermediate_agent_responses" in turn:
        said = turn["expected_intermediate_agent_responses"]
        data["intermediate_responses"] = _each(said, _said)
    if data:
        found["intermediate_data"] = data
    return found


def _each(value: Any, convert: Callable[[Any], Any]) -> Any:
    return [convert(item) for item in value] if isinstance(value, list | tuple) else value


def _tool_use(call: Any) -> Any:
    if not isinstance(call, dict):
        return call
    return {
        "name": call.get("tool_name", call.get("name")),
        "args": call.get("tool_input", call.get("args")),
    }


def _said(item: Any) -> Any:
    if isinstance(item, str):
        return ["agent", [{"text": item}]]
    if isinstance(item, dict):
        return [item.get("author", "agent"), [{"text": item.get("text")}]]
    return item


def note_silence(notes: Notes, loc: Loc) -> None:
    """Warn that an invocation does not state the expected tool calls."""
    message = (
        "does not state the expected tool calls, so ADK's 'tool_trajectory_avg_score' expects "
        "none: an agent that calls no tool passes"
    )
    notes.warning(message, loc, concerns=SILENCE)


def note_oddities(case: EvalCase, notes: Notes, *, turns: str = "conversation") -> None:
    """Warn of likely mistakes; `turns` is the file's name for the conversation."""
    known = EvalCase.model_fields.keys() - {"line", "of_adk"}
    for name in case.model_extra or {}:
        if name in known:
            notes.warning("is given in two spellings; this one is ignored", (name,))
            continue
        ending = did_you_mean(name, known)
        if ending.startswith("."):
            notes.warning(f"unknown key, ignored{ending}", (name,))
    if case.conversation is not None and not case.conversation:
        notes.warning("has no invocation, so there is nothing to measure", (turns,))
    _note_untyped(case.rubrics, notes, ("rubrics",))
    for index, invocation in enumerate(case.conversation or ()):
        _note_untyped(invocation.rubrics, notes, (turns, index, "rubrics"))
        if not states(invocation, "tool_calls"):
            note_silence(notes, (turns, index))
        if not states(invocation, "response"):
            message = "expects no response, which scores 0 in ADK's 'response_match_score'"
            notes.warning(message, (turns, index), concerns=ADK_RESPONSES)
        for call in invocation.tool_calls:
            if call.args is None:
                message = (
                    f"the expected call of {call.name!r} has no 'args', which matches no call "
                    'with arguments, not even empty ones; write "args": {} if none are expected'
                )
                notes.warning(message, (turns, index), concerns=ADK_TRAJECTORY)


def _note_untyped(rubrics: Sequence[Rubric] | None, notes: Notes, loc: Loc) -> None:
    """Warn of rubrics without a type, which no criterion judges."""
    for number, rubric in enumerate(rubrics or ()):
        if rubric.type is None:
            message = (
                f"the rubric {rubric.rubric_id!r} has no 'type', so no criterion judges it, as in "
                f'ADK; write for example "type": "{Rubric.of_response}"'
            )
            notes.warning(message, (*loc, number))


# --- Older formats ----------------------------------------------------------------------------


class _Older(Record, extra="ignore"):
    """A part of the older formats; as in ADK, unknown keys are ignored."""


class _ToolUse(_Older):
    tool_name: str
    tool_input: dict[str, Json] | None


class _Said(_Older):
    author: str
    text: str | None


class _Turn(_Older):
    query: str
    reference: str | None = ""
    expected_tool_use: tuple[_ToolUse, ...] = ()
    expected_intermediate_agent_responses: tuple[_Said, ...] = ()
    mock_tool_output: Json = None


class _Session(_Older):
    app_name: str = ""
    user_id: str = ""
    state: dict[str, Json] = Field(default_factory=dict)


class _Case(_Older):
    name: str
    data: tuple[_Turn, ...]
    initial_session: _Session | None = None


@evalset("adk_legacy")
class AdkLegacy(CaseReader):
    """ADK's list of cases: `[{"name", "data": [{"query", "reference", …}]}]`."""

    @classmethod
    def sniff(cls, head: Mapping[str, Json] | Sequence[Json] | None) -> bool:
        """Return True for a list of objects with a name or data, or an empty list."""
        return head == [] or bool(first_object(head).keys() & {"data", "name"})

    def cases(self, file: CaseFile) -> Iterator[EvalCase]:
        """Yield the valid cases of `file`, and note the problems of the others."""
        for position, element in enumerate(_elements(file)):
            yield from _older_case(element, notes_on(element, (position,), file.problems))

    def set_id(self, file: CaseFile) -> str:
        """Return the name of the file, as ADK does."""
        return file.path.name


@evalset("adk_flat")
class AdkFlat(CaseReader):
    """ADK's list of turns, a single case: `[{"query", "reference", …}]` in `*.test.json`."""

    @classmethod
    def sniff(cls, head: Mapping[str, Json] | Sequence[Json] | None) -> bool:
        """Return True for a list of objects with a query."""
        return bool(first_object(head).keys() & {"query", "expected_tool_use", "reference"})

    def cases(self, file: CaseFile) -> Iterator[EvalCase]:
        """Yield the case of `file`, whose name is its id, as in ADK; or note its problems."""
        elements = list(_elements(file))

        def spot(loc: Loc) -> tuple[int, str]:
            _, position, *rest = loc
            return notes_on(elements[int(position)], (position,), file.problems).spot(rest)

        notes = Notes(file.problems, spot)
        turns = [
            _checked(_Turn, element.value, notes, ("data", position))
            for position, element in enumerate(elements)
        ]
        if not file.problems.errors:
            conversation = [from_older(turn) for turn in turns if turn is not None]
            case = {"eval_id": file.path.name, "conversation": conversation}
            yield from _converted(case, elements[0].line, notes)

    def set_id(self, file: CaseFile) -> str:
        """Return the name of the file, as ADK does."""
        return file.path.name


def _elements(file: CaseFile) -> Iterator[Element]:
    found = JsonFile(file.path, shown=file.shown, unique=True).walk(frozenset())
    return (element for _, element in found)


def _older_case(element: Element, notes: Notes) -> Iterator[EvalCase]:
    value = _checked(_Case, element.value, notes, ())
    if value is None:
        return
    for position, turn in enumerate(element.value["data"]):
        _note_unknown(_Turn, turn, notes, ("data", position))
    case = {"eval_id": value["name"], "conversation": list(map(from_older, value["data"]))}
    if element.value.get("initial_session"):
        case["session_input"] = value["initial_session"]
    yield from _converted(case, element.line, notes)


def _converted(case: dict[str, Any], line: int, notes: Notes) -> Iterator[EvalCase]:
    checked = EvalCase.model_validate({**case, "line": line, "of_adk": True})
    note_oddities(checked, notes, turns="data")
    yield checked


def _checked(model: type[_Older], value: Any, notes: Notes, loc: Loc) -> dict[str, Any] | None:
    """Return `value` validated by `model`, or note its problems."""
    read = notes.validated(model, value, loc)
    if read is None:
        return None
    _note_unknown(model, value, notes, loc)
    turns = {(*loc, "data", at): each for at, each in enumerate(getattr(read, "data", ()))}
    for place, part in ({tuple(loc): read} | turns).items():
        if isinstance(part, _Turn) and "expected_tool_use" not in part.model_fields_set:
            note_silence(notes, place)
    return read.model_dump()


def _note_unknown(model: type[BaseModel], value: dict[str, Any], notes: Notes, loc: Loc) -> None:
    for key in value:
        if key not in model.model_fields:
            ending = did_you_mean(key, model.model_fields)
            notes.warning(f"unknown key, ignored{ending}", (*loc, key))
