"""ADK's rubric-based criteria: for responses, tool use and whole conversations."""

import asyncio
from abc import abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import ClassVar, NamedTuple, Self

from pydantic import field_validator, model_validator

from ci_eval.criteria import _rubric_verdicts
from ci_eval.criteria._adk_judged import AdkJudged, final_text
from ci_eval.criteria._invocation_turns import Turn, summed_up
from ci_eval.criteria._majority_of_samples import Verdict, majority
from ci_eval.criteria._rubric_verdicts import fault, meant_for
from ci_eval.criteria._shown_to_judges import (
    declared_tools,
    dialogue,
    grounding,
    instructions,
    tool_calls,
)
from ci_eval.plugins.points import Panel, criterion
from ci_eval.records.cases import EvalCase, Invocation, Json, Rubric
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace


class _Judged(NamedTuple):
    """The result for one invocation, and the verdicts on its rubrics."""

    turn: Turn
    verdicts: tuple[bool, ...] = ()


class RubricBased(AdkJudged):
    """The share of rubrics that a judge answers with yes."""

    needs_rubrics = True
    example: ClassVar = {
        "rubrics": [
            {"rubric_id": "polite", "rubric_content": {"text_property": "The answer is polite."}}
        ]
    }
    kind: ClassVar[str]
    """The `type` of rubrics of cases that apply to this criterion."""

    rubrics: tuple[Rubric, ...] = ()
    """Rubrics for every case; cases and invocations may add more."""
    rubric_type: str | None = None
    """The `type` of the cases' rubrics that apply. Only the criterion's own type is accepted, so it
    can be left out."""

    @field_validator("rubrics")
    @classmethod
    def _valid_rubrics(cls, rubrics: tuple[Rubric, ...]) -> tuple[Rubric, ...]:
        if fault(rubrics):
            raise ValueError(fault(rubrics))
        return rubrics

    @model_validator(mode="after")
    def _own_type(self) -> Self:
        if self.rubric_type not in (None, self.kind):
            message = f"'rubric_type' must be {self.kind!r} here, not {self.rubric_type!r}"
            raise ValueError(message)
        return self

    def lacks(self, case: EvalCase) -> str:
        """Return a message if no invocation has a rubric; empty otherwise."""
        if any(self.effective(case, expected) for expected in self._expected(case)):
            return ""
        return f"needs rubrics: in the criterion, or in the case with the type {self.kind!r}"

    def faults(self, case: EvalCase) -> Iterator[str]:
        """Yield why the rubrics of `case` cannot be judged."""
        found = (fault(self.effective(case, expected)) for expected in self._expected(case))
        yield from (f"{self.type_name}: {each}" for each in dict.fromkeys(found) if each)

    def effective(
        self, case: EvalCase, expected: Invocation | None, actual: Invocation | None = None
    ) -> list[Rubric]:
        """Return the rubrics that apply to one invocation.

        ADK's recordings repeat those of the case; identical ones count once.
        """
        rubrics = [*self.rubrics, *meant_for(self.kind, case.rubrics)]
        rubrics += meant_for(self.kind, expected.rubrics if expected else None)
        recorded = meant_for(self.kind, actual.rubrics if actual else None)
        return rubrics + [each for each in recorded if each not in rubrics]

    async def score(self, case: EvalCase, trace: Trace, panel: Panel) -> Score:
        """Return the share of yes among all verdicts on all invocations."""
        judged = await self._judge_all(case, trace.invocations, panel)
        verdicts = [verdict for each in judged for verdict in each.verdicts]
        value = sum(verdicts) / len(verdicts) if verdicts else None
        return summed_up(self, [each.turn for each in judged], value)

    async def _judge_all(
        self, case: EvalCase, actual: tuple[Invocation, ...], panel: Panel
    ) -> list[_Judged]:
        """Judge each invocation."""
        expected = case.conversation or (None,) * len(actual)
        judging = (
            self._judge(self.effective(case, before, after), (after,), panel)
            for before, after in zip(expected, actual, strict=True)
        )
        return await asyncio.gather(*judging)

    async def _judge(
        self, rubrics: list[Rubric], invocations: tuple[Invocation, ...], panel: Panel
    ) -> _Judged:
        """Judge `rubrics`, all in one question."""
        if not rubrics:
            return _Judged(Turn(None))
        if fault(rubrics):
            return _Judged(Turn(None, reason=fault(rubrics)))
        question = panel.question(
            self.prompts[0],
            _rubric_verdicts.SCHEMA,
            **self._data(invocations),
            rubrics=_rubric_verdicts.shown(rubrics),
        )
        names = [each.rubric_id for each in rubrics]
        found = await majority(
            panel, question, names, partial(_rubric_verdicts.read, rubrics=rubrics)
        )
        return _summary(rubrics, found)

    @abstractmethod
    def _data(self, invocations: tuple[Invocation, ...]) -> dict[str, Json]:
        """Return the data that the judge sees besides the rubrics."""

    def _expected(self, case: EvalCase) -> tuple[Invocation | None, ...]:
        """Return the expected invocations whose rubrics apply; a placeholder if there are none."""
        return case.conversation or (None,)


