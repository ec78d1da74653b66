"""AgentFlow's measures of the tool calls and visited nodes of a case, each as one sequence."""

import itertools
from abc import abstractmethod
from collections import Counter, defaultdict, deque
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, ClassVar, Final

from ci_eval.criteria._agentflow_criterion import AgentFlowCriterion
from ci_eval.criteria._invocation_turns import pairs
from ci_eval.criteria._sequence_scores import MatchType, as_key, matches, share
from ci_eval.plugins.points import criterion
from ci_eval.records.cases import EvalCase, Invocation, Json, Status, ToolCall
from ci_eval.records.results import InvocationScore, Score
from ci_eval.records.stated_expectations import UNSTATED
from ci_eval.records.trials import Trace

_START: Final = "__start__"
_END: Final = "__end__"
_ENDS: Final = frozenset({_END, "END"})


class Sequenced(AgentFlowCriterion):
    """A measure of a whole case, with the steps of all its turns in one sequence.

    The value is computed over all invocations that state an expectation, joined into one sequence.
    The others are skipped; with observed semantics, their steps count, as in the package, if any
    invocation states an expectation.  The values of single invocations are shown, but not averaged.
    """

    needs_reference = True
    supports_scenario = False
    unseen: ClassVar[str]
    """The name of the steps for the error if the agent did not report them, with a hint."""
    may_be_left_out: ClassVar[bool] = False
    """Whether a reporting agent may omit turns without such a step."""

    def score(self, case: EvalCase, trace: Trace) -> Score:
        """Score all invocations as one sequence, and each by itself."""
        every = list(pairs(case, trace))
        stated = [self.measures(case, expected) for expected, _ in every]
        if not any(stated):
            return self.scored(None, reason=self.unstated(case) or "has no invocation")
        sides = [(self.done(expected), self.done(actual)) for expected, actual in every]
        counted = sides if self.semantics == "observed" else [*itertools.compress(sides, stated)]
        unseen = [actual is None for _, actual in counted]
        if all(unseen) or (any(unseen) and not self.may_be_left_out):
            return self.unscored(Status.ERROR, f"the agent did not report {self.unseen}")
        wanted = [item for expected, _ in counted for item in expected or ()]
        done = [item for _, actual in counted for item in actual or ()]
        parts = [
            self._part(self.compare(expected or (), actual or ()) if is_stated else None)
            for (expected, actual), is_stated in zip(sides, stated, strict=True)
        ]
        return self.scored(self.compare(wanted, done), parts, evidence=self.shown(wanted, done))

    def _part(self, value: float | None) -> InvocationScore:
        return InvocationScore(status=self.status_of(value), value=value)

    @abstractmethod
    def done(self, invocation: Invocation) -> Sequence[Any] | None:
        """Return the steps of `invocation`; `None` if the agent did not report any."""

    @abstractmethod
    def compare(self, expected: Sequence[Any], actual: Sequence[Any]) -> float:
        """Return how well `actual` matches `expected`, from 0.0 to 1.0."""

    @abstractmethod
    def shown(self, expected: Sequence[Any], actual: Sequence[Any]) -> dict[str, Json]:
        """Return the evidence for a score."""


class OfToolCalls(Sequenced):
    """A measure of the tool calls of a case."""

    reads_tool_calls = True
    compares = "tool_calls"
    unseen = "its tool calls (an empty list means that it made none)"
    may_be_left_out = True

    def done(self, invocation: Invocation) -> Sequence[ToolCall] | None:
        """Return the tool calls."""
        return None if invocation.intermediate_data is None else invocation.tool_calls

    def shown(self, expected: Sequence[ToolCall], actual: Sequence[ToolCall]) -> dict[str, Json]:
        """Return both lists of calls."""
        return {
            "expected_tool_calls": [{"name": each.name, "args": each.args} for each in expected],
            "actual_tool_calls": [{"name": each.name, "args": each.args} for each in actual],
        }


