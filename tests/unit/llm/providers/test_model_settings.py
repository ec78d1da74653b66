"""Settings are checked before anything runs, without the package that takes them."""

from typing import Any

import pytest

from ci_eval.llm.providers.gemini import GeminiSettings, HttpOptions
from ci_eval.llm.providers.model_settings import REFUSED, Settings, checked

NO_TOOLS = "a judge calls no tools"
NO_SEED = "seed: expected a whole number, found 'x'"


def test_settings_are_read_in_either_spelling() -> None:
    found = checked(Settings, {"topP": 0.5, "max_output_tokens": 9, "stopSequences": ["a"]})

    assert found.model_dump(exclude_none=True) == {
        "top_p": 0.5,
        "max_output_tokens": 9,
        "stop_sequences": ("a",),
    }


def test_what_is_null_is_left_out() -> None:
    """Files of ADK are full of it."""
    settings = {"temperature": None, "tools": None, "responseModalities": None}

    assert checked(Settings, settings) == Settings()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temprature": 1}, "temprature: unknown key. Did you mean 'temperature'?"),
        ({"temperature": 3}, "temperature: must be at most 2, found 3"),
        ({"maxOutputTokens": 0}, "maxOutputTokens: must be at least 1, found 0"),
        ({"top_p": 0.1, "topP": 0.2}, "top_p: is given twice, in two spellings"),
        ({"tools": [{}]}, "'tools' cannot be set for a judge: a judge calls no tools"),
        (
            {"toolConfig": {}, "seed": "x"},
            f"'toolConfig' cannot be set for a judge: {NO_TOOLS}; {NO_SEED}",
        ),
    ],
)
def test_all_that_is_wrong_is_told(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011  # the whole message follows
        checked(Settings, settings)
    assert str(caught.value) == message


def test_google_genai_knows_all_that_is_let_through_or_refused() -> None:
    from google.genai import types

    theirs = set(types.GenerateContentConfig.model_fields)

    assert set(GeminiSettings.model_fields) <= theirs
    assert set(REFUSED) <= theirs
    assert set(HttpOptions.model_fields) <= set(types.HttpOptions.model_fields)
