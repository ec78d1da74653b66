"""Shared parts of criteria that score or judge each invocation and average the values."""

import statistics
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ci_eval.plugins.criterion import AnyCriterion
from ci_eval.records.cases import EvalCase, Invocation, Json, Status
from ci_eval.records.results import InvocationScore, Score
from ci_eval.records.trials import Trace


class Turn(NamedTuple):
    """The value of one invocation, with its evidence."""

    value: float | None
    """`None` if there is nothing to measure in the invocation, or a judge reached no verdict."""
    evidence: dict[str, Json] | None = None
    reason: str = ""
    """Why a judge reached no verdict; empty if there is nothing to measure."""


def pairs(case: EvalCase, trace: Trace) -> Iterator[tuple[Invocation, Invocation]]:
    """Yield each expected invocation with the observed one."""
    return zip(case.conversation or (), trace.invocations, strict=True)


def compared(
    criterion: AnyCriterion,
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


def observed(criterion: AnyCriterion, trace: Trace, measure: Callable[[Invocation], Turn]) -> Score:
    """Return the mean of `measure` over the observed invocations."""
    return averaged(criterion, map(measure, trace.invocations))


def averaged(criterion: AnyCriterion, turns: Iterable[Turn]) -> Score:
    """Return the mean over the invocations that have a value; skipped if none has."""
    turns = list(turns)
    return summed_up(criterion, turns, mean(turns))


def mean(turns: Iterable[Turn]) -> float | None:
    """Return the mean over the turns that have a value, rounded once; `None` if none has."""
    values = [turn.value for turn in turns if turn.value is not None]
    if len(values) < 2:  # nearly always, and exact means are slow
        return next(iter(values), None)
    return float(statistics.mean(values))


def summed_up(criterion: AnyCriterion, turns: Iterable[Turn], value: float | None) -> Score:
    """Return the score `value`, or an error if an invocation has no verdict."""
    turns = list(turns)
    parts = tuple(_scored(criterion, turn) for turn in turns)
    missing = [turn.reason for turn in turns if turn.value is None and turn.reason]
    if missing:
        score = criterion.unscored(Status.ERROR, f"no verdict was reached: {missing[0]}")
        return score.model_copy(update={"invocations": parts})
    reason = f"no invocation has anything to {'judge' if criterion.judged else 'measure'}"
    return criterion.scored(value, parts, reason="" if value is not None else reason)


def _scored(criterion: AnyCriterion, turn: Turn) -> InvocationScore:
    """Return the score of one invocation; what passed keeps only the evidence of a judge."""
    status = Status.ERROR if turn.value is None and turn.reason else criterion.status_of(turn.value)
    kept = status is Status.FAILED or criterion.informational or criterion.judged
    return InvocationScore(
        status=status, value=turn.value, evidence=turn.evidence if kept else None
    )
