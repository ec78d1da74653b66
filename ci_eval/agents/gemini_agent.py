"""Google's models as agents, with an instruction and canned tools."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import Field, ValidationError, field_validator

from ci_eval.agents._model_agent import Prompted
from ci_eval.agents._model_agent_retries import retried
from ci_eval.agents._model_session import ModelSession, fresh_ids
from ci_eval.formats import gemini_stream
from ci_eval.llm.providers.gemini import GeminiAccess, GeminiClient, GeminiSettings, reaching
from ci_eval.llm.providers.gemini import generation_config as google_config
from ci_eval.llm.providers.model_settings import checked
from ci_eval.plugins.points import Agent, RunningAgent, Session, agent
from ci_eval.records.cases import Content, Json
from ci_eval.records.errors import FailureKind, JudgeError, TrialError
from ci_eval.records.trials import Trial
from ci_eval.runtime.context import RunContext
from ci_eval.text.json_text import NotJsonError, parse_json
from ci_eval.text.sanitize import one_line

if TYPE_CHECKING:
    from google.genai import types

_TOOLS = "the agent's 'tools' define them"
_TEXT = "an agent answers with text"
REFUSED: Mapping[str, str] = {
    "system_instruction": "the agent's 'instruction' defines it",
    "tools": _TOOLS,
    "automatic_function_calling": _TOOLS,
    "candidate_count": "only one answer is read; set 'run.repeats' for more attempts",
    "response_modalities": _TEXT,
    "speech_config": _TEXT,
    "image_config": _TEXT,
}
"""Settings that conflict with the agent's options, with the reasons."""
NewId = Callable[[], str]
"""Returns a new id for a call without one."""


class _Settings(GeminiSettings):
    """The settings of an agent, including the format of its response."""

    response_mime_type: str | None = None
    response_schema: dict[str, Json] | None = None
    response_json_schema: Json = None
    tool_config: dict[str, Json] | None = None


@agent("gemini")
class Gemini(Prompted, GeminiAccess, Agent):
    """One of Google's models, with an instruction and tools with canned results.

    Use it to test a prompt and tool declarations before there is an agent around them.  The model
    is accessed with the environment variables that google-genai reads, as for the
    [judge](judges.md#gemini); options set here take precedence.  A call that fails temporarily
    (status 408, 409, 425, 429 or 500 and above, or no response) is attempted up to four times.

    Each model response is an event with its usage.  A response that was cut off is final if it has
    content, and otherwise an error with the model's reason.
    """

    model_option = "gemini"

    gemini: str = Field(min_length=1)
    """The model, such as `gemini-2.5-flash`."""
    settings: Mapping[str, Json] = Field(default_factory=dict)
    """Settings of a call, with the names of google-genai's `GenerateContentConfig`: `temperature`,
    `top_p`, `max_output_tokens`, `seed`, `thinking_config`, `tool_config` …"""
    stream: bool = False
    """Whether responses are streamed, and joined as in ADK."""

    @field_validator("settings")
    @classmethod
    def _settings_fit(cls, settings: Mapping[str, Json]) -> Mapping[str, Json]:
        checked(_Settings, settings, REFUSED, whom="an agent")
        return settings

    @asynccontextmanager
    async def start(self, context: RunContext) -> AsyncIterator[RunningAgent]:
        """Connect, and close the connection at the end."""
        instruction = self.instruction_text(context)
        async with reaching(self, context, named_by="'gemini' of the agent") as client:
            yield _Running(self, client, instruction, self.missing(context.env))

    def config(self) -> "types.GenerateContentConfig":
        """Return the config of every call, without the instruction.

        Raises:
            TrialError: the settings are invalid.

        """
        settings = checked(_Settings, self.settings, REFUSED)
        given: dict[str, Any] = settings.model_dump(exclude_none=True)
        if self.tools:
            declared = [tool.declared("parameters_json_schema") for tool in self.tools]
            given["tools"] = [{"function_declarations": declared}]
        try:
            return google_config(given)
        except ValueError as exc:
            raise TrialError("start", f"the settings of the agent are invalid: {exc}") from None


