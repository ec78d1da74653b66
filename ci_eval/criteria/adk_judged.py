"""ADK's criteria that ask a model: what they are called, need and take.

Their options and facts are those of ADK 2.13.0.
"""

from typing import ClassVar

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from ci_eval.plugins import JudgedCriterion, criterion
from ci_eval.records import AdkRecord, Json, Rubric

_RUBRICS: dict[str, Json] = {
    "rubrics": [
        {"rubric_id": "polite", "rubric_content": {"text_property": "The answer is polite."}}
    ]
}


class JudgeModelOptions(AdkRecord):
    """Which model is asked, and how often."""

    judge_model: str | None = None
    """The model's name; left out, the one that the configuration names."""
    judge_model_config: Json = None
    """Settings of a call, as google-genai's `GenerateContentConfig` names them."""
    num_samples: int | None = Field(default=None, ge=1)
    """How often the same is asked; the majority counts. 5 in ADK."""
    parallelism_limit: int = Field(default=1, ge=1)
    """Known to ADK as the number of calls at once; changes no score."""


class AdkJudged(JudgedCriterion):
    """What ADK's judged criteria have in common."""

    model_config: ClassVar[ConfigDict] = ConfigDict(alias_generator=to_camel)

    judge_model_options: JudgeModelOptions = JudgeModelOptions()
    """Which model is asked, and how often."""
    include_intermediate_responses_in_final: bool = False
    """Judge what was said before tool calls together with the final response."""


class RubricBased(AdkJudged):
    """The share of rubrics that a judge answers with yes."""

    needs_rubrics: ClassVar[bool] = True
    example: ClassVar = _RUBRICS

    rubrics: tuple[Rubric, ...] = ()
    """Rubrics for every case; a case and an invocation may bring more."""
    rubric_type: str | None = None
    """The type that rubrics of cases must have to be meant here."""


@criterion("adk/final_response_match_v2")
class FinalResponseMatch(AdkJudged):
    """The share of final responses that a judge finds to say what the expected one says."""

    needs_reference: ClassVar[bool] = True
    supports_scenario: ClassVar[bool] = False


@criterion("adk/rubric_based_final_response_quality_v1")
class RubricResponse(RubricBased):
    """How many rubrics the final responses satisfy, in a judge's eyes."""


@criterion("adk/rubric_based_tool_use_quality_v1")
class RubricToolUse(RubricBased):
    """How many rubrics the use of tools satisfies, in a judge's eyes."""


@criterion("adk/rubric_based_multi_turn_trajectory_quality_v1")
class RubricTrajectory(RubricBased):
    """How many rubrics the whole conversation satisfies, in a judge's eyes."""


@criterion("adk/hallucinations_v1")
class Hallucinations(AdkJudged):
    """The share of an answer's sentences that instructions, tools and their results support."""

    evaluate_intermediate_nl_responses: bool = False
    """Judge what was said before the final response, too."""


@criterion("adk/per_turn_user_simulator_quality_v1")
class SimulatorQuality(AdkJudged):
    """The share of a simulated user's messages that keep to the conversation plan."""

    stop_signal: str = "</finished>"
    """What the simulated user writes to end the conversation."""


class VertexJudged(AdkJudged):
    """A measure that Google's Vertex AI evaluation service makes."""


@criterion("adk/safety_v1")
class Safety(VertexJudged):
    """How harmless the responses are, from 0 to 1."""


@criterion("adk/response_evaluation_score")
class ResponseEvaluation(VertexJudged):
    """How coherent the responses are, from 1 to 5."""

    needs_reference: ClassVar[bool] = True
    supports_scenario: ClassVar[bool] = False
    interval: ClassVar[tuple[float, float] | None] = (1.0, 5.0)


@criterion("adk/multi_turn_task_success_v1")
class TaskSuccess(VertexJudged):
    """Whether the whole conversation reached what the user wanted."""


@criterion("adk/multi_turn_trajectory_quality_v1")
class TrajectoryQuality(VertexJudged):
    """How sensible the way was that the whole conversation took."""


@criterion("adk/multi_turn_tool_use_quality_v1")
class ToolUseQuality(VertexJudged):
    """How well tools were used over the whole conversation."""
