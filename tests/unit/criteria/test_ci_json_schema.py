"""A response is JSON of the right shape, or it is told what is wrong with it."""

import json
from typing import Any

import pytest
from pydantic import ValidationError
from support.case_language import on_response

from ci_eval.criteria.ci_json_schema import JsonSchema
from ci_eval.records.cases import Status
from ci_eval.text.validation_messages import explain

ORDER = {
    "type": "object",
    "properties": {
        "order": {"type": "integer"},
        "lines": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["order"],
    "additionalProperties": False,
}


def value(schema: Any, response: str) -> float | None:
    return on_response(JsonSchema.model_validate({"schema": schema}), "no JSON", response).value


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ('{"order": 7}', 1.0),
        (' \n{"order": 7, "lines": ["a"]}\n', 1.0),
        ('Here it is:\n```json\n{"order": 7}\n```\nAnything else?', 1.0),
        ('```\n{"order": 7}\n```', 1.0),
        ('1. So:\r\n   ```json\r\n   {"order": 7}\r\n   ```\r\n', 1.0),
        ('```python\n{"order": 7}\n```', 0.0),
        ('```python\nprint(7)\n```\n\n```json\n{"order": 7}\n```', 1.0),
        ('````json\n{"order": 7}\n````', 1.0),
        ('~~~json\n{"order": 7}\n~~~~', 1.0),
        ('````\n```json\n{"order": 7}\n```\n````', 0.0),
        ('```json\n{"order": 7}', 0.0),
        ('```JSON\n{"order": 7}\n```\n```json\n{"order": "x"}\n```', 1.0),
        ('```json\n{"order": "x"}\n```\n```json\n{"order": 7}\n```', 0.0),
        ('{"order": "7"}', 0.0),
        ('{"order": true}', 0.0),
        ("{}", 0.0),
        ('{"order": 7, "more": 1}', 0.0),
        ('The order is {"order": 7}', 0.0),
        ("{'order': 7}", 0.0),
        ('{"order": NaN}', 0.0),
        ("", 0.0),
    ],
)
def test_the_last_response_fits_the_schema_or_not(response: str, expected: float):
    assert value(ORDER, response) == expected


@pytest.mark.parametrize(
    ("schema", "response", "expected"),
    [
        (True, "[1]", 1.0),
        (True, "one", 0.0),
        (False, "[1]", 0.0),
        ({"format": "date"}, '"2024-02-30"', 0.0),
        ({"format": "date"}, '"2024-02-29"', 1.0),
        ({"$defs": {"n": {"type": "number"}}, "items": {"$ref": "#/$defs/n"}}, "[1, 2.5]", 1.0),
        ({"$defs": {"n": {"type": "number"}}, "items": {"$ref": "#/$defs/n"}}, '["1"]', 0.0),
        (
            {
                "$schema": "http://json-schema.org/draft-04/schema#",
                "maximum": 3,
                "exclusiveMaximum": True,
            },
            "3",
            0.0,
        ),
        ({"$ref": "#"}, "1", 1.0),
        ({"type": "array", "items": {"$ref": "#"}}, "[" * 200 + "]" * 200, 1.0),
        ({"type": "array", "items": {"$ref": "#"}}, "[" * 201 + "]" * 201, 0.0),
    ],
)
def test_schemas_mean_what_their_drafts_say(schema: Any, response: str, expected: float):
    assert value(schema, response) == expected


def test_what_is_wrong_is_told_with_its_place_and_without_the_value():
    response = '{"order": "secret", "lines": ["a", 2], "more": 1}'
    score = on_response(JsonSchema(schema=ORDER), response)

    assert score.status is Status.FAILED
    assert score.evidence is not None
    assert score.evidence["actual"] == response
    assert sorted(score.evidence["errors"]) == [
        '$.lines[1]: the value is not of type "string"',
        '$.order: the value is not of type "integer"',
        "$: Additional properties are not allowed ('more' was unexpected)",
    ]


def test_text_that_is_no_json_is_told_so():
    score = on_response(JsonSchema(schema=True), "{'a': 1}")

    assert score.evidence is not None
    [error] = score.evidence["errors"]
    assert error.startswith("the response is not JSON: ")


def test_only_the_first_errors_are_told_and_none_at_length():
    closed = {"properties": {"a": True}, "additionalProperties": False}
    long = on_response(JsonSchema(schema=closed), json.dumps({"x" * 5000: 1}))
    many = on_response(JsonSchema(schema={"items": {"type": "null"}}), str([1] * 1000))

    assert long.evidence
    assert many.evidence
    assert [len(each) for each in long.evidence["errors"]] == [300]
    assert len(many.evidence["errors"]) == 5


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "objec"}, 'is not a JSON Schema: $.type: "objec" is not valid'),
        (
            {"properties": {"a": {"required": 3}}},
            "is not a JSON Schema: $.properties.a.required: 3 is not",
        ),
        ({"pattern": "("}, "is not a JSON Schema: $.pattern: "),
        # What only an engine that may look for years could match:
        ({"pattern": "^(?!x)"}, "is not a JSON Schema: $.pattern: "),
        ({"pattern": r"^(a|aa)+\1$"}, "is not a JSON Schema: $.pattern: "),
        ({"$ref": "#/nowhere"}, "is not a JSON Schema: "),
        ({"$schema": "http://example.com/own"}, "is not a JSON Schema: "),
        ({"const": object()}, "is not a JSON Schema: "),
        (3, "expected a schema, found 3"),
    ],
)
def test_what_is_no_schema_is_refused_when_it_is_read(schema: Any, message: str):
    with pytest.raises(ValidationError) as caught:
        JsonSchema.model_validate({"output_schema": schema})

    [(place, said)] = explain(caught.value, JsonSchema)
    assert place == ["output_schema"]
    assert said.startswith(message)


@pytest.mark.parametrize("ref", ["http://127.0.0.1:9/schema.json", "file:///etc/passwd"])
def test_a_schema_elsewhere_is_never_fetched(ref: str):
    with pytest.raises(ValidationError, match="Retrieval is disabled"):
        JsonSchema(schema={"$ref": ref})


def test_a_pattern_that_could_match_in_very_many_ways_is_answered():
    assert value({"pattern": "^(a|aa)+$"}, f'"{"a" * 10_000}b"') == 0.0
    assert value({"pattern": "^(a|aa)+$"}, f'"{"a" * 10_000}"') == 1.0


@pytest.mark.parametrize(
    ("schema", "wrong"),
    [
        ({"type": "object", "requird": ["order"]}, "requird"),
        ({"propertes": {"order": {}}}, "propertes"),
        ({"properties": {"order": {"minimun": 1}}}, "minimun"),
        ({"anyOf": [{}, {"minlength": 1}]}, "minlength"),
    ],
)
def test_a_misspelt_keyword_is_an_error_as_it_would_check_nothing(schema: Any, wrong: str):
    with pytest.raises(ValidationError, match=f"'{wrong}' is not a keyword of JSON Schema"):
        JsonSchema(threshold=1.0, schema=schema)


def test_other_keys_are_no_keywords():
    named = {"properties": {"requird": {"enum": [{"minimun": 1}]}}, "required": ["requird"]}
    JsonSchema(threshold=1.0, schema={**named, "x-order": 1, "nullable": True, "example": {}})