def _summary(rubrics: list[Rubric], found: dict[str, Verdict]) -> _Judged:
    """Combine the verdicts on the `rubrics` of an invocation."""
    entries: list[Json] = [
        {
            "rubric_id": each.rubric_id,
            "property": each.rubric_content.text_property,
            "verdict": {True: "yes", False: "no", None: None}[verdict.yes],
            "rationale": verdict.rationale,
            **verdict.evidence,
        }
        for each in rubrics
        for verdict in (found[each.rubric_id],)
    ]
    verdicts = tuple(each.yes for each in found.values() if each.yes is not None)
    lacking = next((name for name, each in found.items() if each.yes is None), None)
    if lacking is None:
        value, reason = sum(verdicts) / len(verdicts), ""
    else:
        value, reason = None, f"the rubric {lacking!r}: {found[lacking].reason}"
    return _Judged(Turn(value, {"rubrics": entries}, reason), verdicts)


@criterion("adk/rubric_based_final_response_quality_v1")
class RubricResponse(RubricBased):
    """The share of rubrics that the final responses satisfy, according to a judge.

    A rubric is a property, stated in a sentence.  For each invocation the judge sees the
    instructions and the tools of the agents, the user's message, the tool calls with their results,
    the results of a model's own searches, the response and the rubrics, and answers each rubric
    with `yes` or `no`; the majority of the samples counts, and a tie is `no`.  The value is the
    share of `yes` among all verdicts on all invocations.

    An invocation is judged on the rubrics of the criterion, and on those of the case and of the
    expected invocation whose `type` is `FINAL_RESPONSE_QUALITY`; a recording may add its own.
    Duplicate ids are an error.

    Differences from ADK: each invocation has its own rubrics, whereas ADK 2.13 reads all answers
    with those of the last.  A rubric without a verdict makes the score an error instead of being
    left out.  An invocation without rubrics is skipped, whereas ADK gives no score.  A verdict
    begins with the word `yes` or `no`: ADK finds `no` in `unknown`, and `yes` in `not yes`.
    Conflicting verdicts on a rubric do not count.  The instructions of all agents are shown, not
    only those of the first.
    """

    kind = "FINAL_RESPONSE_QUALITY"
    reads_intermediate = True
    prompts = ("adk/rubric_based_final_response_quality_v1",)

    def _data(self, invocations: tuple[Invocation, ...]) -> dict[str, Json]:
        [invocation] = invocations
        return {
            "instructions": instructions(invocations),
            "tools": declared_tools(invocations),
            "user_prompt": invocation.user,
            "tool_calls": tool_calls(invocation),
            "grounding": grounding(invocation),
            "response": final_text(invocation, whole=self.include_intermediate_responses_in_final),
        }


@criterion("adk/rubric_based_tool_use_quality_v1")
class RubricToolUse(RubricBased):
    """The share of rubrics that the use of tools satisfies, according to a judge.

    Like `adk/rubric_based_final_response_quality_v1`, but the judge sees only the tools, the user's
    message and the tool calls with their results, and rubrics of cases have the type
    `TOOL_USE_QUALITY`.  It differs from ADK in the same ways.
    """

    reads_tool_calls = True
    kind = "TOOL_USE_QUALITY"
    prompts = ("adk/rubric_based_tool_use_quality_v1",)

    def _data(self, invocations: tuple[Invocation, ...]) -> dict[str, Json]:
        [invocation] = invocations
        return {
            "tools": declared_tools(invocations),
            "user_prompt": invocation.user,
            "tool_calls": tool_calls(invocation),
        }


@criterion("adk/rubric_based_multi_turn_trajectory_quality_v1")
class RubricTrajectory(RubricBased):
    """The share of rubrics that the whole conversation satisfies, according to a judge.

    Asks one question about the whole conversation and shows the result at the last invocation;
    the others are skipped.  The judge sees the instructions, the tools, and all texts, calls and
    results, turn by turn.  It judges the rubrics of the criterion, and those of the case and of the
    last expected invocation whose `type` is `TRAJECTORY_QUALITY`.

    It differs from ADK as `adk/rubric_based_final_response_quality_v1` does; also, trajectories
    recorded as lists (`tool_uses`, …) are shown, whereas ADK leaves them out.
    """

    reads_tool_calls = True
    kind = "TRAJECTORY_QUALITY"
    prompts = ("adk/rubric_based_multi_turn_trajectory_quality_v1",)

    async def _judge_all(
        self, case: EvalCase, actual: tuple[Invocation, ...], panel: Panel
    ) -> list[_Judged]:
        if not actual:
            return []
        rubrics = self.effective(case, self._expected(case)[-1], actual[-1])
        before = [_Judged(Turn(None)) for _ in actual[:-1]]
        return [*before, await self._judge(rubrics, actual, panel)]

    def _data(self, invocations: tuple[Invocation, ...]) -> dict[str, Json]:
        return {
            "instructions": instructions(invocations),
            "tools": declared_tools(invocations),
            "dialogue": dialogue(invocations),
        }

    def _expected(self, case: EvalCase) -> tuple[Invocation | None, ...]:
        return super()._expected(case)[-1:]
