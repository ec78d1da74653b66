"""AgentFlow's tool trajectory: the tool calls of a case compared with the expected ones."""

from collections.abc import Hashable, Sequence
from typing import ClassVar

from ci_eval.criteria._agentflow import OfToolCalls
from ci_eval.criteria._agentflow_observed import observed_share
from ci_eval.criteria._sequences import MatchType, as_key, matches, share
from ci_eval.plugins.points import criterion
from ci_eval.records.model import ToolCall


@criterion("agentflow/tool_trajectory_avg_score")
class ToolTrajectory(OfToolCalls):
    """Whether the tool calls of a case match the expected ones: 1 or 0, or the matching share.

    The calls of all invocations are one sequence; despite the name, nothing is averaged.
    Observed semantics: always a share of the expected calls.  `EXACT` compares position by
    position, and calls after the last expected one cost nothing; `IN_ORDER` ends at the first
    missing call; an expected call without arguments matches any.
    """

    aliases: ClassVar[tuple[str, ...]] = ("trajectory", "trajectory_match")

    match_type: MatchType = "EXACT"
    """`EXACT`: the same calls in the same order and no others. `IN_ORDER`: the expected calls in
    order, with others in between. `ANY_ORDER`: the expected calls, in any order, among others."""
    check_args: bool = False
    """Also compare the arguments: they must be equal as in Python, with none missing or
    added."""
    partial: bool = False
    """Score the matching share instead of 1 or 0: in order, the longest common subsequence divided
    by the number of expected calls (under `EXACT`, by the longer of both); in any order, the calls
    in common."""

    def compare(self, expected: Sequence[ToolCall], actual: Sequence[ToolCall]) -> float:
        """Compare the calls."""
        if self.semantics == "observed":
            return self._observed(expected, actual)
        wanted, done = list(map(self._key, expected)), list(map(self._key, actual))
        if self.partial:
            return share(wanted, done, self.match_type)
        return float(matches(wanted, done, self.match_type))

    def _key(self, call: ToolCall) -> Hashable:
        # AgentFlow does not distinguish missing from empty arguments.
        return (call.name, as_key(call.args or {})) if self.check_args else call.name

    def _observed(self, expected: Sequence[ToolCall], actual: Sequence[ToolCall]) -> float:
        if not expected:
            return float(self.match_type != "EXACT" or not actual)
        wanted = [self._key(call) if call.args else call.name for call in expected]
        done = [(call.name, self._key(call)) for call in actual]
        return observed_share(wanted, done, self.match_type)
