"""An agent that is any service which answers over HTTP."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from pydantic import Field

from ci_eval.agents._answers import CallsAt, Reading, told
from ci_eval.agents._expressions import (
    Expression,
    ExpressionError,
    Form,
    Template,
    asked_for,
    filled,
    filled_address,
)
from ci_eval.agents._reaching import (
    Reached,
    filled_headers,
    with_variables,
    wrong_address,
    wrong_headers,
)
from ci_eval.agents._request import as_asked, opening, refuse_tool_mocks, session_ids, turn_of
from ci_eval.agents._server import PORT, Server, Startable
from ci_eval.plugins.points import Agent, RunningAgent, Session, agent
from ci_eval.records.errors import TrialError
from ci_eval.records.model import Content, Invocation, Json
from ci_eval.records.trials import Trial
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.http import Net, Request, connecting
from ci_eval.text.json_text import NotJsonError, parse_json

DEFAULT_BODY: Mapping[str, Json] = {
    "message": "{{ message }}",
    "history": "{{ history }}",
    "session": "{{ session }}",
}
MAX_EVENTS = 100_000
"""How many events a streamed answer may have."""
_ORIGIN = re.compile(r"https?://[^/?#]*")
END = "[DONE]"
"""What many services send as the last event, which is no JSON."""


@agent("http")
class Http(Reached, Startable, Agent):
    """A service that answers over HTTP: one request for each message, of any shape.

    The address and the texts of the body are templates: `{{ message }}` is the user's message (a
    text; ADK's content object where there is more than text), `{{ messages }}` the whole
    conversation with it, as `[{"role": "user" | "assistant", "content"}]`, `{{ history }}` what was
    said before, as `[{"message", "response", "tool_calls"}]`, `{{ session }}` the object `{"id",
    "app_name", "user_id", "state"}`.  A text that is nothing but such an expression keeps its kind
    of JSON: `"{{ history }}"` is a list.  A case with `tool_mocks` is refused, unless the body
    hands them on as `{{ tool_mocks }}` to a service that heeds them.

    What comes back is read by expressions without braces, such as `answer.choices[0].message.text`:
    `answer` is the body.  Where none is given, the body is a text, or what a [command](#command)
    answers, `{"response", "tool_calls"?, "usage"?}`.  Both are in the language of
    [Jinja](https://jinja.palletsprojects.com/en/stable/templates/#expressions), with its filters.

    A service that does not say which tools were called has no trajectory, which is not the same as
    an empty one: criteria for tools are errors.  Redirects are not followed, no cookies are kept,
    and failed requests are made again only as `run.retries` says.
    """

    http: Template
    """The address, such as `https://example.com/chat/{{ session.id }}`; what is put in is
    percent-encoded. `${NAME}` stands for an environment variable, as in `headers`, and `{port}` for
    that of a started server."""
    method: Literal["POST", "PUT", "PATCH", "GET"] = "POST"
    """How it is asked; with `GET` no body is sent."""
    body: Form = Field(default_factory=lambda: dict(DEFAULT_BODY))
    """The JSON that is sent; left out, `{"message", "history", "session"}`, which a command gets,
    too."""
    response: Expression | None = None
    """Where the text of the answer is; what is no text is written as JSON."""
    tool_calls: CallsAt | None = None
    """Where the tool calls are: a list of `{"name", "args", "result"?}` or of calls as OpenAI has
    them; or `{each, name, args, result}`, which says what each is made of. Where nothing is found,
    nothing is known of them; `answer.calls or []` says that there were none."""
    usage: Expression | None = None
    """Where the object with `input_tokens` and `output_tokens` (or `prompt_tokens` and
    `completion_tokens`) and `cost_usd` is. Tokens are counted only where `tool_calls` is known,
    beside which a trace keeps them."""
    state: Expression | None = None
    """Where the state of the session is, an object; the last one is the final state."""
    session: Expression | None = None
    """Where the first answer names the session; until then `session.id` is null."""
    stream: Literal["sse"] | None = None
    """`sse`: the answer is a stream of server-sent events. `answer` is then `{"text", "events"}`:
    what the events add up to, and the data of each, as JSON where it is JSON."""
    delta: Expression = "event.delta"
    """Where each `event` of a stream has its piece of the text; most have none."""
    timeout_s: float | None = Field(default=None, gt=0)
    """How long one answer may take, in seconds; left out, as long as the trial may."""

    def check(self, context: RunContext) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with the address, the headers and how the server is started."""
        plain = re.sub("{{.*?}}", "x", self.http).replace(PORT, "1")
        yield from wrong_address("http", plain, context.env)
        yield from self.wrong_start(self.http, context)
        yield from wrong_headers(self.headers, context.env)

    @asynccontextmanager
    async def start(self, context: RunContext) -> AsyncIterator[RunningAgent]:
        """Hold conversations; leaving the context stops a server that was started for them."""
        address = with_variables(self.http, context.env)
        found = _ORIGIN.match(address)
        origin = found[0] if found else ""
        way = _Way(address.removeprefix(origin), filled_headers(self.headers, context.env))
        async with connecting(context.env) as net, self.served(origin, context, net) as server:
            yield _Running(self, net, server, way, session_ids(context))


class _Way(NamedTuple):
    """What requests have beside the server."""

    path: str
    """A template."""
    headers: Mapping[str, str]


@dataclass(frozen=True)
class _Running:
    """The service, as it is reached."""

    agent: Http
    net: Net
    server: Server
    way: _Way
    session_ids: Iterator[str]

    async def open(self, trial: Trial, *, alone: bool = False, memento: Json = None) -> Session:
        del alone  # nobody else is disturbed
        asked = asked_for([self.agent.http, self.agent.body])
        if "tool_mocks" not in asked:
            refuse_tool_mocks(trial, self.agent.type_name)
        await self.server.address()  # to start takes no time of the trial's
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
        reading = Reading(request, answer)
        reply = reading.reply(self._agent)
        before = self._known["history"]
        invocation = told(message, reply, seconds=took, number=len(before) + 1)
        history = [*before, turn_of(asked, reply)]
        self._known = {**self._known, "history": history}
        self._take_session(reading)
        return invocation

    async def close(self) -> dict[str, Json] | None:
        return self._state

    @property
    def output(self) -> str:
        return self._running.server.output

    async def _request(self, asked: Json) -> Request:
        agent, way = self._agent, self._running.way
        data = {**self._known, "message": asked, "messages": _messages(self._known, asked)}
        try:
            path = filled_address(way.path, data)
            body = None if agent.method == "GET" else filled(agent.body, data)
        except ExpressionError as exc:
            raise TrialError("unsupported", f"the request cannot be made: {exc}") from exc
        url = await self._running.server.address() + path
        return Request(agent.method, url, body, way.headers)

    async def _answer(self, request: Request) -> Json:
        """Return what comes back: JSON, or the text that it is."""
        limit = self._agent.timeout_s
        try:
            async with asyncio.timeout(limit):
                if self._agent.stream:
                    return await self._streamed(request)
                response = await self._running.net.send(request)
        except TimeoutError:
            raise TrialError("timeout", f"{request.shown} gave no answer in {limit:g} s") from None
        if response.headers.get("Content-Type", "").startswith("text/plain"):
            response.require_success()
            return response.text
        return response.json()

    async def _streamed(self, request: Request) -> Json:
        events: list[Json] = []
        async with (
            self._running.net.stream(request) as stream,
            aclosing(stream.events()) as coming,
        ):
            async for data in coming:
                if len(events) == MAX_EVENTS:
                    message = f"{request.shown} sent more than {MAX_EVENTS:,} events"
                    raise TrialError("protocol", message)
                if data != END:
                    events.append(_event(data))
        return Reading(request, events).put_together(self._agent.delta)

    def _take_session(self, reading: Reading) -> None:
        if self._agent.state:
            self._state = reading.state(self._agent.state)
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


def _event(data: str) -> Json:
    try:
        return parse_json(data)
    except NotJsonError:
        return data
