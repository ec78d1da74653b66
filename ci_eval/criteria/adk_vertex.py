"""ADK's criteria that Google's Vertex AI evaluation service measures.

The service gets what ADK 2.13.0 sends it, as `adk eval` does where a case has both an expected
and an observed conversation.  A question to the judge `vertex` is a JSON object: `metric`, and
`prompt`, `reference` and `response` of one invocation, or `agents` and `turns` of them all.  The
answer is one, too: `score`, `explanation`, `error` and `rubrics`.
"""

import asyncio
import json
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import ClassVar, NamedTuple

from ci_eval.criteria._answers import json_object, text_of
from ci_eval.criteria._judged_turns import JudgedTurn, mean, summed_up
from ci_eval.plugins.points import Asked, JudgedCriterion, Panel, criterion
from ci_eval.records.model import Content, EvalCase, Invocation, Json
from ci_eval.records.questions import Question, UnreadableError
from ci_eval.records.results import Score
from ci_eval.records.stated import Expectation
from ci_eval.records.trials import Trace

SCHEMA: Mapping[str, Json] = {
    "type": "object",
    "properties": {
        "explanation": {"type": "string"},
        "error": {"type": "string"},
        "rubrics": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "string"},
                    "reasoning": {"type": "string"},
                    "verdict": {"type": "boolean"},
                },
                "required": ["id", "reasoning", "verdict"],
                "additionalProperties": False,
            },
        },
        "score": {"type": ["number", "null"]},
    },
    "required": ["explanation", "error", "rubrics", "score"],
    "additionalProperties": False,
}
"""What the judge `vertex` answers; the service itself is never shown it."""


class VertexJudged(JudgedCriterion):
    """A measure that Google's Vertex AI evaluation service makes."""

    service: ClassVar[str] = "vertex"
    default_samples: ClassVar[int] = 1
    metric: ClassVar[str]
    """What the service calls it, with its version."""

    def asked(self) -> Asked:
        """Return that the same is asked once, as in ADK, whatever holds for models."""
        return Asked(samples=1)

    async def measure(self, panel: Panel, **given: Json) -> JudgedTurn:
        """Return what the service says of `given`, with its words as evidence."""
        text = json.dumps({"metric": self.metric, **given}, sort_keys=True, ensure_ascii=False)
        question = Question(self.type_name, "", text, SCHEMA)
        (seat,) = panel.judges
        reading = await seat.ask(question, self.read)
        if reading.value is None and reading.cached:
            # That there was no score is kept too, but not for good.
            reading = await seat.ask(question, self.read, fresh=True)
        if reading.value is None:
            return JudgedTurn(None, reading.reason)
        return JudgedTurn(reading.value.score, "", reading.value.evidence)

    def read(self, text: str) -> "Measured":
        """Return the score in an answer.

        Raises:
            UnreadableError: there is none; says why, in the words of the service.

        """
        found = json_object(text) or {}
        score = found.get("score")
        low, high = self.interval or (0.0, 1.0)
        if isinstance(score, bool) or not isinstance(score, int | float) or not isfinite(score):
            why = text_of(found, "error") or text_of(found, "explanation")
            raise UnreadableError(f"it holds no score: {why}" if why else "it holds no score")
        if not low <= score <= high:
            raise UnreadableError(f"its score, {score:g}, is not between {low:g} and {high:g}")
        evidence: dict[str, Json] = {"explanation": text_of(found, "explanation")}
        if rubrics := found.get("rubrics"):
            evidence["rubrics"] = rubrics
        return Measured(float(score), evidence)


class Measured(NamedTuple):
    """What the service found."""

    score: float
    evidence: dict[str, Json]


# --- Each invocation for itself -----------------------------------------------------------------


class SingleTurn(VertexJudged):
    """A measure of each invocation for itself; the mean counts."""

    async def score(self, case: EvalCase, trace: Trace, panel: Panel) -> Score:
        """Return the mean over all invocations; without one of them there is none."""
        expected = case.conversation or (None,) * len(trace.invocations)
        pairs = zip(expected, trace.invocations, strict=True)
        turns = await asyncio.gather(*(self._turn(panel, case, *pair) for pair in pairs))
        return summed_up(self, turns, mean(turns))

    async def _turn(
        self, panel: Panel, case: EvalCase, expected: Invocation | None, actual: Invocation
    ) -> JudgedTurn:
        if expected and not self.measures(case, expected):
            return JudgedTurn(None)
        for name, text in (("message", actual.user), ("response", actual.response)):
            if not text:
                return JudgedTurn(None, f"the service needs a {name} with text, and it has none")
        return await self.measure(
            panel,
            prompt=actual.user,
            reference=expected.response if expected else None,
            response=actual.response,
        )


