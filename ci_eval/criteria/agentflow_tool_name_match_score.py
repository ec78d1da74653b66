"""AgentFlow's tool names: which tools were called, in whatever order and however often."""

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

from ci_eval.criteria._agentflow import OfToolCalls
from ci_eval.plugins.points import criterion
from ci_eval.records.model import ToolCall


@criterion("agentflow/tool_name_match_score")
class ToolNameMatch(OfToolCalls):
    """How far the tools that a case calls are those that are expected: no others, none missing.

    The value is the number of tools that are both expected and called by the number of those
    that are either; 1 where there are none at all.  Order, arguments and repetitions do not
    count.  Observed semantics: the share of expected calls whose name is called as often, which
    no other call lowers; where no call is expected, 1 without calls and 0.5 with some.
    """

    aliases: ClassVar[tuple[str, ...]] = ("tool_name_match",)

    def compare(self, expected: Sequence[ToolCall], actual: Sequence[ToolCall]) -> float:
        """Compare the names."""
        wanted = Counter(call.name for call in expected)
        done = Counter(call.name for call in actual)
        if self.semantics == "documented":
            either = wanted.keys() | done.keys()
            return len(wanted.keys() & done.keys()) / len(either) if either else 1.0
        if not wanted:
            return 0.5 if done else 1.0
        return (wanted & done).total() / wanted.total()
