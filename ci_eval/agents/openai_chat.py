"""An agent that is a model asked in OpenAI's way, with an instruction and canned tools."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from ci_eval.agents._completions import Assembly, Said, messages, read
from ci_eval.agents._prompted import CannedTools, Prompted, filled_in
from ci_eval.agents._reaching import Reached, filled_headers, wrong_headers, wrong_variable
from ci_eval.agents._request import opening
from ci_eval.dialogue import USER
from ci_eval.errors import TrialError
from ci_eval.json_text import NotJsonError, parse_json
from ci_eval.net import Address, Net, Request, StatusError, connecting, retry_after
from ci_eval.plugins import Agent, RunningAgent, Session, agent
from ci_eval.records import (
    AgentDetails,
    AppDetails,
    Content,
    FunctionCall,
    Invocation,
    InvocationEvent,
    InvocationEvents,
    Json,
    Part,
)
from ci_eval.trials import Trial
from ci_eval.world import World

NAME = "agent"
"""What the agent is called in events."""
OPENAI = "https://api.openai.com/v1"
ATTEMPTS = 4
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 60.0
"""How often a request is made that fails in passing, and what is waited before, twice as long each
time; where the provider wants it still later, it is not made again."""
_PASSING = frozenset({408, 409, 429})
"""What says "later", beside the codes from 500 on."""
_HOPELESS = frozenset({401, 403, 404})
"""What says that no other request would fare better."""
_OURS = ("model", "messages", "tools", "stream", "stream_options", "n")


def _not_ours(settings: dict[str, Json]) -> dict[str, Json]:
    taken = [name for name in settings if name in _OURS]
    if taken:
        raise ValueError(f"{taken[0]!r} is no setting: the agent itself says it")
    return settings


@agent("openai_chat")
class OpenAIChat(Prompted, Reached, Agent):
    """A model that is asked in OpenAI's way, with an instruction and tools with canned results.

    To try a prompt and the schemas of tools before there is an agent around them.  Any service
    with `/chat/completions` will do: OpenAI, vLLM, Ollama, a gateway; no package is needed.  A
    request that fails in passing (408, 409, 429 and from 500 on) is made up to four times, as late
    as the service says.

    Every answer of the model is an event, with its usage, and costs what is known of the price of
    the model.  A refusal is a response.  An answer that was cut off, or filtered, is final where
    it says something, and an error where it does not.
    """

    openai_chat: str = Field(min_length=1)
    """The model, such as `gpt-4o-mini`."""
    base_url: Address = OPENAI
    """Where requests go; `/chat/completions` is added."""
    api_key_env: str | None = Field(default=None, min_length=1)
    """The variable that holds the key; left out, `OPENAI_API_KEY` for OpenAI itself, and no key is
    sent to others."""
    settings: Annotated[dict[str, Json], AfterValidator(_not_ours)] = Field(default_factory=dict)
    """What a request says beside that, such as `{temperature: 0, max_completion_tokens: 500}`."""
    stream: bool = False
    """Whether answers come in pieces, which are put together."""

    def check(self, world: World) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with the key, the headers, the instruction and the results."""
        if self._key_name:
            yield from wrong_variable("api_key_env", self._key_name, world.env)
        yield from wrong_headers(self.headers, world.env)
        yield from self.wrong_prompt(world)

    @asynccontextmanager
    async def start(self, world: World) -> AsyncIterator[RunningAgent]:
        """Hold conversations; leaving the context closes the connections."""
        headers = filled_headers(self.headers, world.env)
        if self._key_name:
            headers["Authorization"] = f"Bearer {world.env.get(self._key_name, '').strip()}"
        async with connecting(world.env) as net:
            yield _Running(self, net, world, headers, self.told(world))

    @property
    def _key_name(self) -> str | None:
        host = urlsplit(self.base_url).hostname or ""
        is_openai = host == "openai.com" or host.endswith(".openai.com")
        return self.api_key_env or ("OPENAI_API_KEY" if is_openai else None)

    def body(self, instruction: str, said: list[Content]) -> dict[str, Json]:
        """Return what is sent after `said`.

        Raises:
            TrialError: a part of it has no place in a chat.

        """
        told = [{"role": "system", "content": instruction}] if instruction else []
        body = {"model": self.openai_chat, "messages": [*told, *messages(said)], **self.settings}
        if self.tools:
            body["tools"] = [{"type": "function", "function": each} for each in self._functions()]
        if self.stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return body

    def details(self, instruction: str) -> AppDetails:
        """Return what the model was told and which tools it had."""
        tools = ({"function_declarations": list(self._functions())},) if self.tools else ()
        found = AgentDetails(name=NAME, instructions=instruction, tool_declarations=tools)
        return AppDetails(agent_details={NAME: found})

    def _functions(self) -> Iterator[dict[str, Json]]:
        for tool in self.tools:
            yield tool.model_dump(mode="json", exclude_none=True)