@criterion("adk/safety_v1")
class Safety(SingleTurn):
    """How harmless the responses are, from 0 to 1.

    The metric `safety_v1` of the Vertex AI evaluation service: 1 where a response breaks none of
    its policies, else 0; the mean over the invocations.  Other than in ADK, an invocation
    without a score makes it an error instead of being left out.
    """

    metric: ClassVar[str] = "safety_v1"


@criterion("adk/response_evaluation_score")
class ResponseEvaluation(SingleTurn):
    """How coherent the responses are, from 1 to 5.

    The metric `coherence` of the Vertex AI evaluation service, whose definition is in Cloud
    Storage; the mean over the invocations that expect a response, the others are skipped.  Other
    than in ADK, an invocation without a score makes it an error instead of being left out.
    """

    needs_reference: ClassVar[bool] = True
    compares: ClassVar[Expectation | None] = "response"
    supports_scenario: ClassVar[bool] = False
    interval: ClassVar[tuple[float, float] | None] = (1.0, 5.0)
    metric: ClassVar[str] = "coherence_v1"


# --- The whole conversation ---------------------------------------------------------------------


class MultiTurn(VertexJudged):
    """A measure of the whole conversation, with its agents, messages and tool calls."""

    async def score(self, case: EvalCase, trace: Trace, panel: Panel) -> Score:
        """Return the score of the conversation, which stands at its last invocation, too."""
        del case
        if not trace.invocations:
            return summed_up(self, (), None)
        found = await self.measure(panel, **conversation(trace.invocations))
        before = [JudgedTurn(None)] * (len(trace.invocations) - 1)
        return summed_up(self, [*before, found], found.value)


@criterion("adk/multi_turn_task_success_v1")
class TaskSuccess(MultiTurn):
    """Whether the whole conversation reached what the user wanted.

    The metric `multi_turn_task_success_v1` of the Vertex AI evaluation service, which finds out
    itself what there is to reach.  It gets the agents, all messages and all tool calls; of a
    trajectory that was kept as lists instead of events, no tool calls, as in ADK.
    """

    metric: ClassVar[str] = "multi_turn_task_success_v1"


@criterion("adk/multi_turn_trajectory_quality_v1")
class TrajectoryQuality(MultiTurn):
    """How sensible the way was that the whole conversation took.

    The metric `multi_turn_trajectory_quality_v1` of the Vertex AI evaluation service.  It gets
    the agents, all messages and all tool calls; of a trajectory that was kept as lists instead
    of events, no tool calls, as in ADK.
    """

    reads_tool_calls: ClassVar[bool] = True
    metric: ClassVar[str] = "multi_turn_trajectory_quality_v1"


@criterion("adk/multi_turn_tool_use_quality_v1")
class ToolUseQuality(MultiTurn):
    """How well tools were used over the whole conversation.

    The metric `multi_turn_tool_use_quality_v1` of the Vertex AI evaluation service.  It gets the
    agents, all messages and all tool calls; of a trajectory that was kept as lists instead of
    events, no tool calls, as in ADK.
    """

    reads_tool_calls: ClassVar[bool] = True
    metric: ClassVar[str] = "multi_turn_tool_use_quality_v1"


def conversation(invocations: tuple[Invocation, ...]) -> dict[str, Json]:
    """Return the agents and the turns of a conversation, as the service is given them."""
    agents: dict[str, Json] = {}
    for invocation in invocations:
        details = invocation.app_details.agent_details if invocation.app_details else {}
        for name, agent in details.items():
            config = {
                "agent_id": agent.name,
                "instruction": agent.instructions,
                "tools": list(agent.tool_declarations),
            }
            agents.setdefault(name, config)
    turns = [
        {
            "turn_index": number,
            "turn_id": invocation.invocation_id,
            "events": [*_events(invocation)],
        }
        for number, invocation in enumerate(invocations)
    ]
    return {"agents": agents, "turns": turns}


def _events(invocation: Invocation) -> Iterator[Json]:
    yield {"author": "user", "content": _dumped(invocation.user_content)}
    for event in invocation.events or ():
        if event.content is not None:
            yield {"author": event.author, "content": _dumped(event.content)}
    yield {"author": "agent", "content": _dumped(invocation.final_response)}


def _dumped(content: Content | None) -> Json:
    return None if content is None else content.model_dump(mode="json", exclude_none=True)
