"""Resource use of a conversation: seconds, tokens, dollars, tool calls."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field

from ci_eval.criteria._token_usage import tokens_of
from ci_eval.criteria._tool_trajectory import NO_INVOCATION, NOT_CAPTURED, is_captured
from ci_eval.plugins.points import Criterion, criterion
from ci_eval.records.bounds import Value
from ci_eval.records.cases import EvalCase, Invocation, Status
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace
from ci_eval.text.templates import counted


class Consumption(Criterion):
    """A resource that a conversation uses; lower is better.

    Without a threshold, it is only shown and compared.
    """

    interval = None
    better = "lower"
    takes_threshold = "optionally"
    unreported: ClassVar[str]
    """The reason for a missing score, if an invocation does not report its usage."""

    threshold: Value | None = Field(default=None, ge=0)
    """Maximum for a case to pass; without it, the value is only shown and compared."""

    def score(self, case: EvalCase, trace: Trace) -> Score:
        """Return the sum over the invocations, if all of them report their usage."""
        del case
        if not trace.invocations:
            return self.scored(None, reason=NO_INVOCATION)
        taken = self.measure(trace)
        known = [each for each in taken if each is not None]
        if len(known) < len(taken):
            status = Status.SKIPPED if self.informational else Status.ERROR
            return self.unscored(status, self.why_unknown(trace))
        # Removes floating-point noise: 0.1 + 0.2 is 0.3.
        total = round(float(sum(known)), 9)
        return self.scored(total, evidence={"by_invocation": known} if len(known) > 1 else None)

    def why_unknown(self, trace: Trace) -> str:
        """Return why the usage of an invocation is unknown."""
        del trace
        return self.unreported

    @abstractmethod
    def measure(self, trace: Trace) -> Sequence[float | None]:
        """Return the usage of each invocation; `None` if it is not reported."""


@criterion("ci/latency_s")
class Latency(Consumption):
    """Seconds from the user's messages to the responses, added up over the conversation.

    Excludes the start of an agent's process. If the time of an invocation is unknown, as in many
    recordings, the score is skipped, or an error if there is a threshold.
    """

    unreported = "the trace has no duration for each invocation"

    def measure(self, trace: Trace) -> Sequence[float | None]:
        """Return the seconds of each invocation."""
        return [each.duration for each in trace.invocations]


@criterion("ci/cost_usd")
class Cost(Consumption):
    """Cost of the models over the conversation, in US dollars.

    With `models:`, the gateway counts tokens (in `replay`, the recorded ones) and applies list
    prices. Otherwise it is the cost that the agent reports. If the cost of an invocation is
    unknown, the score is skipped, or an error if there is a threshold.
    """

    unreported = "the agent does not report the cost of each invocation"

    def measure(self, trace: Trace) -> Sequence[float | None]:
        """Return the dollars of each invocation."""
        return [self._cost(each) for each in trace.invocations]

    def why_unknown(self, trace: Trace) -> str:
        """Return why the cost of an invocation is unknown."""
        if why := _without_tokens(trace):
            return why
        metered = [each.metered for each in trace.invocations if each.metered]
        models = dict.fromkeys(name for usage in metered if usage.unpriced for name in usage.models)
        if not any(usage.unpriced for usage in metered):
            return self.unreported
        names = f": {', '.join(map(repr, models))}" if models else ""
        return f"model calls without a known price{names}; set `models.prices`"

    def _cost(self, invocation: Invocation) -> float | None:
        if (usage := invocation.metered) is None:
            return invocation.cost_usd
        return None if usage.unpriced else usage.cost_usd


def _without_tokens(trace: Trace) -> str:
    """Return how many metered calls state no tokens, in words; empty if all do."""
    calls = sum(each.metered.uncounted for each in trace.invocations if each.metered)
    return f"the provider states no tokens for {counted(calls, 'model call')}" if calls else ""


@criterion("ci/tokens")
class Tokens(Consumption):
    """Tokens that models read and wrote over the conversation.

    With `models:`, the gateway counts them; otherwise they are the tokens that the agent reports.
    Input tokens are prompts and the results of built-in tools, cached or not; output tokens are
    answers and thoughts. If the tokens of an invocation are unknown, the score is skipped, or an
    error if there is a threshold.
    """

    unreported = "the agent does not report the tokens of each invocation"

    count: Literal["total", "input", "output"] = "total"
    """Tokens to count: input, output, or both."""

    def measure(self, trace: Trace) -> Sequence[float | None]:
        """Return the tokens of each invocation."""
        return [self._counted(each) for each in trace.invocations]

    def why_unknown(self, trace: Trace) -> str:
        """Return why the tokens of an invocation are unknown."""
        return _without_tokens(trace) or self.unreported

    def _counted(self, invocation: Invocation) -> float | None:
        kinds = {"input", "output"} if self.count == "total" else {self.count}
        counts = tokens_of(invocation)
        return sum(counts[kind] for kind in kinds) if kinds <= counts.keys() else None


@criterion("ci/model_calls")
class ModelCalls(Consumption):
    """Number of model calls over the conversation, which the gateway counts.

    Without `models:` in the agent's configuration, the score is skipped, or an error if there is a
    threshold.
    """

    unreported = "the agent's model calls do not go through the gateway; set its `models`"

    def measure(self, trace: Trace) -> Sequence[float | None]:
        """Return the number of calls of each invocation."""
        metered = [each.metered for each in trace.invocations]
        return [None if usage is None else usage.calls for usage in metered]


@criterion("ci/tool_calls")
class ToolCalls(Consumption):
    """Number of tool calls over the conversation.

    A trace without a record of tool calls is skipped, or an error if there is a threshold.
    """

    reads_tool_calls = True
    unreported = NOT_CAPTURED

    def measure(self, trace: Trace) -> Sequence[float | None]:
        """Return the number of calls of each invocation."""
        if not is_captured(trace):
            return [None]
        return [len(each.tool_calls) for each in trace.invocations]
