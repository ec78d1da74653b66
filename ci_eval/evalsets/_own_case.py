"""One case in ci-eval's own format, converted to an `EvalCase`."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import BaseModel, Field, ValidationError, field_validator

from ci_eval.evalsets._evalset_reading import ADK_TRAJECTORY, MadeNames, Notes, note_persona
from ci_eval.records.cases import (
    CannedResults,
    Content,
    ConversationScenario,
    EvalCase,
    FunctionCall,
    IntermediateData,
    Invocation,
    Json,
    Record,
    Rubric,
    RubricContent,
    SessionInput,
    ToolMocks,
)
from ci_eval.text.suggest import did_you_mean
from ci_eval.text.validation_messages import Fault, describe, errors_in, existing, validated
from ci_eval.text.yaml_files import Loc

USER: Final = "ci-eval"
"""User id of the session, if a case sets an initial state."""
FOREIGN: Final = {
    **dict.fromkeys(
        ("input", "question", "query", "user", "user_input", "message", "instruction"), "prompt"
    ),
    **dict.fromkeys(
        ("answer", "expected_output", "reference", "ground_truth", "ideal", "output", "target"),
        "expected",
    ),
    **dict.fromkeys(("response", "expected_response", "expected_answer"), "expected"),
    **dict.fromkeys(("eval_id", "case_id", "name"), "id"),
    **dict.fromkeys(("tools", "tool_calls", "expected_tool_calls"), "expected_tools"),
    **dict.fromkeys(("assertions", "asserts", "checks"), "assert"),
    **dict.fromkeys(("messages", "conversation"), "turns"),
    "session_state": "state",
}
"""Keys of other tools, mapped to ci-eval's keys."""


class _Given(Record, extra="ignore"):
    """A part of a case; its keys are checked beforehand."""

    @classmethod
    def names(cls) -> list[str]:
        """Return its keys."""
        return [info.alias or name for name, info in cls.model_fields.items()]


class _Call(_Given):
    name: str
    args: dict[str, Json] | None = None


class _Rubric(_Given):
    text: str
    id: str | None = None
    type: str | None = Rubric.of_response


class _Scenario(_Given):
    start: str
    plan: str = ""
    persona: Json = None
    goals: tuple[str, ...] = ()
    max_turns: int | None = Field(default=None, ge=1)


class _Expectation(_Given):
    expected: str | None = None
    expected_tools: tuple[str | _Call, ...] | None = None
    expected_nodes: tuple[str, ...] | None = None


class _Turn(_Expectation):
    prompt: str = Field(min_length=1)


class GivenCase(_Expectation):
    """A case with its keys as written in files."""

    id: str | None = Field(default=None, min_length=1)
    tags: tuple[str, ...] = ()
    prompt: str | None = Field(default=None, min_length=1)
    turns: tuple[_Turn, ...] | None = None
    scenario: _Scenario | None = None
    state: dict[str, Json] | None = None
    final_state: dict[str, Json] | None = None
    rubrics: tuple[str | _Rubric, ...] = ()
    assertions: tuple[dict[str, Json], ...] = Field(default=(), alias="assert")
    tool_mocks: ToolMocks | None = None
    human_answers: CannedResults
    rerun_on_resume: bool = False
    context: str | tuple[str, ...] | None = None
    reference_facts: str | tuple[str, ...] | None = None

    @field_validator("id")
    @classmethod
    def _without_blanks_around(cls, value: str | None) -> str | None:
        if value is not None and value != value.strip():
            raise ValueError(f"must not begin or end with a blank, found {value!r}")
        return value


_KINDS: Final = ("prompt", "turns", "scenario")
_INSIDE: Final[Mapping[str, type[_Given]]] = {
    "turns": _Turn,
    "scenario": _Scenario,
    "expected_tools": _Call,
    "rubrics": _Rubric,
}
"""Keys that hold objects with their own keys, or lists of these."""


def read_case(value: Json, line: int, notes: Notes, names: MadeNames) -> EvalCase | None:
    """Return the case that `value` describes, or note its problems."""
    errors = notes.problems.errors
    if not isinstance(value, Mapping):
        notes.error(f"expected an object, found {describe(value)}")
        return None
    _note_unknown(value, GivenCase, notes, ())
    given = _validated(value, notes)
    if given is None or notes.problems.errors > errors:
        return None
    _note_contradictions(given, notes)
    if notes.problems.errors > errors:
        return None
    turns = _turns(given)
    case_id = names.id_of(given.id, _prompts(given, turns), line, notes)
    if case_id is None:
        return None
    _note_oddities(given, turns, notes)
    case = _case_of(given, case_id, turns, line)
    note_persona(case, notes, ("scenario", "persona"))
    return case


# --- Problems -------------------------------------------------------------------------------


def _note_unknown(value: Json, model: type[_Given], notes: Notes, loc: Loc) -> None:
    """Note unknown keys, and the right key if another tool uses them."""
    if isinstance(value, list):
        for position, each in enumerate(value):
            _note_unknown(each, model, notes, (*loc, position))
    if not isinstance(value, Mapping):
        return
    known = model.names()
    for key, inner in value.items():
        if key in known:
            if key in _INSIDE:
                _note_unknown(inner, _INSIDE[key], notes, (*loc, key))
        elif FOREIGN.get(key) in known:
            notes.error(f"unknown key; use {FOREIGN[key]!r}", (*loc, key))
        else:
            notes.error(f"unknown key{did_you_mean(key, known)}", (*loc, key))


def _validated(value: Mapping[str, Json], notes: Notes) -> GivenCase | None:
    try:
        return validated(GivenCase, value)
    except ValidationError as exc:
        seen = set()
        for fault in errors_in(exc, GivenCase):
            place, said = _in_words(value, fault)
            if said and (place, said) not in seen:
                seen.add((place, said))
                notes.error(said, place)
        return None


