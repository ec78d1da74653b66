"""ADK's four efficiency metrics: measured, shown and compared, but without a threshold."""

from abc import abstractmethod

from ci_eval.criteria._invocation_turns import Turn, averaged, observed
from ci_eval.criteria._token_usage import tokens_of
from ci_eval.formats.event_lists import is_model_call
from ci_eval.plugins.points import Criterion, criterion
from ci_eval.records.cases import EvalCase, Invocation, Json
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace


class Efficiency(Criterion):
    """A measure without a threshold, as in ADK 2.13.0; lower is better."""

    interval = None
    better = "lower"
    takes_threshold = "never"
    absent_in = frozenset({"adk@2.3"})

    def score(self, case: EvalCase, trace: Trace) -> Score:
        """Return the mean over the invocations that can be measured."""
        del case
        return observed(self, trace, self.measure)

    @abstractmethod
    def measure(self, invocation: Invocation) -> Turn:
        """Measure one invocation."""


@criterion("adk/tool_call_count_v1")
class ToolCallCount(Efficiency):
    """Mean number of tool calls per invocation."""

    reads_tool_calls = True

    def measure(self, invocation: Invocation) -> Turn:
        """Count the tool calls."""
        return Turn(float(len(invocation.tool_calls)))


@criterion("adk/inference_call_count_v1")
class InferenceCallCount(Efficiency):
    """Mean number of model calls per invocation.

    Counts events with token usage or a model version; invocations without events are skipped.
    """

    def measure(self, invocation: Invocation) -> Turn:
        """Count the events that come from a model."""
        if invocation.events is None:
            return Turn(None)
        return Turn(float(sum(map(is_model_call, invocation.events))))


@criterion("adk/token_usage_v1")
class TokenUsage(Efficiency):
    """Mean number of input and output tokens per invocation.

    The evidence of each invocation lists the kinds of tokens (cached, reasoning, …).
    """

    def score(self, case: EvalCase, trace: Trace) -> Score:
        """Return the total divided by the number of all invocations, as ADK does."""
        del case
        turns = [self.measure(invocation) for invocation in trace.invocations]
        score = averaged(self, turns)
        if score.value is None:
            return score
        total = sum(turn.value for turn in turns if turn.value is not None)
        return score.model_copy(update={"value": total / len(turns)})

    def measure(self, invocation: Invocation) -> Turn:
        """Add up the token counts of the events."""
        tokens: dict[str, Json] = {**tokens_of(invocation)}
        if not {"input", "output"} & tokens.keys():
            return Turn(None, tokens or None)
        return Turn(float(tokens.get("input", 0) + tokens.get("output", 0)), tokens)


@criterion("adk/invocation_duration_v1")
class InvocationDuration(Efficiency):
    """Mean seconds from the user's message to the final response, over the timed invocations.

    The evidence splits them into model, tool and framework time.
    """

    def score(self, case: EvalCase, trace: Trace) -> Score:
        """Return the mean, rounded to milliseconds as in ADK."""
        found = super().score(case, trace)
        return found.model_copy(update={"value": found.value and round(found.value, 3)})

    def measure(self, invocation: Invocation) -> Turn:
        """Return the seconds, with a breakdown."""
        total = invocation.duration
        if total is None:
            return Turn(None)
        model, tool = invocation.model_duration, invocation.tool_duration
        rest = None
        if model is not None and tool is not None:
            rest = round(max(total - model - tool, 0.0), 3)
        return Turn(total, {"model_s": model, "tool_s": tool, "framework_s": rest})
