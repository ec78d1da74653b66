"""Attributes of spans, in the notations of different exporters."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ci_eval.records.cases import Json
from ci_eval.text.json_text import json_or_text, objects_in

_WHOLE = re.compile("-?[0-9]{1,29}")
_MAX_STEPS = 12
"""Maximum number of parts of an attribute name."""
_MAX_NAMED = 6
"""Maximum depth of dotted names inside an attribute, which stand for objects."""
_KINDS = (
    *("AGENT", "CHAIN", "EMBEDDING", "EVALUATOR", "GUARDRAIL"),
    *("LLM", "PROMPT", "RERANKER", "RETRIEVER", "TOOL"),
)
"""OpenInference's kinds of spans."""


def first(tree: Json, *names: str) -> Json:
    """Return the first existing value of some dotted names; `None` if there is none."""
    for name in names:
        value = tree
        for step in name.split("."):
            value = value.get(step) if isinstance(value, dict) else None
        if value is not None:
            return value
    return None


def text_in(value: Json) -> str | None:
    """Return `value` if it is a non-empty text, else `None`."""
    return value if isinstance(value, str) and value else None


def from_json(value: Json) -> Json:
    """Parse `value` if it is JSON text, as which spans store objects; else return it unchanged."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        return json_or_text(value)
    return value


def raw_attributes(raw: Mapping[str, Json]) -> dict[str, Json]:
    """Return attributes by name, from a list of pairs, an object, or columns of a table."""
    given, columns = raw.get("attributes"), "attributes."
    # Phoenix may store the kind of a span outside its attributes.
    kind = raw.get("span_kind")
    found = {"openinference.span.kind": kind} if isinstance(kind, str) and kind in _KINDS else {}
    if isinstance(given, list):
        pairs = [each for each in given if isinstance(each, Mapping)]
        return found | {str(each.get("key")): _otlp_value(each.get("value")) for each in pairs}
    if isinstance(given, Mapping):
        return {**found, **given}
    return found | {
        key.removeprefix(columns): value for key, value in raw.items() if key.startswith(columns)
    }


def _otlp_value(value: Json) -> Json:
    """Return the value in OTLP's JSON wrapper, whose key names the type."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return None
    [(kind, inner)] = value.items()
    match kind:
        case "intValue":
            return int(inner) if isinstance(inner, str) and _WHOLE.fullmatch(inner) else inner
        case "arrayValue":
            values = inner.get("values") if isinstance(inner, Mapping) else None
            return [_otlp_value(each) for each in values] if isinstance(values, list) else []
        case "kvlistValue":
            values = inner.get("values") if isinstance(inner, Mapping) else None
            return raw_attributes({"attributes": values if isinstance(values, list) else []})
    return inner


def tree_of(flat: Mapping[str, Any], depth: int = 0) -> dict[str, Json]:
    """Convert dotted names into nested objects, and `a.0.b` and `a.1.b` into a list."""
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
        return tree_of(value, depth)
    return [_nested(each, depth + 1) for each in value] if isinstance(value, list) else value


def _listed(value: Json, depth: int) -> Json:
    """Convert each object whose keys are indices into a list."""
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
    """Return the objects in a list, or a single object as a list; else an empty list."""
    return [value] if isinstance(value, Mapping) else objects_in(value)
