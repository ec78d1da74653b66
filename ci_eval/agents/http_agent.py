"""HTTP services as agents."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from pydantic import Field

from ci_eval.agents import _http_expressions as expressions
from ci_eval.agents._agent_address import with_variables
from ci_eval.agents._agent_input import as_asked, opening, refuse_tool_mocks, session_ids, turn_of
from ci_eval.agents._agent_reply import to_invocation
from ci_eval.agents._agent_server import ServedAgent, Server
from ci_eval.agents._http_responses import CallsAt, Reading
from ci_eval.plugins.points import Agent, RunningAgent, Session, agent
from ci_eval.records.cases import Content, Invocation, Json
from ci_eval.records.errors import TrialError
from ci_eval.records.trials import Trial
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.http import Request
from ci_eval.text.json_text import json_or_text

DEFAULT_BODY: Mapping[str, Json] = {
    "message": "{{ message }}",
    "history": "{{ history }}",
    "session": "{{ session }}",
}
MAX_EVENTS = 100_000
"""Maximum number of events in a streamed answer."""
_ORIGIN = re.compile(r"https?://[^/?#]*")
END = "[DONE]"
"""The last event of many services, which is not JSON."""


@agent("http")
class Http(ServedAgent, Agent):
    """An HTTP service that gets one request per message, in any JSON format.

    The address and the texts of the body are templates: `{{ message }}` is the user's message (a
    text; ADK's content object if there is more than text), `{{ messages }}` the conversation
    including it, as `[{"role": "user" | "assistant", "content"}]`, `{{ history }}` the previous
    turns, as `[{"message", "response", "tool_calls"}]`, `{{ session }}` the object `{"id",
    "app_name", "user_id", "state"}`.  A text that is only an expression keeps its JSON type:
    `"{{ history }}"` is a list.  A case with `tool_mocks` is rejected, unless the body passes them
    as `{{ tool_mocks }}` to a service that uses them.

    The response is read by expressions without braces, such as `answer.choices[0].message.text`,
    where `answer` is the body.  By default, the body is a text, or the answer of a
    [command](#command), `{"response", "tool_calls"?, "usage"?}`.  Templates and expressions are
    [Jinja](https://jinja.palletsprojects.com/en/stable/templates/#expressions), with its filters.

    A service that does not report its tool calls has no trajectory, which differs from an empty
    one: criteria for tools are errors.  Redirects are not followed, no cookies are kept, and failed
    requests are only retried by `run.retries`.
    """

    http: expressions.Template
    """The address, such as `https://example.com/chat/{{ session.id }}`; inserted values are
    percent-encoded. `${NAME}` stands for an environment variable, as in `headers`, and `{port}` for
    the port of a started server."""
    method: Literal["POST", "PUT", "PATCH", "GET"] = "POST"
    """The HTTP method; `GET` sends no body."""
    body: expressions.Form = Field(default_factory=lambda: dict(DEFAULT_BODY))
    """The JSON body of the request; default: `{"message", "history", "session"}`, as for a
    command."""
    response: expressions.Expression | None = None
    """The response text in the answer; other values are converted to JSON."""
    tool_calls: CallsAt | None = None
    """The tool calls in the answer: a list of `{"name", "args", "result"?}` or in OpenAI's format;
    or `{each, name, args, result}`, with expressions for the fields of each. If it finds nothing,
    the tool calls are unknown; `answer.calls or []` means that there were none."""
    usage: expressions.Expression | None = None
    """The object with `input_tokens` and `output_tokens` (or `prompt_tokens` and
    `completion_tokens`) and `cost_usd`. Tokens are only counted if the tool calls are known,
    because a trace stores them together."""
    state: expressions.Expression | None = None
    """The session state, an object; the last one is the final state."""
    session: expressions.Expression | None = None
    """The session id in the first answer; until then `session.id` is null."""
    stream: Literal["sse"] | None = None
    """`sse`: the answer is a stream of server-sent events. `answer` is then `{"text", "events"}`:
    the joined text, and the data of each event, parsed if it is JSON."""
    delta: expressions.Expression = "event.delta"
    """The piece of text in each `event` of a stream, if any."""
    timeout_s: float | None = Field(default=None, gt=0)
    """Timeout of one answer in seconds; default: that of the trial."""

    def check(self, context: RunContext) -> Iterator[tuple[str, str]]:
        """Yield the errors in the address, the headers and the options to start the server."""
        yield from self.wrong_access(re.sub("{{.*?}}", "x", self.http), context)

    @asynccontextmanager
    async def start(self, context: RunContext) -> AsyncIterator[RunningAgent]:
        """Start the server, if configured; leaving the context stops it."""
        address = with_variables(self.http, context.env)
        found = _ORIGIN.match(address)
        origin = found[0] if found else ""
        path = address.removeprefix(origin)
        async with self.served(origin, context) as server:
            yield _Running(self, server, path, session_ids(context))


@dataclass(frozen=True)
class _Running:
    """Connection to the service."""

    agent: Http
    server: Server
    path: str
    """The template for the path of a request."""
    session_ids: Iterator[str]

    async def open(self, trial: Trial, *, alone: bool = False, memento: Json = None) -> Session:
        del alone  # conversations never disturb each other
        return await self.server.hold(trial, partial(self._open, trial, memento))

    async def _open(self, trial: Trial, memento: Json) -> Session:
        asked = expressions.asked_for([self.agent.http, self.agent.body])
        if "tool_mocks" not in asked:
            refuse_tool_mocks(trial, self.agent.type_name)
        await self.server.address()  # the server's start does not count towards the trial's time
        session = opening(trial, next(self.session_ids))
        if self.agent.session:
            session["id"] = None
        known: dict[str, Json] = {"history": [], "session": session, **(memento or {})}
        mocks = trial.case.tool_mocks
        known["tool_mocks"] = mocks.model_dump(mode="json") if mocks else None
        return _Conversation(self, known)


class _Conversation(Session):
    """One conversation with the service."""

    def __init__(self, running: _Running, known: dict[str, Any]) -> None:
        self._running = running
        self._agent = running.agent
        self._known = known
        self._state: dict[str, Json] | None = None

    @property
    def memento(self) -> Json:
        return {"history": self._known["history"], "session": self._known["session"]}

    async def send(self, message: Content) -> Invocation:
        asked = as_asked(message)
        request = await self._request(asked)
        started = time.perf_counter()
        async with self._running.server.watched():
            answer = await self._answer(request)
        took = time.perf_counter() - started
        reading, agent = Reading(request, answer), self._agent
        text = agent.response or ("answer.text" if agent.stream else None)
        reply = reading.reply(text, agent.tool_calls, agent.usage)
        before = self._known["history"]
        invocation = to_invocation(message, reply, seconds=took, number=len(before) + 1)
        if reply.get("tool_calls") is None:  # unknown, which is not the same as none
            invocation = invocation.model_copy(update={"intermediate_data": None})
        history = [*before, turn_of(asked, reply)]
        self._known = {**self._known, "history": history}
        self._update_session(reading)
        return invocation

    async def close(self) -> dict[str, Json] | None:
        return self._state

    @property
    def output(self) -> str:
        return self._running.server.output

    async def _request(self, asked: Json) -> Request:
        agent, server = self._agent, self._running.server
        data = {**self._known, "message": asked, "messages": _messages(self._known, asked)}
        try:
            path = expressions.filled_address(self._running.path, data)
            body = None if agent.method == "GET" else expressions.filled(agent.body, data)
        except expressions.ExpressionError as exc:
            raise TrialError("unsupported", f"the request cannot be created: {exc}") from exc
        return Request(agent.method, await server.address() + path, body, server.headers)

    async def _answer(self, request: Request) -> Json:
        """Return the answer: JSON or text."""
        limit = self._agent.timeout_s
        try:
            async with asyncio.timeout(limit):
                if self._agent.stream:
                    return await self._streamed(request)
                response = await self._running.server.net.send(request)
        except TimeoutError:
            message = f"{request.shown} did not answer within {limit:g} s"
            raise TrialError("timeout", message) from None
        if response.headers.get("Content-Type", "").startswith("text/plain"):
            response.require_success()
            return response.text
        return response.json()

    async def _streamed(self, request: Request) -> Json:
        events: list[Json] = []
        async with self._running.server.net.stream(request) as stream:
            async for data in stream:
                if len(events) == MAX_EVENTS:
                    message = f"{request.shown} sent more than {MAX_EVENTS:,} events"
                    raise TrialError("protocol", message)
                if data != END:
                    events.append(json_or_text(data))
        return Reading(request, events).joined(self._agent.delta)

    def _update_session(self, reading: Reading) -> None:
        if self._agent.state:
            self._state = reading.object_at(self._agent.state)
        if self._agent.session and self._known["session"]["id"] is None:
            session = {**self._known["session"], "id": reading.session(self._agent.session)}
            self._known = {**self._known, "session": session}


def _messages(known: Mapping[str, Json], asked: Json) -> list[Json]:
    turns = [
        {"role": role, "content": turn[key]}
        for turn in known["history"]
        for role, key in (("user", "message"), ("assistant", "response"))
    ]
    return [*turns, {"role": "user", "content": asked}]
