"""Scores of judged criteria, by judges whose answers a test writes."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from support.scripted_judge import asker, judge

from ci_eval.plugins.points import JudgedCriterion
from ci_eval.records.cases import EvalCase
from ci_eval.records.errors import JudgeError
from ci_eval.records.questions import Question
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace

Answers = str | dict[str, Any] | None | Callable[[Question], Any]
"""What a judge answers: always the same text or JSON; nothing at all; or as a function says."""


class Judgement(NamedTuple):
    """A score, and what the judges were asked for it, all of them in one list."""

    score: Score
    asked: list[Question]

    @property
    def evidence(self) -> list[Any]:
        """The evidence of each invocation."""
        return [part.evidence for part in self.score.invocations]


def judged(
    criterion: JudgedCriterion, case: EvalCase, trace: Trace, *judges: Answers, samples: int = 1
) -> Judgement:
    """Score by a judge that answers so; several are a jury."""

    async def work() -> Judgement:
        told = [judge(_saying(each), model=f"m{n}") for n, each in enumerate(judges, 1)]
        # One call at a time, so that the questions have an order.
        options = {"mode": "off", "samples": samples, "attempts": 1, "concurrency": 1}
        async with asker(Path(), *told, **options) as found:
            panel = found.panel(criterion)
            score = await criterion.score(case, trace, panel)
            score = score.model_copy(update={"judging": panel.usage})
        return Judgement(score, [question for each in told for question in each.asked])

    return asyncio.run(work())


def drawn(*answers: Answers) -> Callable[[Question], Any]:
    """Answer each sample its own, and the same again where it could not be read."""
    return lambda question: _saying(answers[question.sample])(question)


def _saying(answers: Answers) -> Callable[[Question], Any]:
    def say(question: Question) -> Any:
        said = answers(question) if callable(answers) else answers
        if said is None:
            raise JudgeError("the judge is down")
        return json.dumps(said) if isinstance(said, dict) else said

    return say
