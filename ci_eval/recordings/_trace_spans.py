"""Spans of a trace, from any JSON export."""

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from ci_eval.formats.known_formats import first_object
from ci_eval.recordings._jaeger_spans import as_otlp, is_jaeger_span
from ci_eval.recordings._span_attributes import first, raw_attributes, text_in, tree_of
from ci_eval.records.cases import Json
from ci_eval.records.errors import UsageError
from ci_eval.text.file_problems import FileProblems
from ci_eval.text.json_text import MAX_DEPTH, NotJsonError, decode, is_number, refuse_many, skip
from ci_eval.text.yaml_files import read_text

_OTLP_LISTS = (
    *("resourceSpans", "scopeSpans", "spans"),
    *("batches", "instrumentationLibrarySpans"),  # Grafana Tempo and older exporters
)
_NANO = 1e9
_LONGEST_NUMBER = 30
_LATEST = 1e11
"""Latest plausible time, in seconds since 1970."""
_MAX_LOOKED_AT = 1000
"""Number of spans that are examined to detect a file's convention."""


@dataclass(frozen=True)
class Span:
    """A span of a trace."""

    trace: str
    """Trace id; empty if it has none."""
    id: str
    parent: str | None
    name: str
    start: float | None
    """Seconds since 1970; `None` if unknown."""
    end: float | None
    attributes: Mapping[str, Json]
    """Nested by the parts of their names: `llm.model_name` is under `llm`, `model_name`."""
    events: tuple["SpanEvent", ...]
    error: str | None
    """Why it failed; `None` if it did not."""

    def get(self, *names: str) -> Json:
        """Return the first existing attribute of these dotted names."""
        return first(self.attributes, *names)


class SpanEvent(NamedTuple):
    """An event of a span."""

    name: str
    attributes: Mapping[str, Json]
    """Nested by the parts of their names, like those of spans."""


def names_in(head: Json) -> set[str] | None:
    """Return the attribute names in a document that begins like `head`; `None` if it is no export.

    An empty export of OpenTelemetry has no names.
    """
    try:
        spans = [raw for raw, _ in itertools.islice(_raw_spans(head), _MAX_LOOKED_AT)]
    except _NoSpanError:
        return None
    top = first_object([head]) or first_object(head)
    is_export = bool(top) and top.keys() <= set(_OTLP_LISTS)
    names = {name for raw in spans for name in raw_attributes(raw)}
    return names if spans or is_export else None


def is_openinference(names: set[str]) -> bool:
    """Return True if attributes with these names follow OpenInference's conventions."""
    return any(name.startswith("openinference") for name in names)


def _is_span(value: Mapping[str, Json]) -> bool:
    ids = {"spanId", "span_id", "context", "context.span_id", "context.trace_id"}
    return bool(ids & value.keys()) and "name" in value


# --- Reading a file -------------------------------------------------------------------------


def read_spans(path: Path, *, shown: str) -> list[Span]:
    """Return the spans of a file, by start time; each once, although retries export some twice.

    Raises:
        UsageError: it is not JSON, has no spans, or is too large.

    """
    text = read_text(path, shown=shown)
    found: list[Span] = []
    known: dict[tuple[str, str], Span] = {}
    problems = FileProblems(shown)
    for value, line in _values(text, shown):
        try:
            for raw, resource in _raw_spans(value):
                span = _span(raw, resource, f"#{len(found)}")
                first = known.setdefault((span.trace, span.id), span)
                if first is span or first != span:
                    found.append(span)
        except _NoSpanError as exc:
            problems.add(str(exc), line)
    if not found and not problems.found:
        problems.add("holds no spans", 1)
    problems.raise_errors()
    return sorted(found, key=lambda span: math.inf if span.start is None else span.start)


class _NoSpanError(ValueError):
    """A value is not a span."""


def _values(text: str, shown: str) -> Iterator[tuple[Json, int]]:
    """Yield the JSON values of a file, one after the other, with their lines."""
    at, line = skip(text, 0), 1
    line += text.count("\n", 0, at)
    try:
        refuse_many(text, at, len(text))
    except NotJsonError as exc:
        raise UsageError(str(exc), file=shown, line=line) from exc
    while at < len(text):
        try:
            value, end = decode(text, at, max_depth=MAX_DEPTH)
        except NotJsonError as exc:
            line += text.count("\n", at, exc.position)
            raise UsageError(str(exc), file=shown, line=line) from exc
        yield value, line
        end = skip(text, end)
        line += text.count("\n", at, end)
        at = end


