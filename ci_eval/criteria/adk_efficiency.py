"""ADK's four efficiency metrics: measured, shown, compared, never judged."""

from abc import abstractmethod
from typing import ClassVar, Literal

from ci_eval.criteria._turns import Turn, averaged, observed
from ci_eval.criteria._usage import tokens_of
from ci_eval.plugins.points import Criterion, criterion
from ci_eval.records.model import EvalCase, Invocation, InvocationEvent, Json
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace


class Efficiency(Criterion):
    """A measure without a threshold, as ADK 2.13.0 takes it; less is better."""

    interval: ClassVar[tuple[float, float] | None] = None
    better: ClassVar = "lower"
    takes_threshold: ClassVar[Literal["always", "optionally", "never"]] = "never"
    absent_in: ClassVar[frozenset[str]] = frozenset({"adk@2.3"})

    def score(self, case: EvalCase, trace: Trace) -> Score:
        """Return the mean over the invocations that can be measured."""
        del case
        return observed(self, trace, self.measure)

    @abstractmethod
    def measure(self, invocation: Invocation) -> Turn:
        """Measure one invocation."""


@criterion("adk/tool_call_count_v1")
class ToolCallCount(Efficiency):
    """Tool calls in an invocation: the mean over the invocations."""

    reads_tool_calls: ClassVar[bool] = True

    def measure(self, invocation: Invocation) -> Turn:
        """Count the tool calls."""
        return Turn(float(len(invocation.tool_calls)))


@criterion("adk/inference_call_count_v1")
class InferenceCallCount(Efficiency):
    """Calls of a model in an invocation: the mean over the invocations.

    Counted are events with token usage or a model version; without events there is
    nothing to count.
    """

    def measure(self, invocation: Invocation) -> Turn:
        """Count the events that a model made."""
        if invocation.events is None:
            return Turn(None)
        return Turn(float(sum(map(_by_model, invocation.events))))


@criterion("adk/token_usage_v1")
class TokenUsage(Efficiency):
    """Input and output tokens of an invocation; the sum over the invocations by their number.

    The parts (cached, reasoning, …) are in the evidence of each invocation.
    """

    def score(self, case: EvalCase, trace: Trace) -> Score:
        """Return all tokens by the number of all invocations, as ADK divides."""
        del case
        turns = [self.measure(invocation) for invocation in trace.invocations]
        score = averaged(self, turns)
        if score.value is None:
            return score
        total = sum(turn.value for turn in turns if turn.value is not None)
        return score.model_copy(update={"value": total / len(turns)})

    def measure(self, invocation: Invocation) -> Turn:
        """Add up what the events report."""
        tokens: dict[str, Json] = {**tokens_of(invocation)}
        if not {"input", "output"} & tokens.keys():
            return Turn(None, tokens or None)
        return Turn(float(tokens.get("input", 0) + tokens.get("output", 0)), tokens)


@criterion("adk/invocation_duration_v1")
class InvocationDuration(Efficiency):
    """Seconds from the user's message to the final response: the mean over the timed ones.

    The seconds of models, tools and the framework between them are in the evidence.
    """

    def score(self, case: EvalCase, trace: Trace) -> Score:
        """Return the mean, to the millisecond as ADK has it."""
        found = super().score(case, trace)
        return found.model_copy(update={"value": found.value and round(found.value, 3)})

    def measure(self, invocation: Invocation) -> Turn:
        """Return the seconds and where they went."""
        total = invocation.duration
        if total is None:
            return Turn(None)
        model, tool = invocation.model_duration, invocation.tool_duration
        rest = None
        if model is not None and tool is not None:
            rest = round(max(total - model - tool, 0.0), 3)
        return Turn(total, {"model_s": model, "tool_s": tool, "framework_s": rest})


def _by_model(event: InvocationEvent) -> bool:
    return event.usage_metadata is not None or event.model_version is not None
