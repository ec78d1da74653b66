"""Spans of a trace, in whatever JSON they were exported."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from ci_eval.documents import read_text
from ci_eval.errors import Problem, UsageError
from ci_eval.json_text import MAX_DEPTH, NotJsonError, decode, parse_json, skip
from ci_eval.records import Json

MAX_PROBLEMS = 100
"""How many problems of a file are told at most."""
_MAX_STEPS = 12
"""In how many parts the name of an attribute falls at most."""
_MAX_NAMED = 6
"""How deep in an attribute there may be names with dots, which stand for objects."""
_OTLP_LISTS = ("resourceSpans", "scopeSpans", "spans")
_NANO = 1e9


@dataclass(frozen=True)
class Span:
    """One step of a trace."""

    trace: str
    """The trace it belongs to; empty where it belongs to none."""
    id: str
    parent: str | None
    name: str
    start: float | None
    """In seconds since 1970; `None` where it is not known."""
    end: float | None
    attributes: Mapping[str, Json]
    """By the parts of their names: `llm.model_name` stands under `llm`, `model_name`."""
    events: tuple["SpanEvent", ...]
    error: str | None
    """Why it failed; `None` where it did not."""

    def get(self, *names: str) -> Json:
        """Return the first of some attributes that is there, by their dotted names."""
        return first(self.attributes, *names)


class SpanEvent(NamedTuple):
    """What happened at one moment of a span."""

    name: str
    attributes: Mapping[str, Json]
    """By the parts of their names, as those of spans."""


def first(tree: Json, *names: str) -> Json:
    """Return the first value of some dotted names that is there; `None` where none is."""
    for name in names:
        value = tree
        for step in name.split("."):
            value = value.get(step) if isinstance(value, Mapping) else None
        if value is not None:
            return value
    return None


def from_json(value: Json) -> Json:
    """Return what a text holds as JSON, as spans keep what is no plain value; else `value`."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return parse_json(value)
        except NotJsonError:
            return value
    return value


def looks_like_spans(head: Json) -> Json:
    """Return the attributes of the first span of a document that begins so; `None` if it has none.

    The attributes are as the file has them, for whoever asks what they are about.
    """
    value = head
    for _ in range(8):
        if isinstance(value, list) and value:
            value = value[0]
        elif isinstance(value, Mapping):
            inner = next((value[key] for key in (*_OTLP_LISTS, "data") if value.get(key)), None)
            if inner is None:
                return _raw_attributes(value) if _is_span(value) else None
            value = inner
        else:
            return None
    return None


def is_openinference(attributes: Mapping[str, Json]) -> bool:
    """Say whether a span with such attributes is by the conventions of OpenInference."""
    return any(name.startswith("openinference") for name in attributes)


def _is_span(value: Mapping[str, Json]) -> bool:
    ids = {"spanId", "span_id", "context", "context.span_id"}
    return bool(ids & value.keys()) and "name" in value


# --- Reading a file -------------------------------------------------------------------------


def read_spans(path: Path, *, shown: str) -> list[Span]:
    """Return the spans of a file, by the time they begin.

    Raises:
        UsageError: it is no JSON, or holds no spans, or is too long.

    """
    text = read_text(path, shown=shown)
    found: list[Span] = []
    problems: list[Problem] = []
    for value, line in _values(text, shown):
        try:
            for raw, resource in _raw_spans(value):
                found.append(_span(raw, resource, f"#{len(found)}"))
        except _NoSpanError as exc:
            problems.append(Problem(str(exc), shown, line))
    if not found and not problems:
        problems = [Problem("holds no spans", shown, 1)]
    if problems:
        raise UsageError(problems=problems[:MAX_PROBLEMS])
    return sorted(found, key=lambda span: math.inf if span.start is None else span.start)


class _NoSpanError(ValueError):
    """A value is no span."""


def _values(text: str, shown: str) -> Iterator[tuple[Json, int]]:
    """Yield the values of a file that holds one or several, one after the other."""
    at, line = skip(text, 0), 1
    line += text.count("\n", 0, at)
    while at < len(text):
        try:
            value, end = decode(text, at, max_depth=MAX_DEPTH)
        except NotJsonError as exc:
            line += text.count("\n", at, exc.position)
            raise UsageError(problems=[Problem(str(exc), shown, line)]) from exc
        yield value, line
        end = skip(text, end)
        line += text.count("\n", at, end)
        at = end


def _raw_spans(value: Json, resource: Json = None) -> Iterator[tuple[Mapping[str, Json], Json]]:
    """Yield each span as it was exported, with the attributes of what it was observed in."""
    if isinstance(value, list):
        for each in value:
            yield from _raw_spans(each, resource)
        return
    if not isinstance(value, Mapping):
        raise _NoSpanError("expected a span, or an export of spans, found neither")
    lists = [key for key in (*_OTLP_LISTS, "data") if isinstance(value.get(key), list)]
    if lists and not _is_span(value):
        within = value.get("resource")
        for key in lists:
            yield from _raw_spans(value[key], within if within is not None else resource)
    elif _is_span(value):
        yield value, value.get("resource") or resource
    elif value and not any(key in value for key in _OTLP_LISTS):
        raise _NoSpanError("expected a span, which has a 'name' and an id, found an object")


