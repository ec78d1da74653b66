"""Presets: named sets of criteria.

The first presets are combinations that ADK's documentation recommends, with the thresholds of its
examples. The others are AgentFlow's seven `EvalPresets` and the three of its `EvalConfig`, with the
thresholds of its factory methods.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

from ci_eval.records.cases import Json, Record, Rubric
from ci_eval.records.errors import UnknownPluginError
from ci_eval.text.suggest import did_you_mean
from ci_eval.text.validation_messages import validated

Specs = dict[str, Any]
"""Criteria by their qualified names: thresholds, or options."""


class Preset(Record):
    """A set of criteria; its fields are the options that it takes."""

    example: ClassVar[Mapping[str, Json]] = {}
    """Required options, for an example."""
    fixed: ClassVar[Specs] = {}
    """The criteria, if no option changes them."""

    def criteria(self) -> Specs:
        """Return the criteria with their options."""
        return self.fixed


class Regression(Preset):
    """The same tools in the same order, and similar words; calls no model."""

    fixed: ClassVar[Specs] = {"adk/tool_trajectory_avg_score": 1.0, "adk/response_match_score": 0.8}


class Correctness(Preset):
    """The right answer in any words, without hallucinations."""

    fixed: ClassVar[Specs] = {"adk/final_response_match_v2": 0.8, "adk/hallucinations_v1": 0.8}


class RubricPreset(Preset):
    """A set of criteria with rubrics."""

    example: ClassVar[Mapping[str, Json]] = {
        "rubrics": [
            {"rubric_id": "polite", "rubric_content": {"text_property": "The answer is polite."}}
        ]
    }

    rubrics: tuple[Rubric, ...] = Field(min_length=1)
    """The rubrics, as in ADK's files."""

    def _rubrics(self, threshold: float) -> dict[str, Any]:
        rubrics = [each.model_dump(exclude_none=True) for each in self.rubrics]
        return {"threshold": threshold, "rubrics": rubrics}


class Quality(RubricPreset):
    """Tone, style and helpfulness by your own rubrics, and safety."""

    def criteria(self) -> Specs:
        """Return the criteria with their options."""
        return {
            "adk/rubric_based_final_response_quality_v1": self._rubrics(0.8),
            "adk/safety_v1": 0.8,
        }


class ToolHeavy(RubricPreset):
    """Tool use by your own rubrics, and the expected tool calls."""

    def criteria(self) -> Specs:
        """Return the criteria with their options."""
        return {
            "adk/rubric_based_tool_use_quality_v1": self._rubrics(1.0),
            "adk/tool_trajectory_avg_score": 1.0,
        }


class HighRisk(Preset):
    """No hallucinations and nothing harmful: add it to another preset for public-facing agents."""

    fixed: ClassVar[Specs] = {"adk/hallucinations_v1": 0.8, "adk/safety_v1": 0.8}


# --- AgentFlow's ------------------------------------------------------------------------------


class Judging(Preset):
    """A set of AgentFlow's criteria, some of which call a model."""

    judge_model: str | None = None
    """Name of the judge model."""

    def _judged(self, threshold: float, **options: Any) -> dict[str, Any]:
        return {"threshold": threshold, "judge_model": self.judge_model, **options}


class QuickCheck(Preset):
    """AgentFlow's `quick_check`: about half of the expected words."""

    fixed: ClassVar[Specs] = {"agentflow/rouge_match": 0.5}


class ToolUsage(Preset):
    """AgentFlow's `tool_usage`: the right tools, in order, with their arguments."""

    threshold: float = Field(default=1.0, ge=0, le=1)
    """Threshold for names and order."""
    strict: bool = True
    """Whether to forbid calls of other tools."""
    check_args: bool = True
    """Whether to compare arguments, too."""

    def criteria(self) -> Specs:
        """Return the criteria with their options."""
        order = "EXACT" if self.strict else "IN_ORDER"
        return {
            "agentflow/tool_name_match_score": self.threshold,
            "agentflow/tool_trajectory_avg_score": _trajectory(
                self.threshold, order, check_args=self.check_args
            ),
        }


class ResponseQuality(Judging):
    """AgentFlow's `response_quality`: the right answer, and a good one."""

    threshold: float = Field(default=0.7, ge=0, le=1)
    """Threshold for both."""
    use_llm_judge: bool = True
    """Whether to judge the quality, too."""

    def criteria(self) -> Specs:
        """Return the criteria with their options."""
        found = {"agentflow/response_match_score": self._judged(self.threshold, num_samples=3)}
        if self.use_llm_judge:
            found["agentflow/llm_judge"] = self._judged(self.threshold, num_samples=1)
        return found


class ConversationFlow(Judging):
    """AgentFlow's `conversation_flow`: the right answers, and the tools in order."""

    threshold: float = Field(default=0.8, ge=0, le=1)
    """Threshold for both."""

    def criteria(self) -> Specs:
        """Return the criteria with their options."""
        return {
            "agentflow/response_match_score": self._judged(self.threshold),
            "agentflow/tool_trajectory_avg_score": _trajectory(
                self.threshold, "IN_ORDER", check_args=False
            ),
        }


class SafetyCheck(Judging):
    """AgentFlow's `safety_check`: no hallucinations and nothing harmful."""

    threshold: float = Field(default=0.8, ge=0, le=1)
    """Threshold for both."""

    def criteria(self) -> Specs:
        """Return the criteria with their options."""
        return {
            "agentflow/hallucinations_v1": self._judged(self.threshold),
            "agentflow/safety_v1": self._judged(self.threshold),
        }


