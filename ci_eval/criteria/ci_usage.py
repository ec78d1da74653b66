"""What a conversation took: seconds, tokens, dollars, tool calls."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field

from ci_eval.criteria._trajectory import NO_INVOCATION, NOT_CAPTURED, is_captured
from ci_eval.criteria._usage import tokens_of
from ci_eval.plugins.points import Criterion, criterion
from ci_eval.records.bounds import Value
from ci_eval.records.model import EvalCase, Invocation, Json, Status
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace


class Consumption(Criterion):
    """Something that a conversation takes, of which less is better.

    Without a threshold it is shown and compared, and never judged.
    """

    interval: ClassVar[tuple[float, float] | None] = None
    better: ClassVar = "lower"
    takes_threshold: ClassVar[Literal["always", "optionally", "never"]] = "optionally"
    unreported: ClassVar[str]
    """Why there is nothing to add up, where an invocation does not say what it took."""

    threshold: Value | None = Field(default=None, ge=0)
    """The most that a case may take; left out, it is only shown and compared."""

    def score(self, case: EvalCase, trace: Trace) -> Score:
        """Return the sum over the invocations, where all of them report their part."""
        del case
        if not trace.invocations:
            return self.scored(None, reason=NO_INVOCATION)
        taken = self.measure(trace)
        known = [each for each in taken if each is not None]
        if len(known) < len(taken):
            status = Status.SKIPPED if self.informational else Status.ERROR
            return self.unscored(status, self.unreported)
        parts: list[Json] = [*known]
        evidence: dict[str, Json] = {"by_invocation": parts}
        # So that ten cents and twenty are thirty, and no more.
        total = round(float(sum(known)), 9)
        return self.scored(total, evidence=evidence if len(known) > 1 else None)

    @abstractmethod
    def measure(self, trace: Trace) -> Sequence[float | None]:
        """Return what each invocation took; `None` where it does not say."""


@criterion("ci/latency_s")
class Latency(Consumption):
    """The seconds from the user's messages to the responses, added up over the conversation.

    The start of an agent's process is not part of it. Where the time of an invocation is not
    known, as in many recordings, the score is skipped, and an error if there is a threshold.
    """

    unreported: ClassVar[str] = "the trace does not say how long each invocation took"

    def measure(self, trace: Trace) -> Sequence[float | None]:
        """Return the seconds of each invocation."""
        return [each.duration for each in trace.invocations]


@criterion("ci/cost_usd")
class Cost(Consumption):
    """What the models cost over the conversation, in US dollars, as the agent reports it.

    Nothing is derived from tokens and price lists. Where an invocation reports no cost, the
    score is skipped, and an error if there is a threshold.
    """

    unreported: ClassVar[str] = "the agent does not report the cost of each invocation"

    def measure(self, trace: Trace) -> Sequence[float | None]:
        """Return the dollars of each invocation."""
        return [each.cost_usd for each in trace.invocations]


@criterion("ci/tokens")
class Tokens(Consumption):
    """The tokens that models read and wrote over the conversation, as the agent reports them.

    Read are prompts and the results of built-in tools, from a cache or not; written are answers
    and thoughts. Where an invocation does not report what is counted, the score is skipped, and
    an error if there is a threshold.
    """

    unreported: ClassVar[str] = "the agent does not report the tokens of each invocation"

    count: Literal["total", "input", "output"] = "total"
    """What is counted: what was read, what was written, or both."""

    def measure(self, trace: Trace) -> Sequence[float | None]:
        """Return the tokens of each invocation."""
        return [self._counted(each) for each in trace.invocations]

    def _counted(self, invocation: Invocation) -> float | None:
        kinds = {"input", "output"} if self.count == "total" else {self.count}
        counts = tokens_of(invocation)
        return sum(counts[kind] for kind in kinds) if kinds <= counts.keys() else None


@criterion("ci/tool_calls")
class ToolCalls(Consumption):
    """How many tool calls were made over the conversation.

    A trace that does not tell of tools is skipped, and an error if there is a threshold.
    """

    reads_tool_calls: ClassVar[bool] = True
    unreported: ClassVar[str] = NOT_CAPTURED

    def measure(self, trace: Trace) -> Sequence[float | None]:
        """Return the number of calls of each invocation."""
        if not is_captured(trace):
            return [None]
        return [len(each.tool_calls) for each in trace.invocations]
