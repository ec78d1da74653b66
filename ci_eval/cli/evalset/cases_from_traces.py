"""Conversion of recorded behavior into expectations."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ci_eval.formats.sniff import read_head, syntax_of
from ci_eval.plugins import points
from ci_eval.records.cases import (
    OWN_FIELDS,
    EvalCase,
    IntermediateData,
    Invocation,
    InvocationEvent,
    InvocationEvents,
)
from ci_eval.records.errors import UsageError
from ci_eval.records.trials import Recording, Try
from ci_eval.run_files.recorded_lines import RecordedLine, recorded_lines

_OF_ADK = {"duration", "model_duration", "tool_duration", "app_details"}
MEASURED = _OF_ADK | OWN_FIELDS - {"nodes"}
"""Fields of an invocation that describe a single run, not an expectation."""
_MEASURED_OF_EVENTS = ("usage_metadata", "model_version", "system_fingerprint")


class Wanted(NamedTuple):
    """Selects a conversation in a file of recordings."""

    case: str
    """The id of the case, and of the conversation if the file has ids."""
    asked: tuple[str, ...] | None = None
    """The user's messages in the case, which identify the conversation in a file without ids;
    `None` for a new case."""
    agent: str | None = None
    evalset: str | None = None
    repeat: int = 0


_Who = tuple[str | None, str | None]
"""The agent and the evalset, if the file names them."""


def from_traces(path: Path, wanted: Wanted, *, shown: str) -> Recording:
    """Return the `wanted` conversation of a file of recordings, with the wanted id.

    Several conversations of a case are its repeats, as for a `recorded` agent.  In a file without
    ids, it is the one with the same user messages or, for a new case, the only one.

    Raises:
        UsageError: there is none, it failed, or several match.

    """
    named: dict[_Who, Recording] = {}
    unnamed: list[Recording] = []
    sessions: Counter[str | None] = Counter()
    for each in _recordings(path, shown):
        who = (each.agent if isinstance(each, RecordedLine) else None, each.evalset)
        repeat = sessions[each.session] if each.repeat is None else each.repeat
        sessions[each.session] += 1
        if wanted.case in (each.eval_id, each.session) and repeat == wanted.repeat:
            if wanted.agent in (None, who[0]) and wanted.evalset in (None, who[1]):
                named[who] = each
        elif each.eval_id is None and _is_asked(each, wanted):
            unnamed.append(each)
    found = _only(named, wanted, shown) if named else _unnamed(unnamed, wanted, shown)
    if found.error is not None or not found.invocations:
        message = f"the case {wanted.case!r} was not observed: {found.error or 'nothing was said'}"
        raise UsageError(message, file=shown)
    return found.model_copy(update={"eval_id": wanted.case})


def _is_asked(recording: Recording, wanted: Wanted) -> bool:
    said = tuple(turn.user for turn in recording.invocations or ())
    return wanted.asked is None or said == wanted.asked


def _only(found: dict[_Who, Recording], wanted: Wanted, shown: str) -> Recording:
    if len(found) > 1:
        which = ", ".join(f"{agent or '?'} on {evalset or '?'}" for agent, evalset in found)
        message = f"holds the case {wanted.case!r} of {which}"
        hint = "choose one with --agent and --evalset"
        raise UsageError(message, file=shown, hint=hint)
    return next(iter(found.values()))


def _unnamed(found: Sequence[Recording], wanted: Wanted, shown: str) -> Recording:
    if wanted.asked is not None and wanted.repeat < len(found):
        return found[wanted.repeat]
    if wanted.asked is None and len(found) == 1:
        return found[0]
    again = f" (repeat {wanted.repeat + 1})" if wanted.repeat else ""
    several = f", and {len(found)} without an id" if len(found) > 1 else ""
    message = f"holds no conversation of the case {wanted.case!r}{again}{several}"
    raise UsageError(message, file=shown)


def _recordings(path: Path, shown: str) -> Iterator[Recording]:
    """Yield the conversations in `traces.jsonl`, or in another tool's recording."""
    syntax, head = syntax_of(path), read_head(path, shown=shown)
    first = head[0] if isinstance(head, list) and head else None
    if not (isinstance(first, dict) and {"eval_id", "invocations"} <= first.keys()):
        reader = points.recording.of(head, syntax)
        if reader:
            return reader().read(path, shown=shown)
    return _lines(path, shown)


def _lines(path: Path, shown: str) -> Iterator[Recording]:
    taken = set[Try]()
    for found, _ in recorded_lines(path, RecordedLine, taken, shown=shown):
        taken.add(found.identity)
        yield found


def expecting(recording: Recording, *, now: float) -> EvalCase:
    """Return a new case that expects the recorded conversation, but no final state."""
    turns = map(_expectation, recording.invocations or ())
    return EvalCase(
        eval_id=str(recording.eval_id), conversation=tuple(turns), creation_timestamp=now
    )


def now_expecting(case: EvalCase, recording: Recording) -> EvalCase:
    """Return `case` with the recorded conversation as its expectation.

    Its session, tags, rubrics, assertions and unknown keys are kept.  It expects the same keys of
    the final state as before.

    Raises:
        UsageError: the user's messages differ from those of the case.

    """
    turns = recording.invocations or ()
    asked = [turn.user for turn in case.conversation or ()]
    if case.conversation is None:
        raise UsageError(f"the case {case.eval_id!r} is a scenario, whose conversation varies")
    if asked != [turn.user for turn in turns]:
        raise UsageError(
            f"the case {case.eval_id!r} has other user messages than the recording",
            hint="pass the whole case with --file instead",
        )
    kept = ("invocation_id", "rubrics", "user_content")
    conversation = (
        _expectation(turn).model_copy(update={name: getattr(before, name) for name in kept})
        for before, turn in zip(case.conversation, turns, strict=True)
    )
    changes: dict[str, Any] = {"conversation": tuple(conversation)}
    if case.final_session_state:
        state = recording.final_state or {}
        missing = [name for name in case.final_session_state if name not in state]
        if missing:
            raise UsageError(f"the recorded final state has no {', '.join(map(repr, missing))}")
        changes["final_session_state"] = {name: state[name] for name in case.final_session_state}
    return case.model_copy(update=changes)


def _expectation(turn: Invocation) -> Invocation:
    """Return an observed invocation without the fields that describe only that run."""
    kept = {name: value for name, value in turn if name not in MEASURED}
    if isinstance(turn.intermediate_data, InvocationEvents):
        kept["intermediate_data"] = _without_usage(turn.intermediate_data.invocation_events)
    return Invocation(**kept)


def _without_usage(events: Iterable[InvocationEvent]) -> InvocationEvents | IntermediateData:
    """Return the events without token usage, and omit those that contain nothing else."""
    kept = tuple(
        event.model_copy(update=dict.fromkeys(_MEASURED_OF_EVENTS))
        for event in events
        if event.content
    )
    return InvocationEvents(invocation_events=kept) if kept else IntermediateData()
