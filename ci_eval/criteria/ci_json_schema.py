"""Whether a response is JSON of a certain shape."""

import re
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, field_validator

from ci_eval.criteria._responses import said
from ci_eval.criteria._share import Share
from ci_eval.plugins.points import criterion
from ci_eval.records.model import EvalCase, Json
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace
from ci_eval.text.json_text import NotJsonError, parse_json
from ci_eval.text.validation_messages import describe

if TYPE_CHECKING:
    import jsonschema_rs

_FENCED = re.compile(
    r"^[ \t]*```[ \t]*(?:json)?[ \t\r]*\n(?P<inside>.*?)^[ \t]*```",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_MAX_ERRORS = 5
"""How many things that are wrong the evidence names."""
_MAX_ERROR_CHARS = 300
"""How much of each it says."""


@criterion("ci/json_schema")
class JsonSchema(Share):
    """Whether the last response is JSON that fits a JSON Schema: 1 or 0.

    The response is JSON, or holds it in a fenced block of Markdown, of which the first counts.
    The drafts 4 to 2020-12 are known; a schema that names none is of 2020-12. Formats such as
    `date` are checked. A `$ref` stays within the schema: nothing is ever fetched. Patterns are
    matched in linear time, which is why they know neither look-around nor back-references.
    Thoughts are no part of a response.
    """

    shorthand: ClassVar[str] = "schema"
    example: ClassVar = {
        "schema": {
            "type": "object",
            "properties": {"order": {"type": "integer"}},
            "required": ["order"],
        }
    }

    output_schema: dict[str, Json] | bool = Field(alias="schema")
    """The schema. `true` asks for any JSON."""

    @field_validator("output_schema", mode="before")
    @classmethod
    def _is_schema(cls, schema: Json) -> Json:
        if not isinstance(schema, dict | bool):
            raise ValueError(f"expected a schema, found {describe(schema)}")  # noqa: TRY004  # pydantic's
        _validator(schema)
        return schema

    def score(self, case: EvalCase, trace: Trace) -> Score:
        """Read the last response, and check it."""
        del case
        if not trace.invocations:
            return self.scored(None, reason="the conversation has no response")
        response = said(trace.invocations[-1])
        errors = self._errors(response)
        evidence: dict[str, Json] = {"errors": errors, "actual": response}
        return self.scored(float(not errors), evidence=evidence)

    def _errors(self, response: str) -> list[Json]:
        try:
            value = _read(response)
        except NotJsonError as exc:
            return [f"the response {exc}"]
        return [_told(each) for each in islice(self._validator.iter_errors(value), _MAX_ERRORS)]

    @cached_property
    def _validator(self) -> "jsonschema_rs.Validator":
        # Errors name the place; the value itself, which may be long, is in the response.
        return _validator(self.output_schema, mask="the value")


def _validator(schema: Json, *, mask: str | None = None) -> "jsonschema_rs.Validator":
    """Return what checks by `schema`; `mask` stands for values in its messages.

    Raises:
        ValueError: it is no schema.

    """
    import jsonschema_rs

    # An engine without backtracking, as responses are anybody's.
    patterns = jsonschema_rs.RegexOptions()
    try:
        return jsonschema_rs.validator_for(
            schema, offline=True, validate_formats=True, pattern_options=patterns, mask=mask
        )
    except jsonschema_rs.ValidationError as exc:
        raise ValueError(f"is no JSON Schema: {_told(exc)}") from exc
    except ValueError as exc:  # a value that JSON does not have
        raise ValueError(f"is no JSON Schema: {exc}") from exc


def _read(response: str) -> Json:
    """Return the JSON that the response is or holds.

    Raises:
        NotJsonError: there is none.

    """
    fenced = _FENCED.search(response)
    return parse_json(fenced["inside"] if fenced else response)


def _told(error: "jsonschema_rs.ValidationError") -> str:
    place = "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.instance_path
    )
    return f"${place}: {error.message}"[:_MAX_ERROR_CHARS]
