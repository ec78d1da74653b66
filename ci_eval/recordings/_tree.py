"""The spans of a trace inside each other, and which of them are an invocation."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from ci_eval.formats.events import USER, parts_of
from ci_eval.recordings._spans import Span
from ci_eval.records.model import FunctionCall, InvocationEvent, Json

Kind = Literal["agent", "model", "tool", "other"]


@dataclass(frozen=True)
class Step:
    """What a span is about, told by a convention."""

    kind: Kind = "other"
    author: str = ""
    """The agent that it names."""
    heard: Sequence[InvocationEvent] = ()
    """The messages that went in."""
    spoke: Sequence[InvocationEvent] = ()
    """The messages that came out."""
    call: FunctionCall | None = None
    """The call of a tool."""
    answer: dict[str, Json] | None = None
    """What the tool answered."""
    usage: dict[str, Json] | None = None
    """Tokens, as ADK names them."""
    model: str | None = None
    finish: str | None = None
    """Why the model ended its answer."""
    session: str | None = None
    """What names the conversation."""
    case: str | None = None
    """What names the eval case."""
    node: str | None = None
    """The node of a graph."""


@dataclass
class Node:
    """A span among the others of its trace."""

    span: Span
    step: Step
    children: list["Node"] = field(default_factory=list)

    def within(self) -> Iterator["Node"]:
        """Yield it and all that is in it."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += node.children


@dataclass
class Unit:
    """What becomes an invocation: one span, or several in a row that answer one message."""

    tops: list[Node]
    asked: InvocationEvent | None
    """What the user says; `None` where no span tells."""

    @property
    def start(self) -> float:
        """When it begins."""
        return min((top.span.start for top in self.tops if top.span.start is not None), default=0.0)


def roots(nodes: Sequence[Node]) -> list[Node]:
    """Put the spans of a trace into each other; return those that are in none.

    Of spans that lead to themselves, the first is taken for one that is in none.
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
    """Add what is in `root` to those that were seen, and cut what leads back."""
    seen.add(id(root))
    waiting = [root]
    while waiting:
        node = waiting.pop()
        node.children = [child for child in node.children if id(child) not in seen]
        seen.update(map(id, node.children))
        waiting += node.children


def units(found: Sequence[Node]) -> Iterator[Unit]:
    """Yield what becomes invocations in a trace with the roots `found`.

    These are the outermost spans of agents; where there is none, the roots with a model or a
    tool in them.  One that does not say what the user asked, or says the same as the one
    before, belongs to that.
    """
    agents = list(_outermost_agents(found))
    tops = agents or [
        root for root in found if any(node.step.kind != "other" for node in root.within())
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
    return other is not None and parts_of(one) == parts_of(other)


def _asked(top: Node) -> InvocationEvent | None:
    """Return the last message of the user that went into a span, or into the first model in it."""
    models = in_order(node for node in top.within() if node.step.kind == "model")
    for node in (top, *models):
        for event in reversed(node.step.heard):
            if event.author == USER and any(part.text for part in parts_of(event)):
                return event
    return None


def in_order(nodes: Iterable[Node]) -> list[Node]:
    """Return `nodes` by the time they begin, those without a time at the end."""
    return sorted(nodes, key=lambda node: (node.span.start is None, node.span.start or 0.0))


class _Visit(NamedTuple):
    """A span that was met on the way down."""

    node: Node
    author: str
    """The agent that it belongs to."""
    is_told: bool
    """Whether a span around it tells the same already."""
    parent: int
    """Where the span around it stands among all that were met; -1 for none."""


def told(tops: Iterable[Node]) -> list[tuple[Node, str]]:
    """Return spans and all in them by the time they begin, each with the agent it belongs to.

    What one tells again is left out: a model inside a model that says what came out, a model
    that does not around one that does, and a tool inside the same tool.
    """
    visits: list[_Visit] = []
    waiting = [(top, "", False, frozenset[str](), -1) for top in tops]
    while waiting:
        node, author, is_in_model, tools, parent = waiting.pop()
        step = node.step
        author = (step.author if step.kind == "agent" else "") or author
        tool = (step.call.name if step.kind == "tool" and step.call else None) or ""
        is_told = tool in tools or (is_in_model and step.kind == "model")
        visits.append(_Visit(node, author or step.author, is_told, parent))
        within = is_in_model or _speaks(node)
        names = tools | {tool} if tool else tools
        place = len(visits) - 1
        waiting += [(child, author, within, names, place) for child in node.children]
    speak_inside = _speak_inside(visits)
    authors = {
        id(visit.node): visit.author
        for place, visit in enumerate(visits)
        if not visit.is_told and not (visit.node.step.kind == "model" and place in speak_inside)
    }
    ordered = in_order(visit.node for visit in visits if id(visit.node) in authors)
    return [(node, authors[id(node)]) for node in ordered]


def _speaks(node: Node) -> bool:
    return node.step.kind == "model" and bool(node.step.spoke)


def _speak_inside(visits: Sequence[_Visit]) -> set[int]:
    """Return the places of spans that say nothing themselves and have a model inside that does."""
    found: set[int] = set()
    for place in reversed(range(len(visits))):
        node, parent = visits[place].node, visits[place].parent
        if parent >= 0 and (place in found or _speaks(node)):
            found.add(parent)
    return {place for place in found if not _speaks(visits[place].node)}
