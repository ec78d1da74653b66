"""An agent that is a model of Google's, with an instruction and canned tools."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import ConfigDict, Field, ValidationError, field_validator

from ci_eval.agents._model_turn import NAME, Turn, calls_of, too_many_calls
from ci_eval.agents._prompted import CannedTools, Prompted, filled_in
from ci_eval.agents._request import opening
from ci_eval.errors import JudgeError, TrialError
from ci_eval.json_text import NotJsonError, parse_json
from ci_eval.plugins import Agent, RunningAgent, Session, agent
from ci_eval.providers.gemini import GeminiAccess, GeminiClient, GeminiSettings, reaching
from ci_eval.providers.gemini import generation_config as google_config
from ci_eval.providers.settings import checked
from ci_eval.records import (
    AgentDetails,
    AppDetails,
    Content,
    FunctionCall,
    Invocation,
    InvocationEvent,
    Json,
    Part,
)
from ci_eval.streaming import MADE_BY_US, Aggregator, ModelResponse, read_response, with_ids
from ci_eval.templating import one_line
from ci_eval.trials import Trial
from ci_eval.world import World

if TYPE_CHECKING:
    from google.genai import types

ATTEMPTS = 4
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 60.0
"""How often a call is made that fails in passing, and what is waited before, twice as long each
time; where the provider wants it still later, it is not made again."""

_TOOLS = "they are what 'tools' of the agent says"
_TEXT = "an agent answers with text"
REFUSED: Mapping[str, str] = {
    "system_instruction": "it is what 'instruction' of the agent says",
    "tools": _TOOLS,
    "automatic_function_calling": _TOOLS,
    "candidate_count": "one answer is read; set 'run.repeats' to try more often",
    "response_modalities": _TEXT,
    "speech_config": _TEXT,
    "image_config": _TEXT,
}
"""Settings that would undo the agent, and why."""


class _Settings(GeminiSettings):
    """The settings of an agent, which may want a form for its answer."""

    response_mime_type: str | None = None
    response_schema: dict[str, Json] | None = None
    response_json_schema: Json = None
    tool_config: dict[str, Json] | None = None


@agent("gemini")
class Gemini(Prompted, GeminiAccess, Agent):
    """A model of Google's with an instruction and tools whose results are canned.

    To try a prompt and the declarations of tools before there is an agent around them.  The
    environment says how the model is reached, with the variables that google-genai reads, as for
    the [judge](judges.md#gemini); what is set here comes before it.  A call that fails in passing
    (the codes 408, 409, 425, 429 and from 500 on, or no answer) is made up to four times.

    Every answer of the model is an event, with its usage.  One that was cut off is final where it
    says something, and an error, with the model's reason, where it does not.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(populate_by_name=True)

    gemini: str = Field(min_length=1)
    """The model, such as `gemini-2.5-flash`."""
    settings: Mapping[str, Json] = Field(default_factory=dict)
    """Settings of a call, as google-genai's `GenerateContentConfig` names them: `temperature`,
    `top_p`, `max_output_tokens`, `seed`, `thinking_config`, `tool_config` …"""
    stream: bool = False
    """Whether answers come in chunks, which are put together as ADK does it."""

    @field_validator("settings")
    @classmethod
    def _settings_fit(cls, settings: Mapping[str, Json]) -> Mapping[str, Json]:
        checked(_Settings, settings, REFUSED, whom="an agent")
        return settings

    def check(self, world: World) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with the instruction and the canned results."""
        yield from self.wrong_prompt(world)

    @asynccontextmanager
    async def start(self, world: World) -> AsyncIterator[RunningAgent]:
        """Connect, and close the connection at the end."""
        told = self.told(world)
        async with reaching(self, world, named_by="'gemini' of the agent") as client:
            prefix = f"ci-eval-{world.now() * 1000:.0f}-"
            yield _Running(self, client, told, self.missing(world.env), prefix)

    def config(self) -> "types.GenerateContentConfig":
        """Return what every call says beside the messages and the instruction.

        Raises:
            TrialError: the settings are wrong.

        """
        given: dict[str, Any] = checked(_Settings, self.settings, REFUSED).model_dump(
            exclude_none=True
        )
        if self.tools:
            given["tools"] = [{"function_declarations": list(self._declared("json_schema"))}]
        try:
            return google_config(given)
        except ValueError as exc:
            raise TrialError("start", f"the settings of the agent are wrong: {exc}") from None

    def details(self, instruction: str) -> AppDetails:
        """Return what the model was told and which tools it had."""
        tools = ({"function_declarations": list(self._declared())},) if self.tools else ()
        found = AgentDetails(name=NAME, instructions=instruction, tool_declarations=tools)
        return AppDetails(agent_details={NAME: found})

    def _declared(self, form: str = "") -> Iterator[dict[str, Json]]:
        key = f"parameters_{form}" if form else "parameters"
        for tool in self.tools:
            schema = {} if tool.parameters is None else {key: tool.parameters}
            yield {"name": tool.name, "description": tool.description, **schema}


class _Running:
    """A model that can be talked to."""

    def __init__(
        self, said: Gemini, client: GeminiClient, told: str, missing: str, session_prefix: str
    ) -> None:
        self.said = said
        self._client = client
        self._told = told
        self._missing = missing
        self._session_prefix = session_prefix
        self._numbers = count(1)
        self._config: types.GenerateContentConfig | None = None
        """What holds for all conversations."""
        self._hopeless = ""
        """Why it is not worth asking any more."""

    async def open(self, trial: Trial, *, alone: bool = False, memento: Json = None) -> Session:
        del alone  # they always are alone
        if self._missing:
            raise TrialError("start", f"the agent lacks {self._missing}")
        if self._hopeless:
            raise TrialError("start", self._hopeless)
        session = opening(trial, f"{self._session_prefix}{next(self._numbers)}")
        instruction = filled_in(self._told, session["state"])
        tools = CannedTools(self.said.results, trial)
        return _Conversation(self, instruction, tools, session["state"], memento)

    def config(self, instruction: str) -> "types.GenerateContentConfig":
        """Return what every call of a conversation says beside the messages.

        Raises:
            TrialError: the settings are wrong.

        """
        if self._config is None:
            self._config = self.said.config()
        told = {"system_instruction": instruction or None}
        return self._config.model_copy(update=told)

    async def ask(
        self, contents: "list[types.Content]", config: "types.GenerateContentConfig", ids: "_Ids"
    ) -> ModelResponse:
        """Return the model's answer, asked for as often as it takes.

        Raises:
            TrialError: there is none; `seen` is what there was of it.

        """
        for attempt in range(ATTEMPTS):
            try:
                return await self._ask_once(contents, config, ids)
            except _BrokenError as exc:
                last = exc
            pause = max(FIRST_PAUSE_S * 2**attempt, last.why.after_s or 0.0)
            if not last.why.passing or pause > LONGEST_PAUSE_S or attempt + 1 == ATTEMPTS:
                break
            await asyncio.sleep(pause)
        if last.why.hopeless:
            self._hopeless = str(last.why)
        kind = "start" if last.why.hopeless else "connection"
        raise TrialError(kind, str(last.why), seen=last.seen) from last

    async def _ask_once(
        self, contents: "list[types.Content]", config: "types.GenerateContentConfig", ids: "_Ids"
    ) -> ModelResponse:
        model = self.said.gemini
        if self.said.stream:
            return await self._streamed(contents, config, ids)
        try:
            body = await self._client.generate(model, contents, config)
        except JudgeError as exc:
            raise _BrokenError(exc) from exc
        try:
            found = read_response(parse_json(body))
        except (NotJsonError, TrialError) as exc:
            why = ValueError(str(exc))
            raise _BrokenError(self._client.failures(model).unreadable(why, body)) from exc
        content = found.content and with_ids(found.content, ids.new)
        return found.model_copy(update={"content": content})

    async def _streamed(
        self, contents: "list[types.Content]", config: "types.GenerateContentConfig", ids: "_Ids"
    ) -> ModelResponse:
        made = Aggregator(ids.new)
        chunks = self._client.stream(self.said.gemini, contents, config)
        try:
            async with aclosing(chunks):
                async for chunk in chunks:
                    made.add(read_response(chunk))
        except JudgeError as exc:
            raise _BrokenError(exc, seen=made.close()) from exc
        if (whole := made.close()) is None:
            nothing = ValueError("is a stream without a chunk")
            raise _BrokenError(self._client.failures(self.said.gemini).unreadable(nothing))
        return whole


class _BrokenError(Exception):
    """A call came to nothing."""

    def __init__(self, why: JudgeError, seen: ModelResponse | None = None) -> None:
        self.why = why
        self.seen = seen
        super().__init__(str(why))


class _Ids:
    """Makes up ids for calls to which the model gave none."""

    def __init__(self, contents: list[Content]) -> None:
        used = sum(len(each.parts or ()) for each in contents)
        self._numbers = count(used + 1)

    def new(self) -> str:
        return f"{MADE_BY_US}{next(self._numbers)}"


# --- Conversations ----------------------------------------------------------------------------


class _Conversation(Session):
    """One conversation with the model."""

    def __init__(
        self,
        running: _Running,
        instruction: str,
        tools: CannedTools,
        state: dict[str, Json],
        memento: Json,
    ) -> None:
        self._running = running
        self._tools = tools
        self._state = state
        self._contents = [Content.model_validate(each) for each in (memento or {}).get("said", ())]
        self._ids = _Ids(self._contents)
        self._config = running.config(instruction)
        self._details = running.said.details(instruction)
        for content in self._contents:
            tools.recall(calls_of(content))

    @property
    def memento(self) -> Json:
        said = [each.model_dump(mode="json", exclude_none=True) for each in self._contents]
        return {"said": said}

    async def send(self, message: Content) -> Invocation:
        turn = Turn(message, self._details, self._running.said.gemini)
        self._contents.append(message)
        most = self._running.said.max_calls
        for _ in range(most):
            response = await self._ask(turn)
            content = turn.take(response)
            calls = calls_of(content)
            if content:
                self._contents.append(content)
            if not calls:
                return turn.ended(response)
            self._contents.append(self._answered(calls, turn))
        raise too_many_calls(most, turn.seen())

    async def close(self) -> dict[str, Json] | None:
        return self._state

    async def _ask(self, turn: Turn) -> ModelResponse:
        try:
            sent = [_sendable(each) for each in self._contents]
            with turn.asking():
                return await self._running.ask(sent, self._config, self._ids)
        except TrialError as exc:
            if exc.seen:
                turn.take(exc.seen)
            exc.seen = turn.seen()
            raise

    def _answered(self, calls: tuple[FunctionCall, ...], turn: Turn) -> Content:
        try:
            answers = [self._tools.answer(call) for call in calls]
        except TrialError as exc:
            exc.seen = turn.seen()
            raise
        parts = tuple(Part(function_response=each) for each in answers)
        content = Content(role="user", parts=parts)
        turn.events.append(InvocationEvent(author=NAME, content=content))
        return content


def _sendable(content: Content) -> "types.Content":
    """Return `content` as google-genai takes it, without the ids that we made up.

    Raises:
        TrialError: it cannot be sent.

    """
    from google.genai import types

    given = content.model_dump(mode="json", exclude_none=True)
    for part in given.get("parts", ()):
        for key in ("function_call", "function_response"):
            if str(part.get(key, {}).get("id", "")).startswith(MADE_BY_US):
                del part[key]["id"]
    try:
        # Only from a text are bytes read as base64.
        return types.Content.model_validate_json(json.dumps(given))
    except ValidationError as exc:
        said = one_line(exc.errors()[0]["msg"], 200)
        raise TrialError("unsupported", f"a message cannot be sent to the model: {said}") from None
