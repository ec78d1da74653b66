"""Differences in cases after a round trip through another format."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ci_eval.records.cases import (
    EvalCase,
    IntermediateData,
    Invocation,
    InvocationEvents,
    Json,
    ToolCall,
)
from ci_eval.records.errors import EvalSetError, Problem

MAX_NAMED = 3
"""Maximum number of cases that a warning names."""
INCIDENTAL = frozenset(
    {
        "creation_timestamp",
        "conversation[].creation_timestamp",
        "conversation[].invocation_id",
        "conversation[].tool_call_ids",
    }
)
"""Parts of a case that neither the agent nor a criterion reads."""


def losses(
    before: Iterable[EvalCase],
    after: Iterable[EvalCase],
    *,
    shown: str,
    target: str,
    ignoring: frozenset[str] = frozenset(),
) -> list[Problem]:
    """Return a warning for each part of the cases `before` that differs `after`.

    Raises:
        EvalSetError: the ids of the cases differ.

    """
    originals, kept = list(before), list(after)
    wanted, found = ([case.eval_id for case in cases] for cases in (originals, kept))
    if wanted != found:
        lost = [each for each in wanted if each not in set(found)]
        changed = ", ".join(map(repr, (lost or found)[:MAX_NAMED]))
        message = f"would not contain the same cases as before: {changed}"
        raise EvalSetError(message, file=shown)
    parts: dict[str, list[str]] = {}
    for one, other in zip(originals, kept, strict=True):
        if _same(one, other):
            continue
        for part in dict.fromkeys(_differing(facts_of(one), facts_of(other), "")):
            if part not in ignoring:
                parts.setdefault(part, []).append(one.eval_id)
    return [
        Problem(
            f"the format {target!r} does not keep {part!r} of {_named(ids)}",
            shown,
            severity="warning",
        )
        for part, ids in parts.items()
    ]


def _same(one: EvalCase, other: EvalCase) -> bool:
    """Return True if two cases are equal apart from their place; faster than comparing facts."""
    beside = {"line": None, "of_adk": False}
    return dict(one) | beside == dict(other) | beside


def _named(ids: Sequence[str]) -> str:
    shown = ", ".join(map(repr, ids[:MAX_NAMED]))
    return shown if len(ids) <= MAX_NAMED else f"{len(ids)} cases, {shown} among them"


def facts_of(case: EvalCase) -> dict[str, Any]:
    """Return the content of `case`, independent of the format of its trajectories."""
    found = case.model_dump(mode="json", exclude_defaults=True, exclude={"conversation"})
    if case.conversation is not None:
        found["conversation"] = list(map(_turn_facts, case.conversation))
    return found


def _turn_facts(turn: Invocation) -> dict[str, Any]:
    found = turn.model_dump(mode="json", exclude_defaults=True, exclude={"intermediate_data"})
    data = turn.intermediate_data
    if data is None:
        return found
    calls, ids = turn.tool_calls, call_ids(turn)
    found["tool_calls"] = [
        {"name": call.name} if call.args is None else {"name": call.name, "args": call.args}
        for call in calls
    ]
    facts = {"tool_call_ids": ids if any(ids) else None, "tool_results": _results(turn, calls)}
    if isinstance(data, InvocationEvents):
        facts["events"] = _beside_calls(data)
    else:
        said = data.model_dump(mode="json")["intermediate_responses"]
        facts["intermediate_responses"] = said
    return found | {key: value for key, value in facts.items() if value}


def call_ids(turn: Invocation) -> list[str | None]:
    """Return the ids of the tool calls of `turn`, in their order."""
    calls, _ = turn.calls_and_responses()
    return [call.id for call in calls]


def _results(turn: Invocation, calls: Sequence[ToolCall]) -> list[Json]:
    """Return the tools' answers: one for each call, or all if the calls have no ids."""
    data = turn.intermediate_data
    found = [call.result for call in calls]
    if isinstance(data, IntermediateData) and len(data.tool_responses) != sum(
        result is not None for result in found
    ):
        return [each.model_dump(mode="json", exclude_defaults=True) for each in data.tool_responses]
    return found if any(result is not None for result in found) else []


def _beside_calls(data: InvocationEvents) -> list[Json]:
    """Return the content of events other than tool calls and their results."""
    calls = {"function_call", "function_response"}
    shape = {"content": {"parts": {"__all__": calls}}}
    found = []
    for event in data.invocation_events:
        dumped = event.model_dump(mode="json", exclude_defaults=True, exclude=shape)
        content = dumped.get("content", {})
        if any(content.get("parts", ())) or dumped.keys() - {"author", "content"}:
            found.append(dumped)
    return found


def _differing(before: Any, after: Any, where: str) -> Iterator[str]:
    """Yield the parts of `before` that `after` lacks, or in which it differs."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys((*before, *after)):
            inner = f"{where}.{key}" if where else str(key)
            if key not in before:
                yield from _gained(after[key], inner)
            elif key not in after:
                yield inner
            else:
                yield from _differing(before[key], after[key], inner)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for one, other in zip(before, after, strict=True):
            yield from _differing(one, other, f"{where}[]")
    elif type(before) is not type(after) or before != after:
        yield where


def _gained(value: Any, where: str) -> Iterator[str]:
    """Yield the place of a new value, unless it has no effect."""
    if where == "session_input":
        value = value.get("state")
    empty_session = where.startswith("session_input") and not value
    if not empty_session and not where.endswith((".role", ".tool_call_ids")):
        yield where
