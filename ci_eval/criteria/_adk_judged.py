"""Shared parts of ADK's judged criteria: their options, and the text that a judge sees.

Names and defaults are those of ADK 2.13.0.
"""

from collections.abc import Iterator
from typing import ClassVar

from pydantic import Field
from pydantic.alias_generators import to_camel

from ci_eval.formats.event_lists import trajectory_events
from ci_eval.plugins.points import Asked, JudgedCriterion
from ci_eval.records.bounds import Samples
from ci_eval.records.cases import AdkRecord, Invocation, Json

INTERMEDIATE = "include_intermediate_responses_in_final"


class JudgeModelOptions(AdkRecord):
    """Model of the judge and number of samples."""

    judge_model: str | None = None
    """Model name; defaults to the one in the configuration."""
    judge_model_config: dict[str, Json] | None = None
    """Generation settings, with the names of google-genai's `GenerateContentConfig`."""
    num_samples: Samples | None = None
    """Number of samples per question; the majority counts. 5 in ADK."""
    parallelism_limit: int = Field(default=1, ge=1)
    """ADK's limit of concurrent calls; has no effect, see `run.concurrency`."""


class AdkJudged(JudgedCriterion, alias_generator=to_camel):
    """Base class of ADK's judged criteria."""

    judge_model_options: JudgeModelOptions = JudgeModelOptions()
    """Model of the judge and number of samples."""
    reads_intermediate: ClassVar[bool] = False
    """Whether it supports `include_intermediate_responses_in_final`."""

    include_intermediate_responses_in_final: bool = False
    """Judge the texts before tool calls together with the final response; affects only
    `final_response_match_v2` and `rubric_based_final_response_quality_v1`."""

    def asked(self) -> Asked:
        """Return the model, samples and settings of `judge_model_options`."""
        said = self.judge_model_options
        return Asked(said.judge_model, said.num_samples, said.judge_model_config or {})

    def remarks(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield the ADK options that are set but have no effect."""
        if self.include_intermediate_responses_in_final and not self.reads_intermediate:
            yield of_no_effect(INTERMEDIATE)
        if self.judge_model_options.parallelism_limit > 1:
            why = "has no effect here; `run.concurrency` limits concurrent calls"
            yield ("judge_model_options", "parallelism_limit"), why

    def options(self) -> dict[str, Json]:
        """Return the options that affect the value; the judge is recorded separately."""
        return {k: v for k, v in super().options().items() if k != "judge_model_options"}


def of_no_effect(option: str) -> tuple[tuple[str, ...], str]:
    """Return the remark that ADK's `option` has no effect."""
    return (option,), "has no effect on this criterion, as in ADK"


def final_text(invocation: Invocation, *, whole: bool) -> str:
    """Return the final response; if `whole`, preceded by the intermediate texts."""
    before = trajectory_events(invocation) if whole else ()
    said = [event.content.text for event in before if event.content]
    return "\n".join(filter(None, [*said, invocation.response]))