@criterion("agentflow/tool_trajectory_avg_score")
class ToolTrajectory(OfToolCalls):
    """Whether the tool calls of a case match the expected ones: 1 or 0, or the matching share.

    The calls of all invocations are one sequence; despite the name, nothing is averaged.
    Invocations that do not state the expected calls are left out.
    Observed semantics: always a share of the expected calls.  `EXACT` compares position by
    position, and calls after the last expected one cost nothing; `IN_ORDER` ends at the first
    missing call; an expected call without arguments matches any.  If any invocation of a case
    states the expected calls, the calls of all of them are compared.
    """

    aliases = ("trajectory", "trajectory_match")

    match_type: MatchType = "EXACT"
    """`EXACT`: the same calls in the same order and no others. `IN_ORDER`: the expected calls in
    order, with others in between. `ANY_ORDER`: the expected calls, in any order, among others."""
    check_args: bool = False
    """Also compare the arguments: they must be equal as in Python, with none missing or added."""
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
        return _observed_share(wanted, done, self.match_type)


@criterion("agentflow/tool_name_match_score")
class ToolNameMatch(OfToolCalls):
    """How well the tools that a case calls match the expected ones.

    The value is the number of tools that are both expected and called, divided by the number of
    tools that are one or the other; 1 if there are none.  Order, arguments and repetitions do not
    matter.  Invocations that do not state the expected calls are left out.  Observed semantics:
    the share of expected calls that can be paired with a call of the same name; if no call is
    expected, 1 without calls and 0.5 with some.  If any invocation of a case states the expected
    calls, the calls of all of them are compared.
    """

    aliases = ("tool_name_match",)

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


@criterion("agentflow/node_order_match_score")
class NodeOrderMatch(Sequenced):
    """Whether a case visits the expected nodes of a graph: 1 or 0, or the share.

    The nodes of all invocations are one sequence.  The start and end of a graph are compared only
    if they are expected: `__start__`, and `END`, which is the same as `__end__`.  A case that
    expects no nodes is skipped.  Observed semantics: a share of the expected nodes, computed as in
    the tool trajectory criterion, with all names unchanged.
    """

    aliases = ("node_order", "node_order_score")
    compares = "nodes"
    unseen = "the nodes that it visited (as `nodes` in each answer)"

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
            return _observed_share(expected, [(name,) for name in actual], self.match_type)
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


# --- The formulas of 10xscale-agentflow 0.10.1 -------------------------------------------------
#
# Each is a share of the expected elements, so unexpected ones mostly have no effect; matches are
# found greedily from the front.

Answers = Sequence[Hashable]
"""All expected values that one observed element matches."""


def _observed_share(
    expected: Sequence[Hashable], actual: Sequence[Answers], kind: MatchType
) -> float:
    """Return the matched share of `expected`, which is not empty."""
    match kind:
        case "EXACT":
            found = sum(item in each for item, each in zip(expected, actual, strict=False))
        case "IN_ORDER":
            found = _prefix(expected, actual)
        case "ANY_ORDER":
            found = _taken(expected, actual)
    return found / len(expected)


def _prefix(expected: Sequence[Hashable], actual: Sequence[Answers]) -> int:
    """Count how many expected elements, starting with the first, occur in order."""
    met = 0
    for each in actual:
        if met < len(expected) and expected[met] in each:
            met += 1
    return met


def _taken(expected: Sequence[Hashable], actual: Sequence[Answers]) -> int:
    """Count the expected elements that match; each takes the first unused match."""
    places: defaultdict[Hashable, deque[int]] = defaultdict(deque)
    for position, each in enumerate(actual):
        for answer in each:
            places[answer].append(position)
    taken: set[int] = set()
    for item in expected:
        waiting = places.get(item, deque())
        while waiting and waiting[0] in taken:
            waiting.popleft()
        if waiting:
            taken.add(waiting.popleft())
    return len(taken)
