"""Cases to put into an evalset: from a file, a prompt, ADK's scenarios, or what an agent did."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

from pydantic import ConfigDict, ValidationError

from ci_eval import plugins
from ci_eval.documents import dotted, parse_yaml, read_text, reading
from ci_eval.errors import Problem, UsageError
from ci_eval.explain import explain
from ci_eval.heads import read_head, syntax_of
from ci_eval.json_text import TRACE_DEPTH, NotJsonError, parse_json, parse_strict
from ci_eval.opening import open_evalset, reader_of
from ci_eval.records import (
    AdkRecord,
    Content,
    ConversationScenario,
    EvalCase,
    IntermediateData,
    Invocation,
    InvocationEvent,
    InvocationEvents,
    Json,
    Recording,
    SessionInput,
)

MEASURED = ("duration", "model_duration", "tool_duration", "cost_usd", "app_details")
"""Fields of an invocation that tell of one run, and are no expectation."""
MAX_PROBLEMS = 100
"""Reading recordings stops after so many problems."""


def from_prompt(prompt: str, expected: str | None, eval_id: str | None, *, now: float) -> EvalCase:
    """Return a case of one message; without an id it gets one that is made from its content."""
    turn = Invocation(
        user_content=Content.of_text(prompt, role="user"),
        final_response=None if expected is None else Content.of_text(expected, role="model"),
    )
    made = _digest({"prompt": prompt, "expected": expected})
    return EvalCase(eval_id=eval_id or made, conversation=(turn,), creation_timestamp=now)


def from_file(path: Path, *, shown: str) -> list[EvalCase]:
    """Return the case in a file, or all cases of an evalset of any format.

    Raises:
        UsageError: with every problem of the file.

    """
    head = read_head(path, shown=shown)
    is_case = isinstance(head, dict) and {"eval_id", "evalId"} & head.keys()
    if not is_case or reader_of(head, syntax_of(path)):
        return list(open_evalset(path, shown=shown).cases())
    text = read_text(path, shown=shown)
    is_yaml = syntax_of(path) == "yaml"
    document = parse_yaml(text, shown=shown) if is_yaml else parse_strict(text, shown=shown)
    try:
        return [EvalCase.model_validate(document.value)]
    except ValidationError as exc:
        found = [document.problem(message, loc) for loc, message in explain(exc, EvalCase)]
        raise UsageError(problems=found) from exc


# --- ADK's way --------------------------------------------------------------------------------


class _Scenarios(AdkRecord):
    """The file of `adk eval_set add_eval_case --scenarios_file`."""

    scenarios: tuple[ConversationScenario, ...] = ()


def from_scenarios(
    path: Path, session: SessionInput | None, *, shown: str, now: float
) -> list[EvalCase]:
    """Return a case for each scenario, with the id that ADK gives it.

    That is the beginning of the SHA-256 of the scenario as JSON, with its keys in order.  A
    persona that is named, and not described, is hashed by its name, where ADK has its own
    description of it.

    Raises:
        UsageError: with every problem of the file.

    """
    found = _read(_Scenarios, path, shown)
    return [
        EvalCase(
            eval_id=_digest(scenario.model_dump(mode="json")),
            conversation_scenario=scenario,
            session_input=session,
            creation_timestamp=now,
        )
        for scenario in found.scenarios
    ]


def read_session(path: Path, *, shown: str) -> SessionInput:
    """Return the session that a file holds as ADK's `--session_input_file` does.

    Raises:
        UsageError: with every problem of the file.

    """
    return _read(SessionInput, path, shown)


class _InitialSession(SessionInput):
    app_name: str = ""
    user_id: str = ""


def read_initial_session(path: Path, *, shown: str) -> SessionInput | None:
    """Return the session that an older test begins with; nothing where the file says nothing.

    As in ADK, whatever is not said is empty.

    Raises:
        UsageError: with every problem of the file.

    """
    found = _read(_InitialSession, path, shown)
    return SessionInput(**found.model_dump()) if found.model_fields_set else None


M = TypeVar("M", bound=AdkRecord)


def _read(model: type[M], path: Path, shown: str) -> M:
    document = parse_strict(read_text(path, shown=shown), shown=shown)
    try:
        return model.model_validate(document.value)
    except ValidationError as exc:
        found = [document.problem(message, loc) for loc, message in explain(exc, model)]
        raise UsageError(problems=found) from exc


def _digest(value: Json) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:8]


# --- What an agent did ------------------------------------------------------------------------


class Wanted(NamedTuple):
    """Which conversation of a file of recordings is meant."""

    case: str
    agent: str | None = None
    evalset: str | None = None
    repeat: int = 0


class _Observed(Recording):
    """A recording, with who was observed."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="ignore")

    agent: str | None = None


