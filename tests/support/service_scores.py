"""Scores by criteria that one service alone can measure, where a test is that service."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.judged_scores import Judgement
from support.scripted_judge import asker, judge

from ci_eval.plugins.points import JudgedCriterion
from ci_eval.records.cases import EvalCase
from ci_eval.records.questions import Question
from ci_eval.records.trials import Trace


def served(
    criterion: JudgedCriterion,
    case: EvalCase,
    trace: Trace,
    answers: dict[str, Any] | Callable[[Question], dict[str, Any]],
    folder: Path | None = None,
    **options: Any,
) -> Judgement:
    """Score with a service that answers so; in a `folder`, its answers are kept."""

    def say(question: Question) -> str:
        return json.dumps(answers(question) if callable(answers) else answers)

    async def work() -> Judgement:
        service = judge(say, model=criterion.type_name)
        type(service).type_name = criterion.service
        # One call at a time, so that the questions have an order.
        block = {"mode": "auto" if folder else "off", "attempts": 1, "concurrency": 1, **options}
        async with asker(folder or Path(), service, **block) as found:
            panel = found.panel(criterion)
            score = await criterion.score(case, trace, panel)
            score = score.model_copy(update={"judging": panel.usage})
        return Judgement(score, list(service.asked))

    return asyncio.run(work())
