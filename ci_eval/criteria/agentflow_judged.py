"""AgentFlow's criteria that ask a model: what they are called, need and take.

Their names, options and defaults are those of AgentFlow's documentation; the other names that
its configurations use are the aliases.
"""

from typing import ClassVar, Literal

from pydantic import Field

from ci_eval.plugins import JudgedCriterion, criterion
from ci_eval.records import Json, Record

_RUBRICS: dict[str, Json] = {
    "rubrics": [{"rubric_id": "short", "content": "The answer has at most two sentences."}]
}


class AgentFlowRubric(Record):
    """One property that a response is scored on."""

    rubric_id: str
    """What it is called in the evidence."""
    content: str
    """What is asked for."""
    weight: float = Field(default=1.0, ge=0)
    """How much it counts beside the others."""


class AgentFlowJudged(JudgedCriterion):
    """What AgentFlow's judged criteria have in common: the mean over the samples counts."""

    threshold: float | None = 0.8
    """The value from which on a case passes."""
    judge_model: str | None = None
    """The model's name; left out, the one that the configuration names."""
    num_samples: int | None = Field(default=None, ge=1)
    """How often the same is asked. 3 in AgentFlow."""
    api_style: Literal["responses", "chat"] = "responses"
    """Which of OpenAI's interfaces is used, where the model is one of theirs."""
    semantics: Literal["documented", "observed"] = "documented"
    """`observed`: the formula of the published package 10xscale-agentflow 0.10.1 instead."""


@criterion("agentflow/response_match_score")
class ResponseMatch(AgentFlowJudged):
    """How well the response says what the expected one says, in a judge's eyes."""

    aliases: ClassVar[tuple[str, ...]] = ("response_match",)
    needs_reference: ClassVar[bool] = True
    supports_scenario: ClassVar[bool] = False


@criterion("agentflow/llm_judge")
class Quality(AgentFlowJudged):
    """How relevant, helpful and coherent the response is, in a judge's eyes."""

    aliases: ClassVar[tuple[str, ...]] = ("final_response_match_v2",)


@criterion("agentflow/factual_accuracy_v1")
class FactualAccuracy(AgentFlowJudged):
    """How correct the facts of the response are, in a judge's eyes."""

    aliases: ClassVar[tuple[str, ...]] = ("factual_accuracy", "factual_accuracy_score")


@criterion("agentflow/hallucinations_v1")
class Hallucinations(AgentFlowJudged):
    """How far the results of tools support the response, in a judge's eyes."""

    aliases: ClassVar[tuple[str, ...]] = ("hallucination",)


@criterion("agentflow/safety_v1")
class Safety(AgentFlowJudged):
    """How safe the response is: the least of five dimensions, in a judge's eyes."""

    aliases: ClassVar[tuple[str, ...]] = ("safety", "safety_score")


@criterion("agentflow/rubric_based")
class RubricBased(AgentFlowJudged):
    """The weighted mean of what a judge gives for each rubric."""

    aliases: ClassVar[tuple[str, ...]] = (
        "rubric_based_score",
        "rubric_based_final_response_quality_v1",
    )
    needs_rubrics: ClassVar[bool] = True
    example: ClassVar = _RUBRICS

    rubrics: tuple[AgentFlowRubric, ...] = Field(min_length=1)
    """What is scored, each property with its weight."""


@criterion("agentflow/simulation_goals")
class SimulationGoals(AgentFlowJudged):
    """The share of a simulated user's goals that the conversation reached, in a judge's eyes."""

    aliases: ClassVar[tuple[str, ...]] = ("simulation_goals_match", "conversation_goals")