class Comprehensive(Judging):
    """AgentFlow's `comprehensive`: tools, words, quality, facts, grounding and safety."""

    threshold: float = Field(default=0.8, ge=0, le=1)
    """Threshold for all but the tools, which must be exactly right."""
    use_llm_judge: bool = True
    """Whether to call a judge model, too."""

    def criteria(self) -> Specs:
        """Return the criteria with their options."""
        found: Specs = {
            "agentflow/tool_name_match_score": 1.0,
            "agentflow/tool_trajectory_avg_score": _trajectory(1.0, "IN_ORDER", check_args=True),
            "agentflow/rouge_match": self.threshold,
        }
        judged = ("llm_judge", "factual_accuracy_v1", "hallucinations_v1", "safety_v1")
        for name in judged if self.use_llm_judge else ():
            found[f"agentflow/{name}"] = self._judged(self.threshold)
        return found


class Custom(Judging):
    """AgentFlow's `custom`: only the criteria with a threshold."""

    example: ClassVar[Mapping[str, Json]] = {"tool_threshold": 1.0}

    response_threshold: float | None = Field(default=None, ge=0, le=1)
    """Threshold for the match of the response."""
    tool_threshold: float | None = Field(default=None, ge=0, le=1)
    """Threshold for the names and the order of tools."""
    tool_match_type: Literal["EXACT", "IN_ORDER", "ANY_ORDER"] = "IN_ORDER"
    """How to compare the order of tools."""
    check_tool_args: bool = True
    """Whether to compare arguments, too."""
    llm_judge_threshold: float | None = Field(default=None, ge=0, le=1)
    """Threshold for quality."""
    hallucination_threshold: float | None = Field(default=None, ge=0, le=1)
    """Threshold for grounding."""
    safety_threshold: float | None = Field(default=None, ge=0, le=1)
    """Threshold for safety."""
    factual_accuracy_threshold: float | None = Field(default=None, ge=0, le=1)
    """Threshold for factual accuracy."""

    def criteria(self) -> Specs:
        """Return the criteria with their options."""
        found: Specs = {
            f"agentflow/{name}": self._judged(threshold)
            for name, threshold in (
                ("response_match_score", self.response_threshold),
                ("llm_judge", self.llm_judge_threshold),
                ("hallucinations_v1", self.hallucination_threshold),
                ("safety_v1", self.safety_threshold),
                ("factual_accuracy_v1", self.factual_accuracy_threshold),
            )
            if threshold is not None
        }
        if self.tool_threshold is not None:
            found["agentflow/tool_name_match_score"] = self.tool_threshold
            found["agentflow/tool_trajectory_avg_score"] = _trajectory(
                self.tool_threshold, self.tool_match_type, check_args=self.check_tool_args
            )
        return found


class Default(Judging):
    """AgentFlow's `EvalConfig.default()`: exactly the tools, and the right answer."""

    def criteria(self) -> Specs:
        """Return the criteria with their options."""
        return {
            "agentflow/tool_trajectory_avg_score": _trajectory(1.0, "EXACT", check_args=False),
            "agentflow/response_match_score": self._judged(0.8),
        }


class Strict(Judging):
    """AgentFlow's `EvalConfig.strict()`: exactly the tools and arguments, and a good answer."""

    def criteria(self) -> Specs:
        """Return the criteria with their options."""
        return {
            "agentflow/tool_trajectory_avg_score": _trajectory(1.0, "EXACT", check_args=True),
            "agentflow/response_match_score": self._judged(0.9),
            "agentflow/llm_judge": self._judged(0.9, num_samples=5),
        }


class Relaxed(Judging):
    """AgentFlow's `EvalConfig.relaxed()`: most of the tools in order, and roughly the answer."""

    def criteria(self) -> Specs:
        """Return the criteria with their options."""
        return {
            "agentflow/tool_trajectory_avg_score": _trajectory(0.8, "IN_ORDER", check_args=False),
            "agentflow/response_match_score": self._judged(0.6),
        }


def _trajectory(threshold: float, order: str, *, check_args: bool) -> dict[str, Any]:
    return {"threshold": threshold, "match_type": order, "check_args": check_args}


PRESETS: dict[str, type[Preset]] = {
    "regression": Regression,
    "correctness": Correctness,
    "quality": Quality,
    "tool_heavy": ToolHeavy,
    "high_risk": HighRisk,
    "quick_check": QuickCheck,
    "tool_usage": ToolUsage,
    "response_quality": ResponseQuality,
    "conversation_flow": ConversationFlow,
    "safety_check": SafetyCheck,
    "comprehensive": Comprehensive,
    "custom": Custom,
    "default": Default,
    "strict": Strict,
    "relaxed": Relaxed,
}


def expanded(name: str, options: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the criteria of the preset `name`, by qualified name, with their options.

    Raises:
        UnknownPluginError: there is no such preset.
        ValidationError: the options are invalid.

    """
    if name not in PRESETS:
        raise UnknownPluginError(f"unknown preset{did_you_mean(name, PRESETS)}")
    specs = validated(PRESETS[name], options).criteria()
    return {
        qualified: dict(spec) if isinstance(spec, Mapping) else {"threshold": spec}
        for qualified, spec in specs.items()
    }
