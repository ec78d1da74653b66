"""One invocation of an agent that is a model, as it comes about answer by answer."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from ci_eval.errors import TrialError
from ci_eval.prices import price_of
from ci_eval.records import (
    AppDetails,
    Content,
    FunctionCall,
    Invocation,
    InvocationEvent,
    InvocationEvents,
    Json,
)
from ci_eval.streaming import ModelResponse
from ci_eval.templating import one_line

NAME = "agent"
"""What the agent is called in events."""


def too_many_calls(most: int, seen: Invocation) -> TrialError:
    """Return the error of a model that goes on calling tools."""
    message = f"the model was asked {most} times in one invocation, and had still calls to make"
    return TrialError("raised", f"{message}; raise `max_calls` of the agent", seen=seen)


@dataclass
class Turn:
    """What becomes an invocation."""

    message: Content
    details: AppDetails
    model: str
    events: list[InvocationEvent] = field(default_factory=list)
    model_s: float = 0.0
    costs: list[float | None] = field(default_factory=list)
    started: float = field(default_factory=time.perf_counter)

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Take the time in which the model is asked."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self.model_s += time.perf_counter() - started

    def take(self, response: ModelResponse) -> Content | None:
        """Add an answer of the model, and return what it says; `None` where that is nothing."""
        content = response.content if response.content and response.content.parts else None
        self.events.append(
            InvocationEvent(
                author=NAME,
                content=content,
                usage_metadata=response.usage_metadata,
                model_version=response.model_version,
                grounding_metadata=response.grounding_metadata,
            )
        )
        self.costs.append(_cost(self.model, response.usage_metadata))
        return content

    def ended(self, response: ModelResponse) -> Invocation:
        """Return the invocation, of which `response` is the last answer.

        Raises:
            TrialError: it says nothing, and why.

        """
        final = self.events[-1].content
        if final is None and response.finish_reason != "STOP":
            said = response.error_code or "it gave no reason", response.error_message
            reason = ": ".join(filter(None, said))
            message = f"the model gave no response: {one_line(reason, 500)}"
            raise TrialError("raised", message, seen=self.seen())
        # What the model used for it still counts.
        self.events[-1] = self.events[-1].model_copy(update={"content": None})
        return self.seen(final)

    def seen(self, final: Content | None = None) -> Invocation:
        """Return what there was up to now."""
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


def _cost(model: str, usage: Mapping[str, Json] | None) -> float | None:
    """Return what an answer cost; `None` where the price or the tokens are not known."""
    price = price_of(model, {})
    if price is None or usage is None:
        return None

    def tokens(*names: str) -> int:
        found = (usage.get(name) for name in names)
        return sum(each for each in found if isinstance(each, int))

    read = tokens("prompt_token_count", "tool_use_prompt_token_count")
    return price.of(read, tokens("candidates_token_count", "thoughts_token_count"))


def calls_of(content: Content | None) -> tuple[FunctionCall, ...]:
    """Return the calls in a message."""
    parts = (content.parts if content else None) or ()
    return tuple(part.function_call for part in parts if part.function_call)
