"""Settings of calls under google-genai's names, checked without importing it."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

from pydantic import Field, ValidationError
from pydantic.alias_generators import to_camel, to_snake

from ci_eval.records.cases import Json, Record
from ci_eval.text.validation_messages import explain, validated
from ci_eval.text.yaml_files import dotted

_FORM = "the criterion sets the form of the answer"
_TOOLS = "a judge calls no tools"
_TEXT = "a judge answers with text"
REFUSED: Mapping[str, str] = {
    "system_instruction": "the criterion sets the prompt",
    **dict.fromkeys(("response_mime_type", "response_schema", "response_json_schema"), _FORM),
    **dict.fromkeys(("tools", "tool_config", "automatic_function_calling"), _TOOLS),
    "candidate_count": "one answer is read; set 'samples' for more",
    **dict.fromkeys(("response_modalities", "speech_config", "image_config"), _TEXT),
}
"""Settings that would break a judge, each with the reason for the message."""


class SettingsRecord(Record, alias_generator=to_camel, populate_by_name=True):
    """Part of the settings, in snake_case or camelCase."""


class Settings(SettingsRecord):
    """Settings that every provider supports."""

    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, ge=0, le=1)
    max_output_tokens: int | None = Field(default=None, ge=1)
    stop_sequences: tuple[str, ...] | None = None
    presence_penalty: float | None = Field(default=None, ge=-2, le=2)
    frequency_penalty: float | None = Field(default=None, ge=-2, le=2)
    seed: int | None = None


S = TypeVar("S", bound=Settings)


def checked(
    model: type[S],
    settings: Mapping[str, Json],
    refused: Mapping[str, str] = REFUSED,
    *,
    whom: str = "a judge",
) -> S:
    """Return `settings` as a `model`; `whom` may not set those in `refused`.

    Raises:
        ValueError: settings are invalid; the message has all problems.

    """
    given = {key: value for key, value in settings.items() if value is not None}
    fitting = {key: value for key, value in given.items() if to_snake(key) not in refused}
    problems = [
        f"{key!r} cannot be set for {whom}: {refused[to_snake(key)]}"
        for key in given.keys() - fitting.keys()
    ]
    try:
        found = validated(model, fitting)
    except ValidationError as exc:
        problems += explained(exc, model)
    if problems:
        raise ValueError("; ".join(sorted(problems)))
    return found


def explained(exc: ValidationError, model: type) -> Iterator[str]:
    """Yield the errors of a validation as messages."""
    for loc, message in explain(exc, model):
        yield f"{dotted(loc)}: {message}"