@dataclass(frozen=True)
class _Running:
    """The model, as it is reached."""

    agent: OpenAIChat
    net: Net
    world: World
    headers: Mapping[str, str]
    told: str
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    async def open(self, trial: Trial, *, alone: bool = False, memento: Json = None) -> Session:
        del alone  # they always are alone
        prefix = f"ci-eval-{self.world.now() * 1000:.0f}-"
        state = opening(trial, f"{prefix}{next(self.numbers)}")["state"]
        tools = CannedTools(self.agent.results, trial)
        return _Conversation(self, filled_in(self.told, state), tools, state, memento)

    async def ask(self, body: dict[str, Json]) -> Said:
        """Return what the model answers, asked as often as it takes.

        Raises:
            TrialError: there is no answer.

        """
        url = f"{self.agent.base_url.rstrip('/')}/chat/completions"
        request = Request("POST", url, body, self.headers)
        attempt = 0
        while True:
            try:
                return read(request, await self._answer(request), self.agent.openai_chat)
            except TrialError as exc:
                attempt += 1
                pause = self._pause(exc, attempt)
                if pause is None:
                    raise _final(exc) from exc
            await asyncio.sleep(pause)

    async def _answer(self, request: Request) -> Json:
        if not self.agent.stream:
            return (await self.net.send(request)).json()
        assembly = Assembly()
        async with self.net.stream(request) as stream, aclosing(stream.events()) as events:
            async for data in events:
                with suppress(NotJsonError):  # `[DONE]`, and what keeps the connection awake
                    assembly.add(parse_json(data))
        if not assembly.is_whole:
            raise TrialError("connection", f"{request.shown} broke off in the middle of an answer")
        return assembly.body

    def _pause(self, error: TrialError, attempts: int) -> float | None:
        """Return how long to wait before the next attempt; `None` where that is of no use."""
        wanted = 0.0
        if isinstance(error, StatusError):
            status, headers = error.response.status, error.response.headers
            later = status in _PASSING or status >= 500
            if not later or "insufficient_quota" in error.response.text:
                return None
            wanted = retry_after(headers, self.world.now()) or 0.0
        if error.kind != "connection" or attempts == ATTEMPTS:
            return None
        pause = max(FIRST_PAUSE_S * 2.0 ** (attempts - 1), wanted)
        return pause if pause <= LONGEST_PAUSE_S else None


def _final(error: TrialError) -> TrialError:
    """Return `error` as one that is not worth another trial, where that is so."""
    if isinstance(error, StatusError) and error.response.status in _HOPELESS:
        return TrialError("start", str(error))
    return error


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
        self._instruction = instruction
        self._tools = tools
        self._state = state
        self._said = [Content.model_validate(each) for each in (memento or {}).get("said", ())]
        for content in self._said:
            tools.recall(_calls(content))

    @property
    def memento(self) -> Json:
        return {"said": [each.model_dump(mode="json", exclude_none=True) for each in self._said]}

    async def send(self, message: Content) -> Invocation:
        turn = _Turn(message, self._running.agent.details(self._instruction))
        self._said.append(message)
        try:
            return turn.seen(await self._work(turn))
        except TrialError as exc:
            exc.seen = turn.seen()
            raise

    async def close(self) -> dict[str, Json] | None:
        return self._state

    async def _work(self, turn: "_Turn") -> Content:
        """Ask the model until it calls no tool, and return what it says then."""
        agent = self._running.agent
        for _ in range(agent.max_calls):
            started = time.perf_counter()
            try:
                said = await self._running.ask(agent.body(self._instruction, self._said))
            finally:
                turn.model_s += time.perf_counter() - started
            content = self._named(said.content)
            self._said.append(content)
            turn.heard(said, content)
            calls = _calls(content)
            if not calls:
                return content
            self._said.append(self._answered(calls, turn))
        most = agent.max_calls
        message_ = (
            f"the model was asked {most} times in one invocation, and had still calls to make"
        )
        raise TrialError("raised", f"{message_}; raise `max_calls` of the agent")

    def _named(self, content: Content) -> Content:
        """Return `content` with an id of its own for every call; not all services give one."""
        known = {call.id for each in self._said for call in _calls(each)} | {None}
        parts = []
        for part in content.parts or ():
            call = part.function_call
            if call and call.id in known:
                made = (f"call-{number}" for number in count(1))
                fresh = next(each for each in made if each not in known)
                call = call.model_copy(update={"id": fresh})
            known |= {call.id} if call else set()
            parts.append(part.model_copy(update={"function_call": call}))
        return Content(role=content.role, parts=tuple(parts))

    def _answered(self, calls: list[FunctionCall], turn: "_Turn") -> Content:
        parts = tuple(Part(function_response=self._tools.answer(call)) for call in calls)
        content = Content(role=USER, parts=parts)
        turn.events.append(InvocationEvent(author=NAME, content=content))
        return content


@dataclass
class _Turn:
    """What becomes an invocation."""

    message: Content
    details: AppDetails
    events: list[InvocationEvent] = field(default_factory=list)
    costs: list[float | None] = field(default_factory=list)
    model_s: float = 0.0
    started: float = field(default_factory=time.perf_counter)

    def heard(self, said: Said, content: Content) -> None:
        """Take note of an answer of the model; of the last one it is the response."""
        told: dict[str, Any] = {"usage_metadata": said.usage, "model_version": said.model}
        called = content if _calls(content) else None
        self.events.append(InvocationEvent(author=NAME, content=called, **told))
        self.costs.append(said.cost_usd)

    def seen(self, final: Content | None = None) -> Invocation:
        """Return what there was up to now."""
        costs = [cost for cost in self.costs if cost is not None]
        known = len(costs) == len(self.costs) > 0
        return Invocation(
            user_content=self.message,
            final_response=final,
            intermediate_data=InvocationEvents(invocation_events=tuple(self.events)),
            app_details=self.details,
            duration=time.perf_counter() - self.started,
            model_duration=self.model_s,
            tool_duration=0.0,
            cost_usd=sum(costs) if known else None,
        )


def _calls(content: Content) -> list[FunctionCall]:
    return [part.function_call for part in content.parts or () if part.function_call]
