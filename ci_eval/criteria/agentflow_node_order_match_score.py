"""AgentFlow's node order: the visited nodes of a graph compared with the expected ones."""

from collections.abc import Iterator, Sequence
from typing import ClassVar, Final

from ci_eval.criteria._agentflow import Sequenced
from ci_eval.criteria._agentflow_observed import observed_share
from ci_eval.criteria._sequences import MatchType, matches, share
from ci_eval.plugins.points import criterion
from ci_eval.records.model import EvalCase, Invocation, Json
from ci_eval.records.stated_expectations import UNSTATED, Expectation

_START: Final = "__start__"
_END: Final = "__end__"
_ENDS: Final = frozenset({_END, "END"})


@criterion("agentflow/node_order_match_score")
class NodeOrderMatch(Sequenced):
    """Whether a case visits the expected nodes of a graph: 1 or 0, or the share.

    The nodes of all invocations are one sequence.  The start and end of a graph are compared only
    if they are expected: `__start__`, and `END`, which is the same as `__end__`.  A case that
    expects no nodes is skipped.  Observed semantics: a share of the expected nodes as for the
    tool trajectory, with all names unchanged.
    """

    aliases: ClassVar[tuple[str, ...]] = ("node_order", "node_order_score")
    compares: ClassVar[Expectation | None] = "nodes"
    unseen: ClassVar[str] = "the nodes that it visited (as `nodes` in each answer)"

    match_type: MatchType = "EXACT"
    """`EXACT`: the same nodes in the same order and no others. `IN_ORDER`: the expected nodes in
    order, with others in between. `ANY_ORDER`: the expected nodes, in any order, among others."""
    partial: bool = False
    """Score the matching share instead of 1 or 0: in order, the longest common subsequence divided
    by the number of expected nodes (under `EXACT`, by the longer of both); in any order, the nodes
    in common."""

    def lacks(self, case: EvalCase) -> str:
        """Return a message if no nodes are expected; empty otherwise."""
        expected = any(turn.nodes for turn in case.conversation or ())
        return super().lacks(case) or ("" if expected else UNSTATED["nodes"])

    def done(self, invocation: Invocation) -> Sequence[str] | None:
        """Return the visited nodes."""
        return invocation.nodes

    def compare(self, expected: Sequence[str], actual: Sequence[str]) -> float:
        """Compare the visits."""
        if self.semantics == "observed":
            if not expected:
                return 1.0
            return observed_share(expected, [(name,) for name in actual], self.match_type)
        wanted = [_END if name in _ENDS else name for name in expected]
        done = list(_without_ends(actual, but={_START, _END} & set(wanted)))
        if self.partial:
            return share(wanted, done, self.match_type)
        return float(matches(wanted, done, self.match_type))

    def shown(self, expected: Sequence[str], actual: Sequence[str]) -> dict[str, Json]:
        """Return both lists of nodes."""
        return {"expected_nodes": list(expected), "actual_nodes": list(actual)}


def _without_ends(nodes: Sequence[str], *, but: set[str]) -> Iterator[str]:
    """Yield the nodes without the start and end of graphs, except those in `but`."""
    for each in nodes:
        name = _END if each in _ENDS else each
        if name not in (_START, _END) or name in but:
            yield name