def _in_words(value: Any, fault: Fault) -> tuple[tuple[int | str, ...], str]:
    """Return the location and the message; empty if only one alternative of a union failed."""
    message, is_no_text = fault.message, fault.kind == "string_type"
    place, found = existing(value, fault.loc)
    parent = place[-2] if len(place) > 1 else None
    if parent == "expected_tools" and not isinstance(found, Mapping):
        message = f"expected the name of a tool, or its name and args, found {describe(found)}"
    elif parent == "rubrics" and not isinstance(found, Mapping):
        message = f"expected a text, or an id and a text, found {describe(found)}"
    elif parent in ("expected_tools", "rubrics") and is_no_text:
        message = ""
    elif is_no_text and isinstance(found, int | float):
        message += "; put it in quotes"
    return place, message


def _note_contradictions(given: GivenCase, notes: Notes) -> None:
    kinds = [kind for kind in _KINDS if getattr(given, kind) is not None]
    if not kinds:
        notes.error("needs a 'prompt', or 'turns', or a 'scenario'")
    elif len(kinds) > 1:
        notes.error(f"has both {kinds[0]!r} and {kinds[1]!r}; use only one", kinds[1:2])
    elif kinds != ["prompt"]:
        for key in _Expectation.names():
            if getattr(given, key) is not None:
                place = "in one of the 'turns'" if given.turns else "beside a 'prompt'"
                notes.error(f"belongs {place}", (key,))
    if given.scenario and not (given.scenario.plan.strip() or given.scenario.goals):
        notes.error("needs a 'plan', or 'goals'", ("scenario",))
    for position, assertion in enumerate(given.assertions):
        if len(assertion) != 1:
            message = f"expected one check, such as 'contains: Paris', found {len(assertion)}"
            notes.error(message, ("assert", position))


def _note_oddities(given: GivenCase, turns: tuple[_Turn, ...] | None, notes: Notes) -> None:
    if turns is not None and not turns:
        notes.warning("has no turn, so there is nothing to measure", ("turns",))
    for position, turn in enumerate(turns or ()):
        base: Loc = ("turns", position) if given.turns else ()
        for number, call in enumerate(turn.expected_tools or ()):
            if isinstance(call, str) or call.args is None:
                loc = (*base, "expected_tools", number)
                notes.warning(_NO_ARGS, loc, concerns=ADK_TRAJECTORY)


_NO_ARGS: Final = (
    "names a tool without 'args'; in 'adk/tool_trajectory_avg_score' it matches no call "
    "unless that criterion has `missing_args: any` under `criteria:`"
)


# --- Conversion -----------------------------------------------------------------------------


def _turns(given: GivenCase) -> tuple[_Turn, ...] | None:
    if given.prompt is None:
        return given.turns
    shared = given.model_dump(include=set(_Expectation.model_fields))
    return (_Turn(prompt=given.prompt, **shared),)


def _prompts(given: GivenCase, turns: tuple[_Turn, ...] | None) -> list[str]:
    if given.scenario:
        return [given.scenario.start, given.scenario.plan]
    return [turn.prompt for turn in turns or ()]


def _case_of(
    given: GivenCase, case_id: str, turns: tuple[_Turn, ...] | None, line: int
) -> EvalCase:
    scenario, state = given.scenario, given.state
    session = None if state is None else SessionInput(app_name="", user_id=USER, state=state)
    return EvalCase(
        eval_id=case_id,
        conversation=None if turns is None else tuple(map(_invocation, turns)),
        conversation_scenario=scenario and _scenario(scenario),
        session_input=session,
        final_session_state=given.final_state or {},
        rubrics=tuple(_rubrics(given)) or None,
        tags=given.tags,
        assertions=given.assertions,
        tool_mocks=given.tool_mocks,
        human_answers=given.human_answers,
        rerun_on_resume=given.rerun_on_resume,
        line=line,
        **_metadata(given),
    )


def _scenario(given: _Scenario) -> ConversationScenario:
    return ConversationScenario(
        starting_prompt=given.start, conversation_plan=given.plan, user_persona=given.persona
    )


def _metadata(given: GivenCase) -> dict[str, Json]:
    """Return the metadata from which AgentFlow's simulated user and criteria read their options."""
    found = given.model_dump(mode="json", include={"context", "reference_facts"})
    if given.scenario:
        found |= given.scenario.model_dump(mode="json", include={"goals", "max_turns"})
    said = {key: value for key, value in found.items() if value}
    return {"metadata": said} if said else {}


def _rubrics(given: GivenCase) -> Iterator[Rubric]:
    for number, each in enumerate(given.rubrics, 1):
        rubric = _Rubric(text=each) if isinstance(each, str) else each
        yield Rubric(
            rubric_id=rubric.id or f"rubric-{number}",
            rubric_content=RubricContent(text_property=rubric.text),
            type=rubric.type,
        )


def _invocation(turn: _Turn) -> Invocation:
    answer = turn.expected
    trajectory = IntermediateData(tool_uses=tuple(map(_function_call, turn.expected_tools or ())))
    return Invocation(
        user_content=Content.of_text(turn.prompt, role="user"),
        final_response=None if answer is None else Content.of_text(answer, role="model"),
        intermediate_data=None if turn.expected_tools is None else trajectory,
        nodes=turn.expected_nodes,
    )


def _function_call(call: str | BaseModel) -> FunctionCall:
    given = call if isinstance(call, _Call) else _Call(name=str(call))
    return FunctionCall(name=given.name, args=given.args)
