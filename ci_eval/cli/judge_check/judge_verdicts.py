"""Verdicts of a judge on labelled responses."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ci_eval.cli.judge_check.calibrated_criterion import Chosen
from ci_eval.cli.judge_check.human_labels import Item
from ci_eval.cli.judge_check.label_lines import Subject
from ci_eval.llm import model_client
from ci_eval.llm.judge_settings import Judging
from ci_eval.plugins.points import JudgedCriterion
from ci_eval.records.cases import Json, Status
from ci_eval.records.results import CriterionFacts, Score
from ci_eval.records.trials import Trace, Trial, TrialKey
from ci_eval.run.score import score
from ci_eval.runtime.context import RunContext


class Verdict(NamedTuple):
    """The verdict of a judge."""

    passes: bool | None
    """`None` if it could not decide."""
    value: float | None = None
    reason: str = ""
    """Why it could not decide."""
    rationale: str = ""
    """The judge's reason, if it gives one."""


async def judge(
    items: Sequence[Item[Subject]],
    chosen: Chosen,
    criterion: JudgedCriterion,
    judging: Judging,
    context: RunContext,
) -> dict[str, Score]:
    """Return the score of each labelled response, by its name; each is judged once."""
    slots = asyncio.Semaphore(judging.concurrency)
    async with model_client.asking(judging, context) as asker:
        judged = model_client.Judged(criterion, asker)

        async def one(name: str, subject: Subject) -> tuple[str, Score]:
            key = TrialKey(agent="", evalset="", case=subject.case.eval_id)
            trace = Trace(key=key, invocations=subject.invocations)
            async with slots:
                found = await score(
                    Trial(key, subject.case), trace, {chosen.name: criterion}, {chosen.name: judged}
                )
            return name, found.scores[0]

        subjects = {item.name: item.subject for item in items}
        return dict(await asyncio.gather(*(one(*each) for each in subjects.items())))


def verdict_of(found: Score, rubric: str | None, facts: CriterionFacts) -> Verdict:
    """Return the verdict of a score or, for a `rubric`, the one in its evidence."""
    evidence: list[Json] = [found.evidence, *(part.evidence for part in found.invocations)]
    if rubric is not None:
        return _on_rubric(rubric, evidence, facts, found.reason)
    rationale = next(_rationales(evidence), "")
    if found.value is None:
        return Verdict(None, None, found.reason, rationale)
    return Verdict(found.status is Status.PASSED, found.value, "", rationale)


def _on_rubric(rubric: str, evidence: list[Json], facts: CriterionFacts, reason: str) -> Verdict:
    said = list(_said(rubric, evidence))
    values = [value for value, _ in said if value is not None]
    rationale = next((each for _, each in said if each), "")
    if not said or len(values) < len(said):
        reason = reason or f"the judge said nothing about the rubric {rubric!r}"
        return Verdict(None, None, reason, rationale)
    mean = sum(values) / len(values)
    return Verdict(facts.passes(mean), mean, "", rationale)


_YES_NO = {"yes": 1.0, "no": 0.0}


def _said(rubric: str, value: Json) -> Iterator[tuple[float | None, str]]:
    """Yield each verdict on `rubric`, with its rationale, from evidence in one of two formats.

    One is a list of objects with `rubric_id` and `verdict`, one for each invocation; the other an
    object with a `score` for each rubric, one for each sample.
    """
    if isinstance(value, list):
        for each in value:
            yield from _said(rubric, each)
        return
    if not isinstance(value, Mapping):
        return
    if value.get("rubric_id") == rubric:
        yield _YES_NO.get(str(value.get("verdict"))), str(value.get("rationale") or "")
        return
    rubrics = value.get("rubrics")
    if isinstance(rubrics, Mapping) and isinstance(rubrics.get(rubric), Mapping):
        said = rubrics[rubric]
        score = said.get("score")
        yield score if isinstance(score, int | float) else None, str(said.get("rationale") or "")
        return
    for each in value.values():
        yield from _said(rubric, each)


def _rationales(value: Json) -> Iterator[str]:
    """Yield the judge's reasons in the evidence."""
    if isinstance(value, list):
        for each in value:
            yield from _rationales(each)
    elif isinstance(value, Mapping):
        for key, each in value.items():
            if key == "rationale" and isinstance(each, str) and each:
                yield each
            else:
                yield from _rationales(each)
