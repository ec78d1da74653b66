"""AgentFlow's tool names: the set of tools called, whatever the order and frequency."""

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

from ci_eval.criteria._agentflow import OfToolCalls
from ci_eval.plugins.points import criterion
from ci_eval.records.model import ToolCall


@criterion("agentflow/tool_name_match_score")
class ToolNameMatch(OfToolCalls):
    """How well the tools that a case calls match the expected ones.

    The value is the number of tools that are both expected and called, divided by the number of
    those that are either; 1 if there are none at all.  Order, arguments and repetitions do not
    matter.  Observed semantics: the share of expected calls whose name is called as often,
    whatever the other calls; if no call is expected, 1 without calls and 0.5 with some.
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
