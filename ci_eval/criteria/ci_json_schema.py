"""Validation of a response against a JSON Schema."""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, field_validator

from ci_eval.criteria._response_text import said
from ci_eval.criteria._share_score import Share
from ci_eval.plugins.points import criterion
from ci_eval.records.cases import EvalCase, Json
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace
from ci_eval.text.json_text import NotJsonError, parse_json
from ci_eval.text.validation_messages import describe

if TYPE_CHECKING:
    import jsonschema_rs

_FENCE = re.compile(r"[ \t]*(?P<marks>`{3,}|~{3,})[ \t]*(?P<info>[^`]*)")
"""A line that opens or closes a block: <https://spec.commonmark.org/0.31.2/#fenced-code-blocks>."""
_MAX_ERRORS = 5
"""Maximum number of errors in the evidence."""
_MAX_ERROR_CHARS = 300
"""Length limit of each error."""


@criterion("ci/json_schema")
class JsonSchema(Share):
    """Whether the last response is JSON that is valid under a JSON Schema: 1 or 0.

    The response is JSON, or contains it in a fenced block of Markdown, of which the first counts.
    Supports drafts 4 to 2020-12; the default is 2020-12. Formats such as `date` are checked. A
    `$ref` must stay within the schema: nothing is ever fetched. Patterns are matched in linear
    time, so they support neither look-around nor back-references. Thoughts are not part of a
    response.
    """

    shorthand = "schema"
    example: ClassVar = {
        "schema": {
            "type": "object",
            "properties": {"order": {"type": "integer"}},
            "required": ["order"],
        }
    }

    output_schema: dict[str, Json] | bool = Field(alias="schema")
    """The schema. `true` accepts any JSON. A key that resembles a keyword is an error."""

    @field_validator("output_schema", mode="before")
    @classmethod
    def _is_schema(cls, schema: Json) -> Json:
        if not isinstance(schema, dict | bool):
            raise ValueError(f"expected a schema, found {describe(schema)}")  # noqa: TRY004  # pydantic's
        _validator(schema)
        for key, likely in _misspelt(schema):
            raise ValueError(f"{key!r} is not a keyword of JSON Schema. Did you mean {likely!r}?")
        return schema

    def score(self, case: EvalCase, trace: Trace) -> Score:
        """Parse and validate the last response."""
        del case
        if not trace.invocations:
            return self.scored(None, reason="the conversation has no response")
        response = said(trace.invocations[-1])
        errors = self._errors(response)
        return self.scored(float(not errors), evidence={"errors": errors, "actual": response})

    def _errors(self, response: str) -> list[Json]:
        fenced = _fenced(response)
        try:
            value = parse_json(response if fenced is None else fenced)
        except NotJsonError as exc:
            return [f"the response {exc}"]
        errors = islice(self._validator.iter_errors(value), _MAX_ERRORS)
        return [_error_text(each) for each in errors]

    @cached_property
    def _validator(self) -> "jsonschema_rs.Validator":
        # Errors name the place only; the value, which may be long, is in the response.
        return _validator(self.output_schema, mask="the value")


def _misspelt(schema: Json) -> Iterator[tuple[str, str]]:
    """Yield each key that is no keyword, and so checks nothing, but resembles one; and that one."""
    if isinstance(schema, list):
        for each in schema:
            yield from _misspelt(each)
    for key, value in schema.items() if isinstance(schema, dict) else ():
        likely = get_close_matches(key, _KEYWORDS, n=1, cutoff=0.8)
        if key not in _KEYWORDS and likely:
            yield key, likely[0]
        elif key in _OF_NAMES and isinstance(value, dict):
            yield from _misspelt([*value.values()])
        elif key not in _OF_VALUES:
            yield from _misspelt(value)


_OF_NAMES = {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
"""Keywords with a schema for each name."""
_OF_VALUES = {"const", "enum", "default", "examples", "example", "required", "dependentRequired"}
"""Keywords with values, in which nothing is a keyword."""
_KEYWORDS = {
    *_OF_NAMES,
    *_OF_VALUES,
    *("$schema", "$vocabulary", "$id", "$ref", "$anchor", "$dynamicRef", "$dynamicAnchor"),
    *("$recursiveRef", "$recursiveAnchor", "$comment", "id", "dependencies", "format"),
    *("allOf", "anyOf", "oneOf", "not", "if", "then", "else"),
    *("prefixItems", "items", "additionalItems", "contains", "unevaluatedItems"),
    *("additionalProperties", "propertyNames", "unevaluatedProperties"),
    *("type", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"),
    *("maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems"),
    *("maxContains", "minContains", "maxProperties", "minProperties"),
    *("title", "description", "deprecated", "readOnly", "writeOnly"),
    *("contentEncoding", "contentMediaType", "contentSchema"),
}
"""Of drafts 4 to 2020-12: <https://json-schema.org/specification-links>."""


def _fenced(response: str) -> str | None:
    """Return the text of the first fenced block of JSON, if any."""
    opening: re.Match[str] | None = None
    inside: list[str] = []
    for line in response.split("\n"):
        fence = _FENCE.fullmatch(line)
        if opening is None:
            opening, inside = fence, []
        elif fence and fence["marks"].startswith(opening["marks"]) and not fence["info"].strip():
            if opening["info"].strip().lower() in ("", "json"):
                return "\n".join(inside)
            opening = None
        else:
            inside.append(line)
    return None


def _validator(schema: Json, *, mask: str | None = None) -> "jsonschema_rs.Validator":
    """Return a validator for `schema`; `mask` replaces values in its messages.

    Raises:
        ValueError: it is not a JSON Schema.

    """
    import jsonschema_rs

    # An engine without backtracking, because responses are untrusted.
    patterns = jsonschema_rs.RegexOptions()
    try:
        return jsonschema_rs.validator_for(
            schema, offline=True, validate_formats=True, pattern_options=patterns, mask=mask
        )
    except jsonschema_rs.ValidationError as exc:
        raise ValueError(f"is not a JSON Schema: {_error_text(exc)}") from exc
    except ValueError as exc:  # a value that JSON cannot express
        raise ValueError(f"is not a JSON Schema: {exc}") from exc


def _error_text(error: "jsonschema_rs.ValidationError") -> str:
    place = "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.instance_path
    )
    return f"${place}: {error.message}"[:_MAX_ERROR_CHARS]
