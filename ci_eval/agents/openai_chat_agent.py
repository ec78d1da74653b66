"""Models with OpenAI's chat API as agents, with an instruction and canned tools."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from ci_eval.agents._agent_address import NetworkAgent, wrong_variable
from ci_eval.agents._chat_completions import Assembly, messages, read
from ci_eval.agents._model_agent import Prompted
from ci_eval.agents._model_agent_retries import retried
from ci_eval.agents._model_session import ModelSession, fresh_ids
from ci_eval.formats.event_lists import calls_of
from ci_eval.formats.gemini_stream import ModelResponse
from ci_eval.plugins.points import Agent, RunningAgent, Session, agent
from ci_eval.records.cases import Content, Json
from ci_eval.records.errors import TrialError
from ci_eval.records.trials import Trial
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.http import Address, Net, Request, StatusError, connecting
from ci_eval.runtime.retry import retry_after
from ci_eval.text.json_text import NotJsonError, parse_json

OPENAI = "https://api.openai.com/v1"
_TEMPORARY = frozenset({408, 409, 429})
"""Status codes of temporary errors, in addition to 500 and above."""
_FATAL = frozenset({401, 403, 404})
"""Status codes of errors that every request would have."""
_RESERVED = ("model", "messages", "tools", "stream", "stream_options", "n")


def _without_reserved(settings: dict[str, Json]) -> dict[str, Json]:
    reserved = [name for name in settings if name in _RESERVED]
    if reserved:
        raise ValueError(f"{reserved[0]!r} cannot be in `settings`: the agent sets it")
    return settings


_Settings = Annotated[dict[str, Json], AfterValidator(_without_reserved)]


@agent("openai_chat")
class OpenAIChat(Prompted, NetworkAgent, Agent):
    """A model with OpenAI's chat API, an instruction, and tools with canned results.

    Use it to test a prompt and tool schemas before there is an agent around them.  Any service
    with `/chat/completions` works: OpenAI, vLLM, Ollama, a gateway; no package is needed.  A
    request that fails temporarily (status 408, 409, 429 or 500 and above) is attempted up to four
    times, after the pause that the service requests.

    Each model response is an event with its usage, and with its cost if the model's price is known.
    A refusal is a response.  A response that was cut off or filtered is final if it has content,
    and otherwise an error.
    """

    model_option = "openai_chat"

    openai_chat: str = Field(min_length=1)
    """The model, such as `gpt-4o-mini`."""
    base_url: Address = OPENAI
    """Base address of the API; `/chat/completions` is appended."""
    api_key_env: str | None = Field(default=None, min_length=1)
    """The environment variable with the API key; default: `OPENAI_API_KEY` for OpenAI, and no key
    for other services."""
    settings: _Settings = Field(default_factory=dict)
    """Other parameters of a request, such as `{temperature: 0, max_completion_tokens: 500}`."""
    stream: bool = False
    """Whether responses are streamed, and then joined."""

    def check(self, context: RunContext) -> Iterator[tuple[str, str]]:
        """Yield the errors in the key, the headers, the instruction and the results."""
        if self._key_name:
            yield from wrong_variable("api_key_env", self._key_name, context)
        yield from self.wrong_headers(context)
        yield from super().check(context)

    @asynccontextmanager
    async def start(self, context: RunContext) -> AsyncIterator[RunningAgent]:
        """Open the connections; leaving the context closes them."""
        headers = self.filled_headers(context.env)
        if self._key_name:
            headers["Authorization"] = f"Bearer {context.env.get(self._key_name, '').strip()}"
        async with connecting(context.env) as net:
            yield _Running(self, net, context, headers, self.instruction_text(context))

    @property
    def _key_name(self) -> str | None:
        host = urlsplit(self.base_url).hostname or ""
        is_openai = host == "openai.com" or host.endswith(".openai.com")
        return self.api_key_env or ("OPENAI_API_KEY" if is_openai else None)

    def body(self, instruction: str, said: list[Content]) -> dict[str, Json]:
        """Return the request body for the messages `said`.

        Raises:
            TrialError: chats do not support a part of them.

        """
        system = [{"role": "system", "content": instruction}] if instruction else []
        body = {"model": self.openai_chat, "messages": [*system, *messages(said)], **self.settings}
        if self.tools:
            declared = [tool.declared() for tool in self.tools]
            body["tools"] = [{"type": "function", "function": each} for each in declared]
        if self.stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return body


@dataclass(frozen=True)
class _Running:
    """Connection to the model."""

    agent: OpenAIChat
    net: Net
    context: RunContext
    headers: Mapping[str, str]
    template: str

    async def open(self, trial: Trial, *, alone: bool = False, memento: Json = None) -> Session:
        del alone  # it always is
        return _Conversation(self, trial, memento)

    async def ask(self, body: dict[str, Json]) -> ModelResponse:
        """Return the model's response, with retries.

        Raises:
            TrialError: there is none.

        """
        url = f"{self.agent.base_url.rstrip('/')}/chat/completions"
        request = Request("POST", url, body, self.headers)
        try:
            return await retried(lambda: self._ask_once(request), self._wait)
        except StatusError as exc:
            if exc.response.status in _FATAL:
                raise TrialError("start", str(exc)) from exc
            raise

    async def _ask_once(self, request: Request) -> ModelResponse:
        return read(request, await self._answer(request), self.agent.openai_chat)

    async def _answer(self, request: Request) -> Json:
        if not self.agent.stream:
            return (await self.net.send(request)).json()
        assembly = Assembly()
        async with self.net.stream(request) as events:
            async for data in events:
                with suppress(NotJsonError):  # `[DONE]`, and keep-alive messages
                    assembly.add(parse_json(data))
        if not assembly.is_whole:
            raise TrialError("connection", f"{request.shown} ended in the middle of a response")
        return assembly.body

    def _wait(self, error: TrialError) -> float | None:
        """Return the minimum pause before a retry; `None` if a retry is pointless."""
        if error.kind != "connection":
            return None
        if not isinstance(error, StatusError):
            return 0.0
        response = error.response
        is_temporary = response.status in _TEMPORARY or response.status >= 500
        if not is_temporary or "insufficient_quota" in response.text:
            return None
        return retry_after(response.headers, self.context.now()) or 0.0


class _Conversation(ModelSession):
    """One conversation with the model."""

    def __init__(self, running: _Running, trial: Trial, memento: Json) -> None:
        agent = running.agent
        super().__init__(agent, agent.openai_chat, running.template, trial, memento)
        self._running = running

    async def ask(self) -> ModelResponse:
        body = self._running.agent.body(self.instruction, self.said)
        response = await self._running.ask(body)
        content = response.content and _with_unique_ids(response.content, self.said)
        return response.model_copy(update={"content": content})


def _with_unique_ids(content: Content, said: list[Content]) -> Content:
    """Return `content` with an id for every call, unique in `said`; some calls have no own id."""
    taken = {call.id for each in said for call in calls_of(each)} | {None}
    fresh = fresh_ids("call-", [*said, content])
    parts = []
    for part in content.parts or ():
        call = part.function_call
        if call and call.id in taken:
            call = call.model_copy(update={"id": next(fresh)})
        taken |= {call.id} if call else set()
        parts.append(part.model_copy(update={"function_call": call}))
    return content.model_copy(update={"parts": tuple(parts)})
