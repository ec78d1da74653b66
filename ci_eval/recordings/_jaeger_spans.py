"""Spans in Jaeger's JSON, converted to OTLP's form.

https://www.jaegertracing.io/docs/latest/apis/ describes them; the tags for a span's status are
those of https://opentelemetry.io/docs/specs/otel/common/mapping-to-non-otlp/.
"""

from collections.abc import Mapping

from ci_eval.recordings._span_attributes import dicts
from ci_eval.records.cases import Json

_LATEST = 10**17
"""Latest plausible time, in microseconds since 1970."""


def is_jaeger_span(value: Mapping[str, Json]) -> bool:
    """Return True if an object is a span as Jaeger writes it."""
    return "spanID" in value and "operationName" in value


def as_otlp(raw: Mapping[str, Json], processes: Json) -> tuple[dict[str, Json], Json]:
    """Return a span and its resource; `processes` are those of its trace, by id."""
    tags = _by_key(raw.get("tags"))
    parents = [
        each.get("spanID")
        for each in dicts(raw.get("references"))
        if each.get("refType") == "CHILD_OF"
    ]
    start, duration = _micros(raw.get("startTime")), _micros(raw.get("duration"))
    has_failed = tags.get("error") in (True, "true") or tags.get("otel.status_code") == "ERROR"
    span: dict[str, Json] = {
        "traceId": raw.get("traceID"),
        "spanId": raw.get("spanID"),
        "parentSpanId": parents[0] if parents else None,
        "name": raw.get("operationName"),
        "attributes": tags,
        "events": [_event(each) for each in dicts(raw.get("logs"))],
        "status": {"code": 2, "message": tags.get("otel.status_description")} if has_failed else {},
    }
    if start is not None:
        span["startTimeUnixNano"] = str(1000 * start)
        span["endTimeUnixNano"] = None if duration is None else str(1000 * (start + duration))
    named = processes.get(str(raw.get("processID"))) if isinstance(processes, Mapping) else None
    of_process = _by_key(named.get("tags")) if isinstance(named, Mapping) else {}
    return span, {"attributes": of_process}


def _by_key(pairs: Json) -> dict[str, Json]:
    return {str(each.get("key")): each.get("value") for each in dicts(pairs)}


def _event(log: Mapping[str, Json]) -> dict[str, Json]:
    fields = _by_key(log.get("fields"))
    return {"name": fields.pop("event", fields.pop("message", "")), "attributes": fields}


def _micros(value: Json) -> int | None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 <= value < _LATEST else None
