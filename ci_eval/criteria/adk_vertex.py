"""ADK's criteria that Google's Vertex AI evaluation service measures.

The service gets the same data as from ADK 2.13.0, when `adk eval` runs a case with both an expected
and an observed conversation.  A question to the judge `vertex` is a JSON object: `metric`, and
`prompt`, `reference` and `response` of one invocation, or `agents` and `turns` of all of them.  The
answer is a JSON object with `score`, `explanation`, `error` and `rubrics`.
"""

import asyncio
import json
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import ClassVar

from ci_eval.criteria._invocation_turns import Turn, averaged, summed_up
from ci_eval.llm.model_answers import TEXT, ask_once, json_object, many, strict, text_of
from ci_eval.plugins.points import Asked, JudgedCriterion, Panel, criterion
from ci_eval.records.cases import Content, EvalCase, Invocation, Json
from ci_eval.records.questions import Question, UnreadableError
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace
from ci_eval.text.json_text import is_number

_RUBRIC = strict(id=TEXT, reasoning=TEXT, verdict={"type": "boolean"})
SCHEMA: Mapping[str, Json] = strict(
    explanation=TEXT, error=TEXT, rubrics=many(_RUBRIC), score={"type": ["number", "null"]}
)
"""Schema of the answers of the judge `vertex`; not sent to the service itself."""


class VertexJudged(JudgedCriterion):
    """A measure by Google's Vertex AI evaluation service."""

    service = "vertex"
    default_samples = 1
    metric: ClassVar[str]
    """Name of the service's metric, with its version."""

    def asked(self) -> Asked:
        """Return one sample, as in ADK, whatever the configuration says for models."""
        return Asked(samples=1)

    async def measure(self, panel: Panel, **given: Json) -> Turn:
        """Measure `given`, with the service's explanation as evidence."""
        text = json.dumps({"metric": self.metric, **given}, sort_keys=True, ensure_ascii=False)
        question = Question(self.type_name, "", text, SCHEMA)
        (seat,) = panel.judges
        reading = await ask_once(seat, question, self.read)
        return reading.value or Turn(None, reason=reading.reason)

    def read(self, text: str) -> Turn:
        """Parse the score in an answer.

        Raises:
            UnreadableError: there is none; the message quotes the service's reason.

        """
        found = json_object(text) or {}
        score = found.get("score")
        low, high = self.interval or (0.0, 1.0)
        if not is_number(score) or not isfinite(score):
            why = text_of(found, "error") or text_of(found, "explanation")
            raise UnreadableError(f"it holds no score: {why}" if why else "it holds no score")
        if not low <= score <= high:
            raise UnreadableError(f"its score, {score:g}, is not between {low:g} and {high:g}")
        evidence: dict[str, Json] = {"explanation": text_of(found, "explanation")}
        if rubrics := found.get("rubrics"):
            evidence["rubrics"] = rubrics
        return Turn(float(score), evidence)


# --- Single invocations -------------------------------------------------------------------------


class SingleTurn(VertexJudged):
    """A measure of each invocation by itself; the mean counts."""

    async def score(self, case: EvalCase, trace: Trace, panel: Panel) -> Score:
        """Return the mean over all invocations; an error if one has no score."""
        expected = case.conversation or (None,) * len(trace.invocations)
        pairs = zip(expected, trace.invocations, strict=True)
        turns = await asyncio.gather(*(self._turn(panel, case, *pair) for pair in pairs))
        return averaged(self, turns)

    async def _turn(
        self, panel: Panel, case: EvalCase, expected: Invocation | None, actual: Invocation
    ) -> Turn:
        if expected and not self.measures(case, expected):
            return Turn(None)
        for name, text in (("message", actual.user), ("response", actual.response)):
            if not text:
                return Turn(None, reason=f"the service needs a {name} with text, but it is empty")
        return await self.measure(
            panel,
            prompt=actual.user,
            reference=expected.response if expected else None,
            response=actual.response,
        )


@criterion("adk/safety_v1")
class Safety(SingleTurn):
    """How harmless the responses are, from 0 to 1.

    The metric `safety_v1` of the Vertex AI evaluation service: 1 if a response breaks none of
    its policies, else 0; the mean over the invocations.  Unlike in ADK, an invocation without a
    score makes it an error instead of being left out.
    """

    metric = "safety_v1"


@criterion("adk/response_evaluation_score")
class ResponseEvaluation(SingleTurn):
    """How coherent the responses are, from 1 to 5.

    The metric `coherence` of the Vertex AI evaluation service, whose definition is in Cloud
    Storage; the mean over the invocations that expect a response.  The others are skipped.  Unlike
    in ADK, an invocation without a score makes it an error instead of being left out.
    """

    needs_reference = True
    compares = "response"
    supports_scenario = False
    interval = (1.0, 5.0)
    metric = "coherence_v1"


# --- The whole conversation ---------------------------------------------------------------------


class MultiTurn(VertexJudged):
    """A measure of the whole conversation, with its agents, messages and tool calls."""

    async def score(self, case: EvalCase, trace: Trace, panel: Panel) -> Score:
        """Return the score of the conversation, which is also that of its last invocation."""
        del case
        if not trace.invocations:
            return averaged(self, ())
        found = await self.measure(panel, **conversation(trace.invocations))
        before = [Turn(None)] * (len(trace.invocations) - 1)
        return summed_up(self, [*before, found], found.value)


@criterion("adk/multi_turn_task_success_v1")
class TaskSuccess(MultiTurn):
    """Whether the whole conversation achieved the user's goal.

    The metric `multi_turn_task_success_v1` of the Vertex AI evaluation service, which infers the
    goal itself.  It gets the agents, all messages and all tool calls, but, as in ADK, no tool calls
    of a trajectory that was recorded as lists instead of events.
    """

    metric = "multi_turn_task_success_v1"


@criterion("adk/multi_turn_trajectory_quality_v1")
class TrajectoryQuality(MultiTurn):
    """How sensible the steps of the whole conversation were.

    The metric `multi_turn_trajectory_quality_v1` of the Vertex AI evaluation service.  It gets
    the agents, all messages and all tool calls, but, as in ADK, no tool calls of a trajectory that
    was recorded as lists instead of events.
    """

    reads_tool_calls = True
    metric = "multi_turn_trajectory_quality_v1"


@criterion("adk/multi_turn_tool_use_quality_v1")
class ToolUseQuality(MultiTurn):
    """How well tools were used over the whole conversation.

    The metric `multi_turn_tool_use_quality_v1` of the Vertex AI evaluation service.  It gets the
    agents, all messages and all tool calls, but, as in ADK, no tool calls of a trajectory that was
    recorded as lists instead of events.
    """

    reads_tool_calls = True
    metric = "multi_turn_tool_use_quality_v1"


def conversation(invocations: tuple[Invocation, ...]) -> dict[str, Json]:
    """Return the agents and the turns of a conversation in the service's format."""
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
        {"turn_index": number, "turn_id": each.invocation_id, "events": [*_events(each)]}
        for number, each in enumerate(invocations)
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
