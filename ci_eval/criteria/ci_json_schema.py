"""Whether a response is JSON of a certain shape."""

import re
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, field_validator

from ci_eval.criteria._responses import said
from ci_eval.criteria._share import Share
from ci_eval.json_text import NotJsonError, parse_json
from ci_eval.plugins import criterion
from ci_eval.records import EvalCase, Json, Trace
from ci_eval.results import Score

if TYPE_CHECKING:
    import jsonschema_rs

_FENCED = re.compile(
    r"^```[ \t]*(?:json)?[ \t]*\n(?P<inside>.*?)^```", re.DOTALL | re.MULTILINE | re.IGNORECASE
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

    shorthand: ClassVar[str] = "output_schema"
    example: ClassVar = {
        "output_schema": {
            "type": "object",
            "properties": {"order": {"type": "integer"}},
            "required": ["order"],
        }
    }

    output_schema: dict[str, Json] | bool = Field(alias="schema")
    """The schema; `schema` is understood, too. `true` asks for any JSON."""

    @field_validator("output_schema")
    @classmethod
    def _is_schema(cls, schema: dict[str, Json] | bool) -> dict[str, Json] | bool:  # noqa: FBT001
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
        return _validator(self.output_schema)


def _validator(schema: dict[str, Json] | bool) -> "jsonschema_rs.Validator":  # noqa: FBT001
    """Return what checks by `schema`.

    Raises:
        ValueError: it is no schema.

    """
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(
            schema,
            offline=True,
            validate_formats=True,
            # An engine without backtracking, as responses are anybody's.
            pattern_options=jsonschema_rs.RegexOptions(),
            mask="the value",
        )
    except jsonschema_rs.ValidationError as exc:
        raise ValueError(f"is no JSON Schema: {_told(exc)}") from exc


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
