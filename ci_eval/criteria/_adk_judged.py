"""What ADK's judged criteria share: their options, and what a judge is shown of an invocation.

Names and defaults are those of ADK 2.13.0.
"""

from collections.abc import Iterator
from typing import ClassVar

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from ci_eval.plugins.points import Asked, JudgedCriterion
from ci_eval.records.model import AdkRecord, IntermediateData, Invocation, Json

INTERMEDIATE = "include_intermediate_responses_in_final"


class JudgeModelOptions(AdkRecord):
    """Which model is asked, and how often."""

    judge_model: str | None = None
    """The model's name; left out, the one that the configuration names."""
    judge_model_config: dict[str, Json] | None = None
    """Settings of a call, as google-genai's `GenerateContentConfig` names them."""
    num_samples: int | None = Field(default=None, ge=1)
    """How often the same is asked; the majority counts. 5 in ADK."""
    parallelism_limit: int = Field(default=1, ge=1)
    """Known to ADK as the number of calls at once; changes nothing here."""


class AdkJudged(JudgedCriterion):
    """What ADK's judged criteria have in common."""

    model_config: ClassVar[ConfigDict] = ConfigDict(alias_generator=to_camel)

    judge_model_options: JudgeModelOptions = JudgeModelOptions()
    """Which model is asked, and how often."""
    reads_intermediate: ClassVar[bool] = False
    """Whether it judges what was said before tool calls, where that is wanted."""

    include_intermediate_responses_in_final: bool = False
    """Judge what was said before tool calls together with the final response; only
    `final_response_match_v2` and `rubric_based_final_response_quality_v1` do."""

    def asked(self) -> Asked:
        """Return what `judge_model_options` say."""
        said = self.judge_model_options
        return Asked(said.judge_model, said.num_samples, said.judge_model_config or {})

    def remarks(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yield the options of ADK that are set and change nothing."""
        if self.include_intermediate_responses_in_final and not self.reads_intermediate:
            yield of_no_effect(INTERMEDIATE)
        if self.judge_model_options.parallelism_limit > 1:
            why = "changes nothing here; `run.concurrency` bounds the calls at once"
            yield ("judge_model_options", "parallelism_limit"), why

    def options(self) -> dict[str, Json]:
        """Return what decides the value; who judges, and how fast, is told elsewhere."""
        return {k: v for k, v in super().options().items() if k != "judge_model_options"}


def of_no_effect(option: str) -> tuple[tuple[str, ...], str]:
    """Return the remark that ADK's `option` changes nothing."""
    return (option,), "changes nothing for this criterion, as in ADK"


def final_text(invocation: Invocation, *, whole: bool) -> str:
    """Return the final response; `whole`, with all that was said on the way to it."""
    said = [*intermediate_texts(invocation)] if whole else []
    return "\n".join(filter(None, [*said, invocation.response]))


def intermediate_texts(invocation: Invocation) -> Iterator[str]:
    """Yield what was said on the way to the final response."""
    data = invocation.intermediate_data
    if isinstance(data, IntermediateData):
        for _, parts in data.intermediate_responses:
            yield from (part.text for part in parts if part.text)
    for event in invocation.events or ():
        if event.content and event.content.text:
            yield event.content.text
