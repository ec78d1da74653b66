"""Conversion of traces into conversations, whatever the convention for attributes."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ci_eval.formats.event_lists import AGENT, USER, invocations, said
from ci_eval.recordings._recording_reading import numbered
from ci_eval.recordings._span_tree import Node, Step, Unit, roots, unique_nodes, units
from ci_eval.recordings._trace_spans import Span
from ci_eval.records.cases import (
    Content,
    FunctionCall,
    FunctionResponse,
    Invocation,
    InvocationEvent,
    Json,
    Part,
)
from ci_eval.records.trials import Recording


def conversations(spans: Iterable[Span], read: Callable[[Span], Step]) -> Iterator[Recording]:
    """Yield the conversations in some spans, by start time.

    `read` interprets each span.  The rules are those that `otel` documents.
    """
    traces: dict[str, list[Node]] = {}
    for span in spans:
        traces.setdefault(span.trace, []).append(Node(span, read(span)))
    found: dict[tuple[str | None, str], list[Unit]] = {}
    sessions: dict[str, str | None] = {}
    """Session by conversation name; `None` for conversations that are traces."""
    cases: dict[str, str] = {}
    for trace, nodes in traces.items():
        case = next((node.step.case for node in nodes if node.step.case), None)
        for unit in units(roots(nodes)):
            inside = itertools.chain(*(top.descendants() for top in unit.tops), nodes)
            session = next((node.step.session for node in inside if node.step.session), None)
            name = f"session {session}" if session else f"trace {trace}"
            sessions[name] = session
            if case:
                cases.setdefault(name, case)
            found.setdefault((case or cases.get(name), name), []).append(unit)
    ordered = sorted(found.items(), key=lambda item: min(unit.start for unit in item[1]))
    yield from numbered(
        _recording(case, sessions[name], sorted(those, key=lambda unit: unit.start))
        for (case, name), those in ordered
    )


def _recording(case: str | None, session: str | None, those: Sequence[Unit]) -> Recording:
    failed = next((top for unit in those for top in unit.tops if top.span.error), None)
    turns = tuple(turn for unit in those for turn in _invocations(unit))
    error = None
    if failed:
        error = f"the span {failed.span.name!r} failed: {failed.span.error}"
    elif not turns:
        error = "no span has a user message; let the agent's tracing record message contents"
    return Recording(eval_id=case, session=session, invocations=turns or None, error=error)


def _invocations(unit: Unit) -> Iterator[Invocation]:
    if unit.asked is None:
        return
    nodes = unique_nodes(unit.tops)
    events = list(_EventBuilder().events(nodes))
    final = next(filter(None, map(_answer_of, reversed(unit.tops))), "")
    spoken = [text for text in (_text([event]) for event in events) if text]
    if final and final not in spoken[-1:]:
        events.append(said(AGENT, final))
    (turn,) = invocations([unit.asked, *events])
    models, tools = (_times(nodes, kind) for kind in ("model", "tool"))
    whole = _times([(top, "") for top in unit.tops], None)
    at_models = _length(models)
    yield turn.model_copy(
        update={
            "creation_timestamp": unit.start,
            "duration": _length(whole) if whole else None,
            "model_duration": at_models if models else None,
            "tool_duration": max(_length([*models, *tools]) - at_models, 0.0) if tools else None,
            "nodes": tuple(node.step.node for node, _ in nodes if node.step.node) or None,
        }
    )


def _answer_of(top: Node) -> str:
    """Return the output of an agent or a root; a model's output is already an event."""
    return "" if top.step.kind == "model" else _text(top.step.outputs[-1:])


def _text(events: Iterable[InvocationEvent]) -> str:
    parts = itertools.chain(*(event.parts for event in events))
    return "\n".join(part.text for part in parts if part.text and not part.thought)