def _raw_spans(value: Json, resource: Json = None) -> Iterator[tuple[Mapping[str, Json], Json]]:
    """Yield each exported span, with the attributes of its resource."""
    if isinstance(value, list):
        for each in value:
            yield from _raw_spans(each, resource)
        return
    if not isinstance(value, Mapping):
        raise _NoSpanError("expected a span, or an export of spans")
    if isinstance(value.get("trace"), Mapping) and not _is_span(value):
        yield from _raw_spans(value["trace"], resource)  # Tempo's newer answers
        return
    lists = [key for key in (*_OTLP_LISTS, "data") if isinstance(value.get(key), list)]
    if lists and not _is_span(value):
        within = value.get("resource") or value.get("processes")
        for key in lists:
            yield from _raw_spans(value[key], within if within is not None else resource)
    elif is_jaeger_span(value):
        yield as_otlp(value, resource)
    elif _is_span(value):
        yield value, value.get("resource") or resource
    elif value and not any(key in value for key in _OTLP_LISTS):
        raise _NoSpanError("expected a span with a 'name' and an id, found another object")


def _span(raw: Mapping[str, Json], resource: Json, number: str) -> Span:
    context = raw.get("context")
    ids = {**raw, **context} if isinstance(context, Mapping) else raw
    of_resource = raw_attributes(resource) if isinstance(resource, Mapping) else {}
    return Span(
        trace=text_in(_any(ids, "traceId", "trace_id", "context.trace_id")) or "",
        id=text_in(_any(ids, "spanId", "span_id", "context.span_id")) or number,
        parent=text_in(_any(raw, "parentSpanId", "parent_id", "parentId", "parent_span_id")),
        name=text_in(raw.get("name")) or "",
        start=_moment(raw, "startTimeUnixNano", "start_time", "startTime"),
        end=_moment(raw, "endTimeUnixNano", "end_time", "endTime"),
        attributes=tree_of({**of_resource, **raw_attributes(raw)}),
        events=tuple(_events(raw.get("events"))),
        error=_error(raw),
    )


def _any(raw: Mapping[str, Json], *keys: str) -> Json:
    return next((raw[key] for key in keys if raw.get(key) is not None), None)


def _events(raw: Json) -> Iterator[SpanEvent]:
    for event in raw if isinstance(raw, list) else ():
        if isinstance(event, Mapping):
            yield SpanEvent(text_in(event.get("name")) or "", tree_of(raw_attributes(event)))


def _error(raw: Mapping[str, Json]) -> str | None:
    status = raw.get("status")
    if not isinstance(status, Mapping):
        status = {"code": raw.get("status_code", status), "message": raw.get("status_message")}
    code = status.get("code", status.get("status_code"))
    if code not in (2, "2", "ERROR", "STATUS_CODE_ERROR", "StatusCode.ERROR"):
        return None
    said = text_in(_any(status, "message", "description"))
    thrown = [
        first(event.attributes, "exception.message", "exception.type")
        for event in _events(raw.get("events"))
        if event.name == "exception"
    ]
    return said or next(filter(None, map(text_in, reversed(thrown))), None) or "it failed"


# --- Values ---------------------------------------------------------------------------------


def _moment(raw: Mapping[str, Json], nano: str, *keys: str) -> float | None:
    """Return a time in seconds; `None` if there is none, or it is implausible.

    The key `nano` is for nanoseconds.
    """
    value = str(raw.get(nano))
    is_nano = value.isdecimal() and len(value) < _LONGEST_NUMBER
    found = int(value) / _NANO if is_nano else _seconds(_any(raw, *keys))
    return found if found is not None and abs(found) <= _LATEST else None


def _seconds(value: Json) -> float | None:
    """Return a time in seconds; the unit of a number is inferred from its size."""
    if isinstance(value, str) and not value.isdecimal():
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return None
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, list) and len(value) == 2 and all(map(_is_number, value)):
        return float(value[0]) + float(value[1]) / _NANO  # as in JavaScript: seconds, nanoseconds
    if not (isinstance(value, str) and len(value) < _LONGEST_NUMBER) and not _is_number(value):
        return None
    number = float(value)
    for limit, unit in ((1e17, _NANO), (1e14, 1e6), (1e11, 1e3)):
        if number > limit:
            return number / unit
    return number


def _is_number(value: Json) -> bool:
    return is_number(value) and abs(value) < 1e30
