"""Shared parts of criteria that judge each invocation and average the values."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from ci_eval.criteria._majority_of_samples import Votes, majority
from ci_eval.plugins.points import JudgedCriterion, Panel
from ci_eval.records.cases import Json, Status
from ci_eval.records.questions import Question
from ci_eval.records.results import InvocationScore, Score


class JudgedTurn(NamedTuple):
    """The result for one invocation."""

    value: float | None
    """`None` if no verdict was reached, or there is nothing to judge."""
    reason: str = ""
    """Why no verdict was reached; empty if there is nothing to judge."""
    evidence: dict[str, Json] | None = None


async def judge_validity(
    panel: Panel, question: Question, read: Callable[[str], Votes]
) -> JudgedTurn:
    """Return 1 if the votes that `read` parses say that a turn is `valid`, else 0."""
    verdict = (await majority(panel, question, ["valid"], read))["valid"]
    value = None if verdict.yes is None else float(verdict.yes)
    return JudgedTurn(value, verdict.reason, {"rationale": verdict.rationale, **verdict.evidence})


def status_of(criterion: JudgedCriterion, turn: JudgedTurn) -> Status:
    """Return the status of one invocation."""
    if turn.value is None and turn.reason:
        return Status.ERROR
    return criterion.status_of(turn.value)


def summed_up(
    criterion: JudgedCriterion, turns: Iterable[JudgedTurn], value: float | None
) -> Score:
    """Return the score `value`, or an error if an invocation has no verdict."""
    turns = list(turns)
    parts = tuple(
        InvocationScore(status=status_of(criterion, turn), value=turn.value, evidence=turn.evidence)
        for turn in turns
    )
    missing = [turn.reason for turn in turns if turn.value is None and turn.reason]
    if missing:
        score = criterion.unscored(Status.ERROR, f"no verdict was reached: {missing[0]}")
        return score.model_copy(update={"invocations": parts})
    reason = "" if value is not None else "no invocation has anything to judge"
    return criterion.scored(value, parts, reason=reason)


def mean(turns: Iterable[JudgedTurn]) -> float | None:
    """Return the mean over the invocations that have a value; `None` if none has."""
    values = [turn.value for turn in turns if turn.value is not None]
    return sum(values) / len(values) if values else None
