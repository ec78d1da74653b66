"""The judge openai: what it needs, whom it serves, and how schemas and answers are read."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from servers.openai import completion, response

import ci_eval.judges.openai_judge
from ci_eval.judges._openai_judge_calls import Api, Call, strict
from ci_eval.judges.openai_judge import OpenAI
from ci_eval.llm.providers.model_settings import Settings

AZURE = {"AZURE_OPENAI_ENDPOINT": "https://shop.openai.azure.com"}


@pytest.mark.parametrize(
    ("fields", "env", "missing"),
    [
        ({}, {}, "OPENAI_API_KEY"),
        ({}, {"OPENAI_API_KEY": "k"}, ""),
        ({"api_key_env": "JUDGE_KEY"}, {"OPENAI_API_KEY": "k"}, "JUDGE_KEY"),
        ({"base_url": "http://localhost:11434/v1"}, {}, ""),
        ({"base_url": "http://localhost/v1", "api_key_env": "JUDGE_KEY"}, {}, "JUDGE_KEY"),
        ({"base_url": "https://eu.api.openai.com/v1"}, {}, "OPENAI_API_KEY"),
        ({}, {"OPENAI_BASE_URL": "http://localhost:8000/v1"}, ""),
        (
            {},
            {"OPENAI_BASE_URL": "localhost"},
            "an address such as 'https://api.openai.com/v1' in OPENAI_BASE_URL",
        ),
        ({}, AZURE, "AZURE_OPENAI_API_KEY and OPENAI_API_VERSION"),
        ({"api_version": "v"}, {**AZURE, "AZURE_OPENAI_API_KEY": "k"}, ""),
        ({}, {**AZURE, "OPENAI_API_KEY": "k"}, ""),
        (
            {"azure_endpoint": "https://shop.openai.azure.com"},
            {"OPENAI_API_KEY": "k", "OPENAI_API_VERSION": "v"},
            "AZURE_OPENAI_API_KEY",
        ),
    ],
)
def test_what_is_missing_is_named(
    fields: dict[str, Any], env: dict[str, str], missing: str
) -> None:
    assert OpenAI.model_validate(fields).missing(env) == missing


def test_the_package_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ci_eval.judges.openai_judge, "find_spec", lambda _: None)

    said = "the package openai: pip install 'ci-eval[openai]'"
    assert OpenAI().missing({"OPENAI_API_KEY": "k"}) == said


def test_it_serves_its_own_models_and_at_an_address_any() -> None:
    for name in ("gpt-4.1", "o3", "o4-mini"):
        assert OpenAI().serves(name)
    for name in ("gemini-2.5-flash", "olmo", "ogpt-4"):
        assert not OpenAI().serves(name)
        assert OpenAI(base_url="http://localhost/v1").serves(name)
        assert OpenAI(azure_endpoint="https://shop.openai.azure.com").serves(name)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"base_url": "http://a", "azure_endpoint": "http://b"}, "'base_url' or 'azure_endpoint'"),
        ({"settings": {"thinking_config": {}}}, "pass its equivalent in 'extra_body'"),
        ({"settings": {"topK": 3}}, "settings: 'topK' cannot be set"),
        ({"settings": {"tools": [{}]}}, "a judge calls no tools"),
        ({"settings": {"seed": 1}, "api": "responses"}, "'seed' cannot be set"),
        ({"settings": {"top": 3}}, "top: unknown key"),
    ],
)
def test_what_is_wrong_is_seen_before_anything_runs(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        OpenAI.model_validate(fields)


# --- Schemas ----------------------------------------------------------------------------------


def test_the_strict_mode_wants_all_of_every_object() -> None:
    rubric = {"type": "object", "properties": {"id": {"type": "string"}, "properties": {}}}
    schema = {
        "type": "object",
        "properties": {
            "rubrics": {"type": "array", "items": rubric},
            "either": {"anyOf": [rubric, {"type": "null"}]},
            "named": {"$ref": "#/$defs/rubric"},
        },
        "required": ["rubrics"],
        "$defs": {"rubric": rubric},
    }
    whole = {**rubric, "required": ["id", "properties"], "additionalProperties": False}

    assert strict(schema) == {
        "type": "object",
        "properties": {
            "rubrics": {"type": "array", "items": whole},
            "either": {"anyOf": [whole, {"type": "null"}]},
            "named": {"$ref": "#/$defs/rubric"},
        },
        "required": ["rubrics", "either", "named"],
        "additionalProperties": False,
        "$defs": {"rubric": whole},
    }
    assert strict(strict(schema)) == strict(schema)
    assert schema["required"] == ["rubrics"]


# --- Answers ----------------------------------------------------------------------------------


def read(value: Any, api: Api = "chat") -> tuple[str, str]:
    call = Call("m", api, "schema", Settings(), "max_tokens", {})
    found = call.read(json.dumps(value))
    return found.text, found.finish


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (completion("yes"), ("yes", "stop")),
        (completion("ye", "length"), ("ye", "length")),
        (completion(None, "content_filter"), ("", "blocked")),
        (completion(None, refusal="I'm sorry."), ("", "blocked")),
        (completion("yes", "tool_calls"), ("yes", "other")),
        ({"choices": [{"message": {"content": "yes"}}]}, ("yes", "other")),
        ({"choices": [{}]}, ("", "other")),
    ],
)
def test_a_completion_is_read(value: Any, found: tuple[str, str]) -> None:
    assert read(value) == found


REFUSAL = {"type": "message", "content": [{"type": "refusal", "refusal": "I'm sorry."}]}


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (response("yes"), ("yes", "stop")),
        (response("ye", "incomplete", "max_output_tokens"), ("ye", "length")),
        (response("", "incomplete", "content_filter"), ("", "blocked")),
        (response(output=[REFUSAL]), ("", "blocked")),
        (response("yes", "in_progress"), ("yes", "other")),
        ({"output": []}, ("", "other")),
    ],
)
def test_a_response_is_read(value: Any, found: tuple[str, str]) -> None:
    assert read(value, "responses") == found


@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("value", [None, [], {}, "yes", {"choices": 1, "output": 1}])
def test_what_is_no_answer_is_refused(value: Any, api: Api) -> None:
    with pytest.raises(ValueError, match=r"has no|valid"):
        read(value, api)


@given(st.text())
def test_whatever_the_criterion_is_called_the_schema_has_a_name(about: str) -> None:
    from ci_eval.records.questions import Question

    call = Call("m", "chat", "schema", Settings(), "max_tokens", {})
    asked = call.parameters(Question(about, "", "t", {"type": "object"}))

    name = asked["response_format"]["json_schema"]["name"]
    assert 1 <= len(name) <= 64
    assert all(each.isascii() and (each.isalnum() or each in "_-") for each in name)
    assert asked["messages"] == [{"role": "user", "content": "t"}]