class _Running:
    """Connection to the model."""

    def __init__(self, agent: Gemini, client: GeminiClient, template: str, missing: str) -> None:
        self.agent = agent
        self.template = template
        self._client = client
        self._missing = missing
        self._config: types.GenerateContentConfig | None = None
        """The config shared by all conversations."""
        self._fatal = ""
        """The error that makes further requests pointless."""

    async def open(self, trial: Trial, *, alone: bool = False, memento: Json = None) -> Session:
        del alone  # it always is
        if self._missing:
            raise TrialError("start", f"the agent lacks {self._missing}")
        if self._fatal:
            raise TrialError("start", self._fatal)
        return _Conversation(self, trial, memento)

    def config(self, instruction: str) -> "types.GenerateContentConfig":
        """Return the config of every call of a conversation.

        Raises:
            TrialError: the settings are invalid.

        """
        if self._config is None:
            self._config = self.agent.config()
        return self._config.model_copy(update={"system_instruction": instruction or None})

    async def ask(
        self, contents: "list[types.Content]", config: "types.GenerateContentConfig", new_id: NewId
    ) -> gemini_stream.ModelResponse:
        """Return the model's response, with retries.

        Raises:
            TrialError: there is none; `seen` is an incomplete one.

        """
        try:
            return await retried(lambda: self._ask_once(contents, config, new_id), _wait)
        except JudgeError as exc:
            if exc.hopeless:
                self._fatal = str(exc)
            kind: FailureKind = "start" if exc.hopeless else "connection"
            raise TrialError(kind, str(exc), seen=exc.seen) from exc

    async def _ask_once(
        self, contents: "list[types.Content]", config: "types.GenerateContentConfig", new_id: NewId
    ) -> gemini_stream.ModelResponse:
        model = self.agent.gemini
        if self.agent.stream:
            return await self._streamed(contents, config, new_id)
        body = await self._client.generate(model, contents, config)
        try:
            found = gemini_stream.read_response(parse_json(body))
        except (NotJsonError, TrialError) as exc:
            raise self._client.failures(model).unreadable(ValueError(str(exc)), body) from exc
        content = found.content and gemini_stream.with_ids(found.content, new_id)
        return found.model_copy(update={"content": content})

    async def _streamed(
        self, contents: "list[types.Content]", config: "types.GenerateContentConfig", new_id: NewId
    ) -> gemini_stream.ModelResponse:
        model = self.agent.gemini
        made = gemini_stream.Aggregator(new_id)
        try:
            async with aclosing(self._client.stream(model, contents, config)) as chunks:
                async for chunk in chunks:
                    made.add(gemini_stream.read_response(chunk))
        except JudgeError as exc:
            exc.seen = made.close()
            raise
        if (whole := made.close()) is None:
            nothing = ValueError("is a stream without a chunk")
            raise self._client.failures(model).unreadable(nothing)
        return whole


def _wait(error: TrialError) -> float | None:
    """Return the minimum pause before a retry; `None` if a retry is pointless."""
    if isinstance(error, JudgeError) and error.passing:
        return error.after_s or 0.0
    return None


# --- Conversations ----------------------------------------------------------------------------


class _Conversation(ModelSession):
    """One conversation with the model."""

    def __init__(self, running: _Running, trial: Trial, memento: Json) -> None:
        agent = running.agent
        super().__init__(agent, agent.gemini, running.template, trial, memento)
        self._running = running
        self._new_id = partial(next, fresh_ids(gemini_stream.MADE_BY_US, self.said))
        self._config = running.config(self.instruction)

    async def ask(self) -> gemini_stream.ModelResponse:
        sent = [_sendable(each) for each in self.said]
        return await self._running.ask(sent, self._config, self._new_id)


def _sendable(content: Content) -> "types.Content":
    """Return `content` for google-genai, without the ids that we generated.

    Raises:
        TrialError: it cannot be sent.

    """
    from google.genai import types

    given = content.model_dump(mode="json", exclude_none=True)
    for part in given.get("parts", ()):
        for key in ("function_call", "function_response"):
            if str(part.get(key, {}).get("id", "")).startswith(gemini_stream.MADE_BY_US):
                del part[key]["id"]
    try:
        # Bytes are only decoded from base64 when parsed from text.
        return types.Content.model_validate_json(json.dumps(given))
    except ValidationError as exc:
        why = one_line(exc.errors()[0]["msg"], 200)
        raise TrialError("unsupported", f"a message cannot be sent to the model: {why}") from None
