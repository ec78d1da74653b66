"""The judge gemini: what it needs, whom it serves, and how answers are read."""

import contextlib
import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from servers.gemini import answer

from ci_eval.judges._gemini_judge_replies import read_answer
from ci_eval.judges.gemini_judge import Gemini
from ci_eval.llm.providers.gemini import is_key_wrong, is_spent, retry_delay

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("candidates", "content", "parts", "text", "thought", "finishReason"),
                    *("usageMetadata", "promptTokenCount", "error", "details", "violations"),
                    *("quotaId", "retryDelay", "promptFeedback", "blockReason"),
                ]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("fields", "env", "missing"),
    [
        ({}, {}, "GOOGLE_API_KEY or GEMINI_API_KEY"),
        ({}, {"GOOGLE_API_KEY": " "}, "GOOGLE_API_KEY or GEMINI_API_KEY"),
        ({}, {"GOOGLE_CLOUD_PROJECT": "p"}, "GOOGLE_API_KEY or GEMINI_API_KEY"),
        ({}, {"GEMINI_API_KEY": "k"}, ""),
        ({"api_key_env": "JUDGE_KEY"}, {"GEMINI_API_KEY": "k"}, "JUDGE_KEY"),
        ({"vertex": True}, {}, "GOOGLE_CLOUD_PROJECT"),
        ({"vertex": True}, {"GOOGLE_CLOUD_PROJECT": "p"}, ""),
        ({"vertex": True, "project": "p"}, {}, ""),
        ({"vertex": True}, {"GOOGLE_API_KEY": "k"}, ""),
        ({"vertex": True, "project": "p", "api_key_env": "JUDGE_KEY"}, {}, "JUDGE_KEY"),
        ({}, {"GOOGLE_GENAI_USE_VERTEXAI": "1"}, "GOOGLE_CLOUD_PROJECT"),
        ({}, {"GOOGLE_GENAI_USE_VERTEXAI": "TRUE", "GOOGLE_CLOUD_PROJECT": "p"}, ""),
        ({}, {"GOOGLE_GENAI_USE_VERTEXAI": "0"}, "GOOGLE_API_KEY or GEMINI_API_KEY"),
        (
            {},
            {"GOOGLE_GENAI_USE_ENTERPRISE": "false", "GOOGLE_GENAI_USE_VERTEXAI": "true"},
            "GOOGLE_API_KEY or GEMINI_API_KEY",
        ),
        (
            {"vertex": False},
            {"GOOGLE_GENAI_USE_VERTEXAI": "true", "GOOGLE_CLOUD_PROJECT": "p"},
            "GOOGLE_API_KEY or GEMINI_API_KEY",
        ),
    ],
)
def test_what_is_missing_is_named(
    fields: dict[str, Any], env: dict[str, str], missing: str
) -> None:
    assert Gemini.model_validate(fields).missing(env) == missing


def test_it_serves_its_own_models_and_at_an_address_any() -> None:
    assert Gemini().serves("gemini-2.5-flash")
    assert not Gemini().serves("gpt-4.1")
    assert Gemini(base_url="https://gateway.example").serves("gpt-4.1")


@pytest.mark.parametrize(
    "fields",
    [
        {"settings": {"temprature": 0}},
        {"settings": {"responseSchema": {}}},
        {"settings": {"http_options": {"base_url": "localhost"}}},
        {"settings": {"http_options": {"client_args": {}}}},
        {"base_url": "localhost:8080"},
    ],
)
def test_what_is_wrong_is_seen_before_anything_runs(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Gemini.model_validate(fields)


@pytest.mark.parametrize("settings", [{}, {"http_options": {}}, {"http_options": None}])
def test_settings_may_say_nothing(settings: dict[str, Any]) -> None:
    assert Gemini(settings=settings).settings == settings


def test_google_genai_is_not_imported_before_it_is_needed() -> None:
    code = (
        "import pathlib, sys\n"
        "from ci_eval.judges.gemini_judge import Gemini\n"
        "from ci_eval.judges.openai_judge import OpenAI\n"
        "from ci_eval.runtime.context import RunContext\n"
        "context = RunContext({'GOOGLE_API_KEY': 'k'}, pathlib.Path(), lambda: 0.0)\n"
        "for judge in (Gemini(model='m'), OpenAI(model='m')):\n"
        "    judge.missing(context.env)\n"
        "print({'google.genai', 'openai', 'aiohttp'} & sys.modules.keys())"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert (ended.stdout, ended.stderr) == ("set()\n", "")


# --- Answers ----------------------------------------------------------------------------------


def read(value: Any) -> tuple[str, str]:
    found = read_answer(json.dumps(value))
    return found.text, found.finish


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        *((each, "blocked") for each in ("SAFETY", "RECITATION", "PROHIBITED_CONTENT", "SPII")),
        ("MALFORMED_RESPONSE", "other"),
        ("A_NEW_ONE", "other"),
    ],
)
def test_the_reason_to_finish_is_mapped(reason: str, finish: str) -> None:
    assert read(answer("yes", reason)) == ("yes", finish)


def test_thoughts_are_no_part_of_the_answer() -> None:
    parts = [{"text": "Hm.", "thought": True}, {"text": "y"}, {"text": "es", "thought": False}]

    assert read(answer(parts=parts)) == ("yes", "stop")


def test_a_blocked_prompt_has_no_candidates() -> None:
    blocked = {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {}}

    assert read(blocked) == ("", "blocked")


@pytest.mark.parametrize(
    "value",
    [
        {"candidates": []},
        {"candidates": [{}]},
        {"candidates": [{"content": {"role": "model"}}]},
        {"candidates": [{"content": {"parts": [{"functionCall": {"name": "f"}}]}}]},
        {"usageMetadata": {"promptTokenCount": 3}},
    ],
)
def test_an_answer_may_hold_no_text(value: dict[str, Any]) -> None:
    assert read(value) == ("", "other")


@pytest.mark.parametrize("body", ["", "null", "[]", "{}", '{"error": {}}', '{"candidates": 1}'])
def test_what_is_no_answer_is_refused(body: str) -> None:
    with pytest.raises(ValueError, match=r"is not JSON|candidates|valid"):
        read_answer(body)


@given(JSON)
def test_whatever_comes_is_read_or_refused(value: Any) -> None:
    with contextlib.suppress(ValueError):
        read_answer(json.dumps(value))
    assert is_spent(value) in (True, False)
    assert is_key_wrong(value) in (True, False)
    assert retry_delay(value) is None
