"""Shared parts of criteria that score each invocation and average the values."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ci_eval.plugins.points import Criterion
from ci_eval.records.cases import EvalCase, Invocation, Json
from ci_eval.records.results import InvocationScore, Score
from ci_eval.records.trials import Trace


class Turn(NamedTuple):
    """The value of one invocation, with its evidence."""

    value: float | None
    """`None` if there is nothing to measure in the invocation."""
    evidence: dict[str, Json] | None = None


def pairs(case: EvalCase, trace: Trace) -> Iterator[tuple[Invocation, Invocation]]:
    """Yield each expected invocation with the observed one."""
    return zip(case.conversation or (), trace.invocations, strict=True)


def compared(
    criterion: Criterion,
    case: EvalCase,
    trace: Trace,
    measure: Callable[[Invocation, Invocation], Turn],
) -> Score:
    """Return the mean of `measure` over the pairs in which `criterion` can compare something."""
    turns = [
        measure(expected, actual) if criterion.measures(case, expected) else Turn(None)
        for expected, actual in pairs(case, trace)
    ]
    return averaged(criterion, turns)


def averaged(criterion: Criterion, turns: list[Turn]) -> Score:
    """Return the mean over the invocations that have a value; skipped if none has.

    Only invocations that did not pass keep their evidence.
    """
    values = [turn.value for turn in turns if turn.value is not None]
    scored = [_scored(criterion, turn) for turn in turns]
    if not values:
        return criterion.scored(None, scored, reason="no invocation has anything to measure")
    return criterion.scored(sum(values) / len(values), scored)


def _scored(criterion: Criterion, turn: Turn) -> InvocationScore:
    status = criterion.status_of(turn.value)
    shown = turn.evidence if status == "failed" or criterion.informational else None
    return InvocationScore(status=status, value=turn.value, evidence=shown)


def observed(criterion: Criterion, trace: Trace, measure: Callable[[Invocation], Turn]) -> Score:
    """Return the mean of `measure` over the observed invocations."""
    return averaged(criterion, [measure(invocation) for invocation in trace.invocations])