def _span(raw: Mapping[str, Json], resource: Json, number: str) -> Span:
    context = raw.get("context")
    ids = {**raw, **context} if isinstance(context, Mapping) else raw
    of_resource = _raw_attributes(resource) if isinstance(resource, Mapping) else {}
    return Span(
        trace=_text(_any(ids, "traceId", "trace_id", "context.trace_id")) or "",
        id=_text(_any(ids, "spanId", "span_id", "context.span_id")) or number,
        parent=_text(_any(raw, "parentSpanId", "parent_id", "parentId", "parent_span_id")),
        name=_text(raw.get("name")) or "",
        start=_seconds(_any(raw, "startTimeUnixNano", "start_time", "startTime")),
        end=_seconds(_any(raw, "endTimeUnixNano", "end_time", "endTime")),
        attributes=_tree({**of_resource, **_raw_attributes(raw)}),
        events=tuple(_events(raw.get("events"))),
        error=_error(raw),
    )


def _any(raw: Mapping[str, Json], *keys: str) -> Json:
    return next((raw[key] for key in keys if raw.get(key) is not None), None)


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None


def _events(raw: Json) -> Iterator[SpanEvent]:
    for event in raw if isinstance(raw, list) else ():
        if isinstance(event, Mapping):
            yield SpanEvent(_text(event.get("name")) or "", _tree(_raw_attributes(event)))


def _error(raw: Mapping[str, Json]) -> str | None:
    status = raw.get("status")
    if not isinstance(status, Mapping):
        status = {"code": raw.get("status_code", status), "message": raw.get("status_message")}
    code = status.get("code", status.get("status_code"))
    if code not in (2, "2", "ERROR", "STATUS_CODE_ERROR", "StatusCode.ERROR"):
        return None
    said = _text(_any(status, "message", "description"))
    thrown = [
        first(event.attributes, "exception.message", "exception.type")
        for event in _events(raw.get("events"))
        if event.name == "exception"
    ]
    return said or next(filter(None, map(_text, reversed(thrown))), None) or "it failed"


# --- Values ---------------------------------------------------------------------------------


def _seconds(value: Json) -> float | None:
    """Return a time in seconds; of a number its size tells the unit, as no file says it."""
    if isinstance(value, str) and not value.isdecimal():
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return None
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, list) and len(value) == 2 and all(map(_is_number, value)):
        return float(value[0]) + float(value[1]) / _NANO  # as in JavaScript: seconds, nanoseconds
    if not (isinstance(value, str) and len(value) < 30) and not _is_number(value):
        return None
    number = float(value)
    for limit, unit in ((1e17, _NANO), (1e14, 1e6), (1e11, 1e3)):
        if number > limit:
            return number / unit
    return number


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e30


def _raw_attributes(raw: Mapping[str, Json]) -> dict[str, Json]:
    """Return attributes by their names: as a list of pairs, an object, or columns of a table."""
    given = raw.get("attributes")
    if isinstance(given, list):
        pairs = [each for each in given if isinstance(each, Mapping)]
        return {str(each.get("key")): _otlp_value(each.get("value")) for each in pairs}
    if isinstance(given, Mapping):
        return dict(given)
    columns = "attributes."
    return {
        key.removeprefix(columns): value for key, value in raw.items() if key.startswith(columns)
    }


def _otlp_value(value: Json) -> Json:
    """Return the value that OTLP's JSON wraps into an object which names its type."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return None
    [(kind, inner)] = value.items()
    match kind:
        case "intValue":
            is_int = isinstance(inner, str) and inner.lstrip("-").isdecimal() and len(inner) < 30
            return int(inner) if is_int else inner
        case "arrayValue":
            values = inner.get("values") if isinstance(inner, Mapping) else None
            return [_otlp_value(each) for each in values] if isinstance(values, list) else []
        case "kvlistValue":
            values = inner.get("values") if isinstance(inner, Mapping) else None
            return _raw_attributes({"attributes": values if isinstance(values, list) else []})
    return inner


def _tree(flat: Mapping[str, Any], depth: int = 0) -> dict[str, Json]:
    """Return attributes by the parts of their names; `a.0.b` and `a.1.b` are in a list."""
    tree: dict[str, Any] = {}
    for name, value in flat.items():
        *before, last = name.split(".", _MAX_STEPS)
        node = tree
        for step in before:
            if not isinstance(node.get(step), dict):
                node[step] = {}
            node = node[step]
        inner = _nested(value, depth + 1)
        if not isinstance(node.get(last), dict):
            node[last] = inner
        elif isinstance(inner, dict):
            node[last] |= inner
    return {name: _listed(value, 0) for name, value in tree.items()} if depth == 0 else tree


def _nested(value: Json, depth: int) -> Json:
    if depth > _MAX_NAMED:
        return value
    if isinstance(value, Mapping):
        return _tree(value, depth)
    return [_nested(each, depth + 1) for each in value] if isinstance(value, list) else value


def _listed(value: Json, depth: int) -> Json:
    """Return `value` with a list for each object whose keys are positions."""
    if depth > _MAX_NAMED * _MAX_STEPS:
        return value
    if isinstance(value, list):
        return [_listed(each, depth + 1) for each in value]
    if not isinstance(value, dict):
        return value
    inner = {key: _listed(each, depth + 1) for key, each in value.items()}
    if inner and all(key.isdecimal() and len(key) < 10 for key in inner):
        return [inner[key] for key in sorted(inner, key=int)]
    return inner


def dicts(value: Json) -> Sequence[Mapping[str, Json]]:
    """Return the objects in a list; of an object, it alone; none of anything else."""
    if isinstance(value, Mapping):
        return [value]
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