@dataclass
class _EventBuilder:
    """Converts the spans of an invocation to events, each call and each result once."""

    open_calls: list[FunctionCall] = field(default_factory=list)
    """Calls without a result so far."""
    unmatched: list[FunctionCall] = field(default_factory=list)
    """Calls by a model for which no tool span was found yet."""
    given_ids: set[str] = field(default_factory=set)
    """Call ids from the file."""
    count: int = 0

    def events(self, nodes: Iterable[tuple[Node, str]]) -> Iterator[InvocationEvent]:
        """Yield the events of `nodes`, each given with its agent."""
        for node, agent in nodes:
            author = agent or AGENT
            if node.step.kind == "model":
                yield from self._results_in(node.step.inputs, author)
                yield self._of_model(node.step, author)
            elif node.step.kind == "tool" and node.step.call:
                yield from self._of_tool(node, node.step.call, author)

    def _of_model(self, step: Step, author: str) -> InvocationEvent:
        parts = []
        for part in step.outputs[0].parts if step.outputs else ():
            if part.function_call:
                call = self._identified(part.function_call)
                self.unmatched.append(call)
                parts.append(part.model_copy(update={"function_call": call}))
            else:
                parts.append(part)
        return InvocationEvent(
            author=author,
            content=Content(role="model", parts=tuple(parts)) if parts else None,
            usage_metadata=step.usage or {},
            model_version=step.model,
            finish_reason=step.finish,
        )

    def _identified(self, call: FunctionCall) -> FunctionCall:
        """Register a new call, with a generated id if it has none."""
        self.count += 1
        if call.id:
            self.given_ids.add(call.id)
        else:
            call = call.model_copy(update={"id": f"call-{self.count}"})
        self.open_calls.append(call)
        return call

    def _of_tool(self, node: Node, call: FunctionCall, author: str) -> Iterator[InvocationEvent]:
        known = self._known(call)
        if known:
            self.unmatched.remove(known)
        else:
            known = self._identified(call)
            yield _event(author, "model", Part(function_call=known))
        answer = {"error": node.span.error} if node.span.error else node.step.answer
        if answer is not None and known in self.open_calls:
            yield self._answered(known, answer, author)

    def _known(self, call: FunctionCall) -> FunctionCall | None:
        """Return the model's call to which a tool span belongs."""
        may_be = [
            each
            for each in self.unmatched
            if each.name == call.name
            and not (call.id and each.id != call.id and each.id in self.given_ids)
        ]
        by_id = [each for each in may_be if each.id == call.id]
        by_args = [each for each in may_be if each.args == call.args]
        return next(iter(by_id or by_args or may_be), None)

    def _answered(
        self, call: FunctionCall, answer: dict[str, Json], author: str
    ) -> InvocationEvent:
        self.open_calls.remove(call)
        response = FunctionResponse(id=call.id, name=call.name, response=answer)
        return _event(author, USER, Part(function_response=response))

    def _results_in(
        self, inputs: Iterable[InvocationEvent], author: str
    ) -> Iterator[InvocationEvent]:
        """Yield the results in a model's input that have no span of their own."""
        for part in itertools.chain(*(event.parts for event in inputs)):
            answer = part.function_response
            call = answer and next((each for each in self.open_calls if each.id == answer.id), None)
            if answer and call:
                yield self._answered(call, answer.response or {}, author)


def _event(author: str, role: str, part: Part) -> InvocationEvent:
    return InvocationEvent(author=author, content=Content(role=role, parts=(part,)))


# --- Durations ------------------------------------------------------------------------------


def _times(nodes: Iterable[tuple[Node, str]], kind: str | None) -> list[tuple[float, float]]:
    spans = [node.span for node, _ in nodes if kind in (None, node.step.kind)]
    return [
        (span.start, span.end)
        for span in spans
        if span.start is not None and span.end is not None and span.end >= span.start
    ]


def _length(times: Iterable[tuple[float, float]]) -> float:
    """Return the length of the union of `times`, in seconds."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(times):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total
