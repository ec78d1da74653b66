"""A small language for traces: `span("chat", 0, 1, **{"gen_ai.operation.name": "chat"})`.

`otlp` and `console` write spans as OpenTelemetry's exporters do.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

BEGIN = 1_700_000_000
"""The second of 1970 that traces begin at."""


class Sketch(NamedTuple):
    """A span, before it is exported."""

    name: str
    start: float
    end: float
    attributes: dict[str, Any]
    parent: str | None = None
    trace: str = "t"
    error: str | None = None
    events: tuple[tuple[str, dict[str, Any]], ...] = ()


def span(name: str, start: float, end: float, attributes: Mapping[str, Any], **more: Any) -> Sketch:
    return Sketch(name, start, end, dict(attributes), **more)


# --- OTLP/JSON ------------------------------------------------------------------------------


def otlp(*spans: Sketch, resource: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return an export of `spans`, whose names are their ids."""
    scope = {"scope": {"name": "test"}, "spans": list(map(_otlp_span, spans))}
    attributes = pairs(resource or {"service.name": "shop"})
    return {"resourceSpans": [{"resource": {"attributes": attributes}, "scopeSpans": [scope]}]}


def _otlp_span(each: Sketch) -> dict[str, Any]:
    status = {"code": 2, "message": each.error} if each.error is not None else {}
    return {
        "traceId": each.trace,
        "spanId": each.name,
        **({"parentSpanId": each.parent} if each.parent else {}),
        "name": each.name,
        "kind": 1,
        "startTimeUnixNano": str(int((BEGIN + each.start) * 10**9)),
        "endTimeUnixNano": str(int((BEGIN + each.end) * 10**9)),
        "attributes": pairs(each.attributes),
        "events": [{"name": name, "attributes": pairs(about)} for name, about in each.events],
        "status": status,
    }


def pairs(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": wrapped(value)} for key, value in attributes.items()]


def wrapped(value: Any) -> dict[str, Any]:
    """Return a value as OTLP wraps it."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": list(map(wrapped, value))}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": pairs(value)}}
    return {"stringValue": value}


# --- Python's console exporter ----------------------------------------------------------------


def console(*spans: Sketch) -> list[dict[str, Any]]:
    """Return the objects that the exporter prints, one after the other."""
    return [
        {
            "name": each.name,
            "context": {"trace_id": each.trace, "span_id": each.name, "trace_state": "[]"},
            "kind": "SpanKind.INTERNAL",
            "parent_id": each.parent,
            "start_time": _moment(each.start),
            "end_time": _moment(each.end),
            "status": {"status_code": "ERROR", "description": each.error}
            if each.error is not None
            else {"status_code": "UNSET"},
            "attributes": each.attributes,
            "events": [
                {"name": name, "timestamp": _moment(each.start), "attributes": about}
                for name, about in each.events
            ],
            "links": [],
            "resource": {"attributes": {"service.name": "shop"}, "schema_url": ""},
        }
        for each in spans
    ]


def _moment(second: float) -> str:
    return datetime.fromtimestamp(BEGIN + second, UTC).isoformat().replace("+00:00", "Z")


def printed(values: Iterable[Any]) -> str:
    """Return objects as they are printed: over several lines, one after the other."""
    return "\n".join(json.dumps(value, indent=4) for value in values)


# --- Jaeger and Tempo -------------------------------------------------------------------------


def jaeger(*spans: Sketch) -> dict[str, Any]:
    """Return the answer of Jaeger's API, whose names of spans are their ids."""
    processes = {"p1": {"serviceName": "shop", "tags": _tags({"host.name": "one"})}}
    found = [_jaeger_span(each) for each in spans]
    return {"data": [{"traceID": "t", "spans": found, "processes": processes}], "errors": None}


def _jaeger_span(each: Sketch) -> dict[str, Any]:
    failed = {"error": True, "otel.status_code": "ERROR", "otel.status_description": each.error}
    parents = [{"refType": "CHILD_OF", "traceID": each.trace, "spanID": each.parent}]
    return {
        "traceID": each.trace,
        "spanID": each.name,
        "operationName": each.name,
        "references": parents if each.parent else [],
        "startTime": int((BEGIN + each.start) * 10**6),
        "duration": int((each.end - each.start) * 10**6),
        "tags": _tags({**each.attributes, **(failed if each.error is not None else {})}),
        "logs": [
            {"timestamp": 1, "fields": _tags({"event": name, **about})}
            for name, about in each.events
        ],
        "processID": "p1",
    }


def _tags(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "type": "string", "value": value} for key, value in attributes.items()]


def tempo(*spans: Sketch) -> dict[str, Any]:
    """Return the answer of Tempo's API, as it was before version 2."""
    (resource,) = otlp(*spans)["resourceSpans"]
    scopes = resource.pop("scopeSpans")
    return {"batches": [{**resource, "instrumentationLibrarySpans": scopes}]}
