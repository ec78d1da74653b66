"""What GitHub publishes of its REST API, and whether a request and an answer fit it.

A description allows members that it does not name; here none may be, in what is sent and in what
is answered, because a name that is misspelt must not pass for one.
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from servers.loopback import Reply, Request

FOLDER = Path(__file__).parent / "api"
_IN_PLACE = ("allOf", "anyOf", "oneOf")
_SAMPLES = {"date-time": "2026-01-01T00:00:00Z", "uri": "https://github.com/octo/shop"}


@cache
def _description() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / "openapi.json").read_text(encoding="utf-8"))
    return found


def schema_named(name: str) -> dict[str, Any]:
    """Return one of the schemas that have a name."""
    found: dict[str, Any] = _description()["components"]["schemas"][name]
    return found


class Found(NamedTuple):
    """The operation that a request asks for, and what stands for its parameters in the path."""

    operation: "Operation"
    arguments: Mapping[str, str]


class Operation:
    """One operation, as it is described."""

    def __init__(self, method: str, path: str, described: Mapping[str, Any]) -> None:
        self.name: str = described["operationId"]
        self.method = method.upper()
        pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path)
        self._pattern = re.compile(pattern)
        self._described = described

    def matched(self, path: str) -> Mapping[str, str] | None:
        found = self._pattern.fullmatch(path)
        return {name: unquote(each) for name, each in found.groupdict().items()} if found else None

    def answers(self, status: int) -> dict[str, Any] | None:
        """Return the schema of what is answered with `status`; nothing where that has no body."""
        responses = self._described["responses"]
        if str(status) not in responses and status >= 400:
            return schema_named("basic-error")
        return _body(responses[str(status)])

    def faults_of_request(self, request: Request, arguments: Mapping[str, str]) -> Iterator[str]:
        """Yield what does not fit in a request."""
        places = {"path": arguments, "query": _single(request.query)}
        for place, given in places.items():
            known = {each["name"]: each for each in self._parameters(place)}
            yield from (f"no parameter {name!r}" for name in given.keys() - known.keys())
            for name, each in known.items():
                if name in given:
                    yield from _faults(f"parameter {name!r}", _typed(given[name]), each["schema"])
        if len(size := _single(request.query).get("per_page", "")) > 2 and size != "100":
            yield "parameter 'per_page': a page has 100 at most"
        schema = _body(self._described.get("requestBody", {}))
        if schema is None:
            yield from () if request.body is None else ["a body where none is described"]
            return
        if request.headers.get("content-type") != "application/json":
            yield "a body that does not say that it is JSON"
        yield from _faults("the body", request.body, schema)

    def faults_of_reply(self, reply: Reply) -> Iterator[str]:
        """Yield what does not fit in an answer."""
        described = self._described["responses"]
        if reply.status < 400 and str(reply.status) not in described:
            yield f"the status {reply.status}"
            return
        schema = self.answers(reply.status)
        if schema is None:
            yield from ["a body where none is described"] if reply.body else []
        else:
            yield from _faults("the answer", json.loads(reply.body), schema)

    def _parameters(self, place: str) -> Iterator[dict[str, Any]]:
        return (each for each in self._described["parameters"] if each["in"] == place)


class Operations:
    """What is described."""

    @cached_property
    def all(self) -> list[Operation]:
        """All, in the order of their paths."""
        return [
            Operation(method, path, described)
            for path, methods in _description()["paths"].items()
            for method, described in methods.items()
        ]

    def found(self, method: str, path: str) -> Found | None:
        """Return the operation that answers; nothing where none does."""
        for each in self.all:
            if each.method == method and (arguments := each.matched(path)) is not None:
                return Found(each, arguments)
        return None


def _body(described: Mapping[str, Any]) -> dict[str, Any] | None:
    content = described.get("content")
    return content["application/json"]["schema"] if content else None


def _single(query: Mapping[str, list[str]]) -> dict[str, str]:
    return {name: ",".join(values) for name, values in query.items()}


def _typed(text: str) -> Any:
    """Return a value of an address in the type of its schema."""
    if re.fullmatch("-?[0-9]{1,18}", text):
        return int(text)
    return {"true": True, "false": False}.get(text, text)


# --- Validation -------------------------------------------------------------------------------


def _faults(where: str, value: Any, schema: Mapping[str, Any]) -> Iterator[str]:
    if schema.get("type") == "string" and isinstance(value, int):
        value = str(value)  # a parameter that looks like a number
    for each in _validator(json.dumps(schema)).iter_errors(value):
        path = ".".join(map(str, each.instance_path))
        yield f"{where}{path and f' at {path}'}: {each.message[:300]}"


@cache
def _validator(schema: str) -> Any:
    from jsonschema_rs import Draft202012Validator

    named = _description()["components"]["schemas"]
    whole = {**_strict(json.loads(schema)), "$defs": {name: _strict(named[name]) for name in named}}
    return Draft202012Validator(whole, validate_formats=True)


def _strict(schema: Any, *, in_place: bool = False) -> Any:
    """Return a schema of OpenAPI 3.0 as one of JSON Schema, in which unknown members do not fit.

    `in_place` says that another schema speaks of the same object, and sees to that.
    """
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return {"$ref": "#/$defs/" + schema["$ref"].rpartition("/")[2]}
    kept = {name: each for name, each in schema.items() if name not in ("nullable", "default")}
    if kept.get("additionalProperties") is True:
        del kept["additionalProperties"]
    for name in _IN_PLACE:
        if name in kept:
            kept[name] = [_strict(each, in_place=True) for each in kept[name]]
    if "properties" in kept:
        kept["properties"] = {name: _strict(each) for name, each in kept["properties"].items()}
        if not in_place and "additionalProperties" not in kept:
            kept["unevaluatedProperties"] = False
    for name in ("items", "additionalProperties"):
        if name in kept:
            kept[name] = _strict(kept[name])
    return {"anyOf": [kept, {"type": "null"}]} if schema.get("nullable") else kept


# --- Filling ----------------------------------------------------------------------------------


def filled(schema: Mapping[str, Any], known: Any) -> Any:
    """Return `known` with all that its schema demands beside it.

    What is filled in is the least that fits: nothing, where that may be.
    """
    if "$ref" in schema:
        return filled(schema_named(schema["$ref"].rpartition("/")[2]), known)
    for name in _IN_PLACE:
        if name in schema and "properties" not in schema:
            return filled(schema[name][0], known)
    if isinstance(known, list):
        return [filled(schema.get("items", {}), each) for each in known]
    if not isinstance(known, dict):
        return known
    properties = schema.get("properties", {})
    named = {name: filled(properties.get(name, {}), each) for name, each in known.items()}
    lacking = [name for name in schema.get("required", ()) if name not in known]
    return {**{name: _least(properties.get(name, {})) for name in lacking}, **named}


def _least(schema: Mapping[str, Any]) -> Any:
    if "$ref" in schema:
        return _least(schema_named(schema["$ref"].rpartition("/")[2]))
    if schema.get("nullable"):
        return None
    if "enum" in schema:
        return schema["enum"][0]
    for name in _IN_PLACE:
        if name in schema and "properties" not in schema:
            return _least(schema[name][0])
    least = {"array": [], "integer": 1, "number": 1, "boolean": False, "object": {}}
    value: Any = least.get(schema.get("type", "object"), "")
    if schema.get("type") == "string":
        return _SAMPLES.get(schema.get("format", ""), "x")
    return filled(schema, {}) if value == {} else value
