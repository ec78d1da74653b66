"""Conversations with a model as the agent: the loop of model calls and canned tools."""

import time
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count

from ci_eval.agents._model_agent import CannedTools, Prompted, filled_in
from ci_eval.formats.event_lists import AGENT, USER, calls_of
from ci_eval.formats.gemini_stream import ModelResponse
from ci_eval.llm.prices import price_of
from ci_eval.plugins.points import Session
from ci_eval.records.cases import (
    AgentDetails,
    AppDetails,
    Content,
    FunctionCall,
    Invocation,
    InvocationEvent,
    InvocationEvents,
    Json,
    Part,
)
from ci_eval.records.errors import TrialError
from ci_eval.records.trials import Trial


class ModelSession(Session):
    """One conversation with a model, whose tools return canned results."""

    def __init__(
        self, agent: Prompted, model: str, template: str, trial: Trial, memento: Json
    ) -> None:
        given = trial.case.session_input
        self._state = given.state if given else {}
        self._max_calls = agent.max_calls
        self._model = model
        self.instruction = filled_in(template, self._state)
        """The system instruction."""
        self._details = _details(agent, self.instruction)
        self._tools = CannedTools(agent.results, trial)
        self.said = [Content.model_validate(each) for each in (memento or {}).get("said", ())]
        """All messages so far."""
        for content in self.said:
            self._tools.recall(calls_of(content))

    @abstractmethod
    async def ask(self) -> ModelResponse:
        """Return the model's response to all messages in `said`; each call has a unique id.

        Raises:
            TrialError: there is none; `seen` is the beginning of an incomplete one.

        """

    @property
    def memento(self) -> Json:
        return {"said": [each.model_dump(mode="json", exclude_none=True) for each in self.said]}

    async def send(self, message: Content) -> Invocation:
        turn = _Turn(message, self._details, self._model)
        self.said.append(message)
        try:
            return await self._work(turn)
        except TrialError as exc:
            exc.seen = turn.seen()
            raise

    async def close(self) -> dict[str, Json] | None:
        return self._state

    async def _work(self, turn: "_Turn") -> Invocation:
        for _ in range(self._max_calls):
            response = await self._answer(turn)
            calls = calls_of(response.content)
            if not calls:
                return turn.ended(response)
            self.said.append(self._results(calls, turn))
        message = (
            f"the model still calls tools after {self._max_calls} requests in one invocation; "
            "raise `max_calls` of the agent"
        )
        raise TrialError("raised", message)

    async def _answer(self, turn: "_Turn") -> ModelResponse:
        started = time.perf_counter()
        try:
            response = await self.ask()
        except TrialError as exc:
            if exc.seen:  # an incomplete response costs tokens, too
                turn.add(exc.seen)
            raise
        finally:
            turn.model_s += time.perf_counter() - started
        if content := turn.add(response):
            self.said.append(content)
        return response

    def _results(self, calls: Iterable[FunctionCall], turn: "_Turn") -> Content:
        parts = tuple(Part(function_response=self._tools.answer(call)) for call in calls)
        content = Content(role=USER, parts=parts)
        turn.events.append(InvocationEvent(author=AGENT, content=content))
        return content


def _details(agent: Prompted, instruction: str) -> AppDetails:
    """Return the model's instruction and tools."""
    declared = [tool.declared() for tool in agent.tools]
    tools = ({"function_declarations": declared},) if declared else ()
    found = AgentDetails(name=AGENT, instructions=instruction, tool_declarations=tools)
    return AppDetails(agent_details={AGENT: found})


def fresh_ids(prefix: str, said: Iterable[Content]) -> Iterator[str]:
    """Yield ids that no call in `said` has."""
    taken = {call.id for each in said for call in calls_of(each)}
    return (made for number in count(1) if (made := f"{prefix}{number}") not in taken)


# --- One invocation ---------------------------------------------------------------------------


@dataclass
class _Turn:
    """The invocation in progress."""

    message: Content
    details: AppDetails
    model: str
    events: list[InvocationEvent] = field(default_factory=list)
    model_s: float = 0.0
    costs: list[float | None] = field(default_factory=list)
    started: float = field(default_factory=time.perf_counter)

    def add(self, response: ModelResponse) -> Content | None:
        """Add a response of the model, and return its content; `None` if it is empty."""
        content = response.content if response.content and response.content.parts else None
        event = InvocationEvent(
            author=AGENT,
            content=content,
            usage_metadata=response.usage_metadata,
            model_version=response.model_version,
            system_fingerprint=response.system_fingerprint,
            grounding_metadata=response.grounding_metadata,
            finish_reason=response.finish_reason,
        )
        self.events.append(event)
        models = filter(None, (self.model, response.model_version))
        self.costs.append(_cost(models, response.usage_metadata))
        return content

    def ended(self, response: ModelResponse) -> Invocation:
        """Return the invocation, which ends with `response`.

        Raises:
            TrialError: the response is empty.

        """
        final = self.events[-1].content
        if final is None and response.finish_reason != "STOP":
            raise TrialError("raised", f"the model gave no response: {response.reason}")
        # Its token usage still counts.
        self.events[-1] = self.events[-1].model_copy(update={"content": None})
        return self.seen(final).model_copy(update={"finish_reason": self.events[-1].finish_reason})

    def seen(self, final: Content | None = None) -> Invocation:
        """Return the invocation so far."""
        costs = [cost for cost in self.costs if cost is not None]
        known = len(costs) == len(self.costs) > 0
        return Invocation(
            user_content=self.message,
            final_response=final,
            intermediate_data=InvocationEvents(invocation_events=tuple(self.events)),
            app_details=self.details,
            duration=time.perf_counter() - self.started,
            model_duration=self.model_s,
            tool_duration=0.0,
            cost_usd=sum(costs) if known else None,
        )


def _cost(models: Iterable[str], usage: Mapping[str, Json] | None) -> float | None:
    """Return the cost of a response, at the price of the first of `models` that has one.

    It is `None` if the price or the input tokens are unknown.
    """
    price = next((found for each in models if (found := price_of(each, {}))), None)
    if price is None or usage is None or usage.get("prompt_token_count") is None:
        return None

    def tokens(*names: str) -> int:
        found = (usage.get(name) for name in names)
        return sum(each for each in found if isinstance(each, int))

    read = tokens("prompt_token_count", "tool_use_prompt_token_count")
    return price.of(read, tokens("candidates_token_count", "thoughts_token_count"))
