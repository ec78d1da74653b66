"""The tree of a trace's spans, and the spans that become invocations."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from ci_eval.formats.event_lists import USER
from ci_eval.recordings._trace_spans import Span
from ci_eval.records.cases import FunctionCall, InvocationEvent, Json

Kind = Literal["agent", "model", "tool", "other"]


@dataclass(frozen=True)
class Step:
    """The meaning of a span under a convention."""

    kind: Kind = "other"
    author: str = ""
    """Name of the agent."""
    inputs: Sequence[InvocationEvent] = ()
    """Input messages."""
    outputs: Sequence[InvocationEvent] = ()
    """Output messages."""
    call: FunctionCall | None = None
    """Tool call."""
    answer: dict[str, Json] | None = None
    """Result of the tool."""
    usage: dict[str, Json] | None = None
    """Token counts, with ADK's names."""
    model: str | None = None
    finish: str | None = None
    """Finish reason of the model."""
    session: str | None = None
    """Id of the conversation."""
    case: str | None = None
    """Id of the eval case."""
    node: str | None = None
    """Node of a graph."""


@dataclass
class Node:
    """A span in the tree of its trace."""

    span: Span
    step: Step
    children: list["Node"] = field(default_factory=list)

    def descendants(self) -> Iterator["Node"]:
        """Yield this node and all its descendants."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += node.children


@dataclass
class Unit:
    """The top spans of one invocation: one, or several in a row that answer the same message."""

    tops: list[Node]
    asked: InvocationEvent | None
    """The user's message; `None` if no span has it."""

    @property
    def start(self) -> float:
        """Start time."""
        return min((top.span.start for top in self.tops if top.span.start is not None), default=0.0)


def roots(nodes: Sequence[Node]) -> list[Node]:
    """Build the tree of a trace's spans; return its roots.

    The first span of a cycle is treated as a root.
    """
    by_id = {node.span.id: node for node in nodes}
    found = []
    for node in nodes:
        parent = by_id.get(node.span.parent or "")
        if parent is None:
            found.append(node)
        else:
            parent.children.append(node)
    seen: set[int] = set()
    for node in found:
        _visit(node, seen)
    for node in nodes:
        if id(node) not in seen:
            found.append(node)
            _visit(node, seen)
    return found


def _visit(root: Node, seen: set[int]) -> None:
    """Add the descendants of `root` to `seen`, and cut links back to seen spans."""
    seen.add(id(root))
    waiting = [root]
    while waiting:
        node = waiting.pop()
        node.children = [child for child in node.children if id(child) not in seen]
        seen.update(map(id, node.children))
        waiting += node.children


def units(found: Sequence[Node]) -> Iterator[Unit]:
    """Yield the invocations in a trace with the roots `found`.

    These are the outermost spans of agents or, without any, the roots that contain a model or a
    tool.  A span without a user message, or with the same message as the span before, is merged
    with the span before.
    """
    agents = list(_outermost_agents(found))
    tops = agents or [
        root for root in found if any(node.step.kind != "other" for node in root.descendants())
    ]
    unit: Unit | None = None
    for top in in_order(tops):
        asked = _asked(top)
        if unit and (asked is None or _same(asked, unit.asked)):
            unit.tops.append(top)
            continue
        if unit:
            yield unit
        unit = Unit([top], asked)
    if unit:
        yield unit


def _outermost_agents(nodes: Iterable[Node]) -> Iterator[Node]:
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if node.step.kind == "agent":
            yield node
        else:
            waiting += node.children


def _same(one: InvocationEvent, other: InvocationEvent | None) -> bool:
    return other is not None and one.parts == other.parts


def _asked(top: Node) -> InvocationEvent | None:
    """Return the last user message in the input of a span, or of the first model in it."""
    models = in_order(node for node in top.descendants() if node.step.kind == "model")
    for node in (top, *models):
        for event in reversed(node.step.inputs):
            if event.author == USER and any(part.text for part in event.parts):
                return event
    return None


def in_order(nodes: Iterable[Node]) -> list[Node]:
    """Return `nodes` by start time; nodes without one come last."""
    return sorted(nodes, key=lambda node: (node.span.start is None, node.span.start or 0.0))


class _Visit(NamedTuple):
    """A span visited on the way down."""

    node: Node
    author: str
    """Agent of the span."""
    is_duplicate: bool
    """Whether an enclosing span already has the same content."""
    parent: int
    """Index of the enclosing span among the visits; -1 if there is none."""


def unique_nodes(tops: Iterable[Node]) -> list[tuple[Node, str]]:
    """Return spans and their descendants by start time, each with its agent.

    Leaves out duplicates: a model inside a model with output, a model without output that contains
    one with output, and a tool inside the same tool.
    """
    visits: list[_Visit] = []
    waiting = [(top, "", False, frozenset[str](), -1) for top in tops]
    while waiting:
        node, author, is_in_model, tools, parent = waiting.pop()
        step = node.step
        author = (step.author if step.kind == "agent" else "") or author
        tool = (step.call.name if step.kind == "tool" and step.call else None) or ""
        is_duplicate = tool in tools or (is_in_model and step.kind == "model")
        visits.append(_Visit(node, author or step.author, is_duplicate, parent))
        within = is_in_model or _speaks(node)
        names = tools | {tool} if tool else tools
        place = len(visits) - 1
        waiting += [(child, author, within, names, place) for child in node.children]
    speak_inside = _contains_speaker(visits)
    authors = {
        id(visit.node): visit.author
        for place, visit in enumerate(visits)
        if not visit.is_duplicate
        and not (visit.node.step.kind == "model" and place in speak_inside)
    }
    ordered = in_order(visit.node for visit in visits if id(visit.node) in authors)
    return [(node, authors[id(node)]) for node in ordered]


def _speaks(node: Node) -> bool:
    return node.step.kind == "model" and bool(node.step.outputs)


def _contains_speaker(visits: Sequence[_Visit]) -> set[int]:
    """Return the indices of spans without output that contain a model with output."""
    found: set[int] = set()
    for place in reversed(range(len(visits))):
        node, parent = visits[place].node, visits[place].parent
        if parent >= 0 and (place in found or _speaks(node)):
            found.add(parent)
    return {place for place in found if not _speaks(visits[place].node)}
