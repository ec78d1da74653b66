"""AgentFlow's rubrics: weighted properties of a response."""

from collections import Counter
from fractions import Fraction
from functools import partial
from typing import ClassVar

from pydantic import Field, field_validator

from ci_eval.criteria._agentflow_judged import (
    AgentFlowJudged,
    Ask,
    first_and_last,
    read_observed,
    shown,
)
from ci_eval.criteria._forms import NUMBER, TEXT, strict
from ci_eval.criteria._means import Sample
from ci_eval.criteria._scores import each_in, object_in, rationale_in, share_in
from ci_eval.plugins.points import criterion
from ci_eval.records.model import EvalCase, Json, Record
from ci_eval.records.trials import Trace

PROMPT = "agentflow/rubric_based"
OVERALL = "agentflow/rubric_based_overall"
OVERALL_FORM = strict(reasoning=TEXT, score=NUMBER)


class AgentFlowRubric(Record):
    """One property on which a response is scored."""

    rubric_id: str = Field(min_length=1)
    """Name in the evidence."""
    content: str = Field(min_length=1)
    """The required property."""
    weight: float = Field(default=1.0, ge=0, le=1e6)
    """Weight relative to the others."""


@criterion("agentflow/rubric_based")
class RubricBased(AgentFlowJudged):
    """The weighted mean of a judge's scores of the response for each rubric.

    The judge sees all rubrics, the last user message, the response and, if there are several
    invocations, the conversation before; it gives each rubric a score from 0 to 1.  The value of a
    sample is the weighted mean, and the mean over the samples counts.  Observed semantics: the
    judge gives one overall score, and weights have no effect.
    """

    aliases = ("rubric_based_score", "rubric_based_final_response_quality_v1")
    needs_rubrics = True
    example: ClassVar = {
        "rubrics": [{"rubric_id": "short", "content": "The answer has at most two sentences."}]
    }
    prompts = (PROMPT, OVERALL)

    rubrics: tuple[AgentFlowRubric, ...] = Field(min_length=1)
    """The properties to score, with their weights."""

    @field_validator("rubrics")
    @classmethod
    def _ids_are_unique(cls, rubrics: tuple[AgentFlowRubric, ...]) -> tuple[AgentFlowRubric, ...]:
        counts = Counter(each.rubric_id for each in rubrics)
        twice = [name for name, count in counts.items() if count > 1]
        if twice:
            raise ValueError(f"several rubrics have the id {twice[0]!r}")
        if not any(each.weight for each in rubrics):
            raise ValueError("all weights are 0, so no rubric would count")
        return rubrics

    def documented(self, case: EvalCase, trace: Trace) -> Ask:
        """Ask for a score for each rubric."""
        del case
        names: Json = [each.rubric_id for each in self.rubrics]
        name = {"type": "string", "enum": names}
        entry = strict(rubric_id=name, reasoning=TEXT, score=NUMBER)
        form = strict(rubrics={"type": "array", "items": entry})
        data = {**shown(trace.invocations), "rubrics": self._shown()}
        return Ask(PROMPT, form, partial(read, rubrics=self.rubrics), data)

    def observed(self, case: EvalCase, trace: Trace) -> Ask:
        """Ask for one overall score."""
        del case
        data = {**first_and_last(trace), "rubrics": self._shown()}
        return Ask(OVERALL, OVERALL_FORM, read_observed, data)

    def _shown(self) -> Json:
        return [each.model_dump(include={"rubric_id", "content"}) for each in self.rubrics]


def read(text: str, *, rubrics: tuple[AgentFlowRubric, ...]) -> Sample:
    """Return Σ weight · score / Σ weight over the rubrics of an answer, rounded once.

    Raises:
        UnreadableError: a rubric is missing, or its score is not a number from 0 to 1.

    """
    weights = {each.rubric_id: each.weight for each in rubrics}
    found = each_in(object_in(text), "rubrics", "rubric_id", weights)
    scores = {name: share_in(each, "score", of=repr(name)) for name, each in found.items()}
    total = sum(map(Fraction, weights.values()))
    weighted = sum(Fraction(weights[name]) * Fraction(score) for name, score in scores.items())
    details: Json = {
        name: {"score": score, "weight": weights[name], "rationale": rationale_in(found[name])}
        for name, score in scores.items()
    }
    return Sample(float(weighted / total), "", {"rubrics": details})