def from_traces(path: Path, wanted: Wanted, *, shown: str) -> Recording:
    """Return the conversation that is `wanted` of a file of recordings, the last one of its kind.

    Raises:
        UsageError: there is none, or it failed, or it could be one of several.

    """
    found: dict[tuple[str | None, str | None], Recording] = {}
    for each in _recordings(path, shown):
        agent = each.agent if isinstance(each, _Observed) else None
        asked = (wanted.case, wanted.repeat)
        if (each.eval_id, each.repeat) == asked and _fits(wanted, agent, each.evalset):
            found[agent, each.evalset] = each
    if not found:
        again = f" (repeat {wanted.repeat})" if wanted.repeat else ""
        message = f"holds no conversation of the case {wanted.case!r}{again}"
        raise UsageError(problems=[Problem(message, shown)])
    if len(found) > 1:
        which = ", ".join(f"{agent or '?'} on {evalset or '?'}" for agent, evalset in found)
        message = f"holds the case {wanted.case!r} of {which}"
        hint = "say which is meant with --agent and --evalset"
        raise UsageError(problems=[Problem(message, shown)], hint=hint)
    (one,) = found.values()
    if not one.invocations:
        message = f"the case {wanted.case!r} was not observed: {one.error or 'nothing was said'}"
        raise UsageError(problems=[Problem(message, shown)])
    return one


def _fits(wanted: Wanted, agent: str | None, evalset: str | None) -> bool:
    return wanted.agent in (None, agent) and wanted.evalset in (None, evalset)


def _recordings(path: Path, shown: str) -> Iterator[Recording]:
    """Yield the conversations of a file: of `traces.jsonl`, or of another tool's recording."""
    syntax = syntax_of(path)
    head = read_head(path, shown=shown)
    for name in plugins.recording:
        reader = plugins.recording[name]
        if syntax in reader.syntaxes and reader.sniff(head):
            return reader().read(path, shown=shown)
    return _lines(path, shown)


def _lines(path: Path, shown: str) -> Iterator[Recording]:
    problems: list[Problem] = []
    with reading(path, shown=shown) as file:
        for number, line in enumerate(file, 1):
            try:
                if line.strip():
                    yield _Observed.model_validate(parse_json(line, max_depth=TRACE_DEPTH))
            except ValidationError as exc:
                for loc, message in explain(exc, _Observed):
                    problems.append(Problem(message, shown, number, dotted(loc)))
            except NotJsonError as exc:
                problems.append(Problem(str(exc), shown, number))
            if len(problems) >= MAX_PROBLEMS:
                break
    if problems:
        raise UsageError(problems=problems)


def expecting(recording: Recording, *, now: float) -> EvalCase:
    """Return a new case that expects what was recorded; a final state is not expected."""
    turns = map(_expectation, recording.invocations or ())
    return EvalCase(
        eval_id=str(recording.eval_id), conversation=tuple(turns), creation_timestamp=now
    )


def now_expecting(case: EvalCase, recording: Recording) -> EvalCase:
    """Return `case` with the recorded conversation as what it expects.

    What else it says stays: session, tags, rubrics, assertions, its own keys.  Of the final
    state it expects the same keys as before.

    Raises:
        UsageError: other messages were sent than the case has.

    """
    turns = recording.invocations or ()
    asked = [turn.user for turn in case.conversation or ()]
    if case.conversation is None:
        raise UsageError(
            f"the case {case.eval_id!r} is a scenario, whose conversation is another each time"
        )
    if asked != [turn.user for turn in turns]:
        raise UsageError(
            f"the case {case.eval_id!r} asks something else than was recorded",
            hint="give the whole case with --file instead",
        )
    changes: dict[str, Any] = {
        "conversation": tuple(
            _expectation(turn).model_copy(
                update={name: getattr(before, name) for name in ("invocation_id", "rubrics")}
                | {"user_content": before.user_content}
            )
            for before, turn in zip(case.conversation, turns, strict=True)
        )
    }
    if case.final_session_state:
        state = recording.final_state or {}
        missing = [name for name in case.final_session_state if name not in state]
        if missing:
            raise UsageError(f"the recorded final state has no {_listed(missing)}")
        changes["final_session_state"] = {name: state[name] for name in case.final_session_state}
    return case.model_copy(update=changes)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def _expectation(turn: Invocation) -> Invocation:
    """Return an observed invocation without what only tells of that one run."""
    kept = {name: value for name, value in turn if name not in MEASURED}
    if isinstance(turn.intermediate_data, InvocationEvents):
        kept["intermediate_data"] = _without_usage(turn.intermediate_data.invocation_events)
    return Invocation(**kept)


def _without_usage(
    events: Iterable[InvocationEvent],
) -> InvocationEvents | IntermediateData:
    """Return the events without what they cost; those of a reply that only counts tokens go."""
    kept = tuple(
        event.model_copy(update={"usage_metadata": None, "model_version": None})
        for event in events
        if event.content
    )
    return InvocationEvents(invocation_events=kept) if kept else IntermediateData()
