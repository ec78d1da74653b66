"""Gemini through google-genai: the Gemini API and Vertex AI."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from pydantic import field_validator

from ci_eval.judges._gemini_judge_replies import read_answer
from ci_eval.llm.providers import gemini
from ci_eval.llm.providers.model_settings import checked
from ci_eval.plugins.points import Judge, JudgeClient, judge
from ci_eval.records.cases import Json
from ci_eval.records.questions import Answer, Question
from ci_eval.runtime.context import RunContext

if TYPE_CHECKING:
    from google.genai.types import GenerateContentConfig


@judge("gemini")
class Gemini(gemini.GeminiAccess, Judge):
    """A Google model, through the Gemini API or Vertex AI.

    The environment variables of google-genai configure the access: `GOOGLE_API_KEY` or
    `GEMINI_API_KEY`, and `GOOGLE_GEMINI_BASE_URL`; or `GOOGLE_GENAI_USE_VERTEXAI=true` with
    `GOOGLE_CLOUD_PROJECT`, `GOOGLE_CLOUD_LOCATION` and `GOOGLE_VERTEX_BASE_URL`, with
    Application Default Credentials or an API key of Vertex AI's express mode.  The options below
    take precedence over the environment.
    """

    secrets = ("GOOGLE_API_KEY",)

    @field_validator("settings")
    @classmethod
    def _settings_fit(cls, settings: Mapping[str, Json]) -> Mapping[str, Json]:
        checked(gemini.GeminiSettings, settings)
        return settings

    @classmethod
    def recognises(cls, model: str) -> bool:
        """Return True if `model` is a Gemini model."""
        return model.startswith("gemini-")

    def serves(self, model: str) -> bool:
        """Return True if `model` is a Gemini model, or `base_url` is set."""
        return self.recognises(model) or self.base_url is not None

    @asynccontextmanager
    async def start(self, context: RunContext) -> AsyncIterator[JudgeClient]:
        """Connect; leaving the context closes the connection."""
        async with gemini.reaching(self, context) as client:
            await client.connection.client()
            yield _Client(client)


class _Client:
    """A client of the Gemini API."""

    def __init__(self, client: gemini.GeminiClient) -> None:
        self._client = client
        self._configs: dict[str, GenerateContentConfig] = {}
        """Cache of the configuration by settings."""

    async def answer(self, question: Question) -> Answer:
        """Make one call."""
        failures = self._client.failures(question.model)
        try:
            config = self._config(question)
        except ValueError as exc:
            raise failures.unasked(exc) from exc
        body = await self._client.generate(question.model, question.prompt, config)
        try:
            return read_answer(body)
        except ValueError as exc:
            raise failures.unreadable(exc, body) from exc

    def _config(self, question: Question) -> "GenerateContentConfig":
        """Return the configuration of a call.

        Raises:
            ValueError: a setting is invalid.

        """
        known = json.dumps(dict(question.settings), sort_keys=True)
        if known not in self._configs:
            given = checked(gemini.GeminiSettings, question.settings).model_dump(exclude_none=True)
            self._configs[known] = gemini.generation_config(given)
        return self._configs[known].model_copy(
            update={
                "system_instruction": question.instructions or None,
                "response_mime_type": "application/json" if question.schema else None,
                "response_json_schema": dict(question.schema) or None,
            }
        )
