"""Agents that are reached by the Agent2Agent protocol."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from functools import partial
from itertools import count
from typing import ClassVar, Literal
from urllib.parse import urljoin, urlsplit

from pydantic import ValidationError

from ci_eval.agents import _a2a_wire as wire
from ci_eval.agents._a2a_task import Progress, Received
from ci_eval.agents._agent_address import with_variables
from ci_eval.agents._agent_input import refuse_tool_mocks, session_ids
from ci_eval.agents._agent_server import ServedAgent, Server, UrlPath
from ci_eval.plugins.points import Agent, RunningAgent, Session, agent
from ci_eval.records.cases import Content, Invocation, Json
from ci_eval.records.errors import FailureKind, TrialError
from ci_eval.records.trials import Trial
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.http import Request, is_local, shown_address
from ci_eval.runtime.retry import Backoff
from ci_eval.text.json_text import NotJsonError, parse_json
from ci_eval.text.sanitize import one_line

CARD = "/.well-known/agent-card.json"
OLD_CARD = "/.well-known/agent.json"
"""The paths of the card, since version 0.3 and before."""
BACKOFF = Backoff(first_s=0.2, longest_s=3.0)
"""Pauses between requests for the state of an unfinished task."""
SAID_CHARS = 500
_FAILURES: Mapping[str, str] = {
    "failed": "the agent failed",
    "rejected": "the agent rejected the task",
    "canceled": "the task was canceled",
    "auth-required": "the agent requires authorization; set it in `headers`",
}


@agent("a2a")
class A2A(ServedAgent, Agent):
    """An agent reached by the Agent2Agent protocol, version 0.3 or 1.0, over JSON-RPC.

    Its card states the address for messages, the version, and whether answers are streamed.  All
    messages of a case share the context that the agent assigns to the first.  A running task is
    polled until it ends; its artifacts are the response or, without artifacts, the agent's last
    message.  A task that failed, was rejected or canceled is an error with the agent's message.

    An agent that requires input waits for the call `input_required`, with its question as the
    argument `message`: `human_answers` of the case may answer it.  ADK's servers (`to_a2a`) wait
    for the tools themselves, and are answered like ADK's own agents; they also report their tool
    calls.  Other servers do not report them, so criteria for tools are errors.  The protocol does
    not support the session state of a case.
    """

    takes_state: ClassVar[bool] = False

    a2a: str
    """The base address, such as `http://127.0.0.1:9999`. `${NAME}` stands for an environment
    variable, as in `headers`, and `{port}` for the port of a started server."""
    card: UrlPath = CARD
    """Path of the card, appended to the address."""
    endpoint: UrlPath | None = None
    """Path for messages, to override the address in the card."""
    stream: Literal["auto", True, False] = "auto"
    """Whether answers are streamed; `auto`: if the card supports it."""
    input_required: Literal["human", "user"] = "human"
    """Who answers if the agent requires input: a `human`, by `human_answers`, or the `user`, with
    the next message of the case."""

    @asynccontextmanager
    async def start(self, context: RunContext) -> AsyncIterator[RunningAgent]:
        """Start the server, if configured; leaving the context stops it."""
        async with self.served(with_variables(self.a2a, context.env), context) as server:
            yield _Running(self, server, session_ids(context))


class _Running:
    """Connection to the agent."""

    def __init__(self, agent: A2A, server: Server, names: Iterator[str]) -> None:
        self.agent = agent
        self.server = server
        self._names = names
        """The names of the conversations."""
        self._address = ""
        self._found: wire.Interface | None = None
        self._lock = asyncio.Lock()
        self._numbers = count(1)

    async def open(self, trial: Trial, *, alone: bool = False, memento: Json = None) -> Session:
        del alone  # conversations never disturb each other
        return await self.server.hold(trial, partial(self._open, trial, memento))

    async def _open(self, trial: Trial, memento: Json) -> Session:
        refuse_tool_mocks(trial, self.agent.type_name)
        async with self.server.watched():
            found = await self._interface()
        return _Conversation(self, found, next(self._names), memento or {})

    async def _interface(self) -> wire.Interface:
        """Return the interface from the agent card.

        Raises:
            TrialError: there is no card, or it cannot be used.

        """
        async with self._lock:
            address = await self.server.address()
            if self._found is None or self._address != address:
                self._address = address
                self._found = await self._read_card()
            return self._found

    async def call(self, method: str, params: Mapping[str, Json]) -> wire.Update:
        """Call `method`, and return its result.

        Raises:
            TrialError: the call failed.

        """
        request = await self._request(method, params)
        return _result(request, (await self.server.net.send(request)).json())

    async def stream(
        self, method: str, params: Mapping[str, Json]
    ) -> AsyncGenerator[wire.Update, None]:
        """Call `method`, and yield its results as they arrive.

        Raises:
            TrialError: the call failed, or the connection was lost.

        """
        request = await self._request(method, params)
        async with self.server.net.stream(request) as events:
            async for data in events:
                try:
                    body = parse_json(data)
                except NotJsonError as exc:
                    what = request.quoted(data)
                    message = f"{request.shown} sent the event {what!r}, which {exc}"
                    raise TrialError("protocol", message) from None
                yield _result(request, body)

    async def _request(self, method: str, params: Mapping[str, Json]) -> Request:
        found = await self._interface()
        if found.tenant:
            params = {**params, "tenant": found.tenant}
        body = {"jsonrpc": "2.0", "id": next(self._numbers), "method": method, "params": params}
        accept = "text/event-stream" if method == found.version.stream else "application/json"
        headers = {"Accept": accept, **found.version.headers, **self.server.headers}
        return Request("POST", found.url, body, headers)

    async def _read_card(self) -> wire.Interface:
        net, card = self.server.net, self.agent.card
        request = Request("GET", self._address + card, headers=self.server.headers)
        response = await net.send(request)
        if response.status == 404 and card == CARD:
            older = request._replace(url=self._address + OLD_CARD)
            found = await net.send(older)
            if found.status != 404:
                request, response = older, found
        return self._followed(request, _interface(request, response.json()))

    def _followed(self, request: Request, found: wire.Interface) -> wire.Interface:
        """Return `found` with the address to use.

        Raises:
            TrialError: it is on another host, which must not get our headers with a possible key.

        """
        if self.agent.endpoint:
            return found._replace(url=self._address + self.agent.endpoint)
        url = urljoin(self._address + "/", found.url)
        if self.server.headers and not _is_same_host(url, self._address):
            message = f"the card at {request.shown} names another host, {shown_address(url)}"
            hint = "`headers` are not sent there; use that address, or set `endpoint`"
            raise TrialError("start", f"{message}: {hint}")
        return found._replace(url=url)


def _is_same_host(one: str, other: str) -> bool:
    hosts = {urlsplit(one).hostname, urlsplit(other).hostname}
    return len(hosts) == 1 or (is_local(one) and is_local(other))


def _interface(request: Request, body: Json) -> wire.Interface:
    try:
        return wire.Card.model_validate(body).interface()
    except ValidationError:
        what = request.quoted(str(body))
        message = f"{request.shown} is not an agent card: {what}"
        raise TrialError("protocol", message) from None
    except ValueError as exc:
        raise TrialError("start", f"the agent card at {request.shown} {exc}") from None


def _result(request: Request, body: Json) -> wire.Update:
    """Return the result in a JSON-RPC response."""
    answer = body if isinstance(body, dict) else {}
    if isinstance(error := answer.get("error"), dict):
        why = request.quoted(f"{error.get('message')} {error.get('data') or ''}".strip())
        message = f"{request.shown} returned the error {error.get('code')}: {why}"
        raise TrialError("raised", message)
    try:
        return wire.read_update(answer.get("result"))
    except ValueError as exc:
        what = request.quoted(str(body))
        raise TrialError("protocol", f"{request.shown} answered {what}, which {exc}") from None


class _Conversation(Session):
    """One conversation with the agent."""

    def __init__(
        self, running: _Running, found: wire.Interface, name: str, memento: Mapping[str, Json]
    ) -> None:
        self._running = running
        self._version: wire.Version = found.version
        how = running.agent.stream
        self._streams = found.streams if how == "auto" else how
        self._name = name
        self._numbers = count(1)
        self._received = Received.model_validate(memento.get("heard", {}))
        self._ids: dict[str, str] = dict(memento.get("ids", {}))
        """The ids of the context and of the task that waits for an answer."""

    @property
    def memento(self) -> Json:
        received = self._received.model_dump(mode="json", by_alias=True, exclude_none=True)
        return {"ids": self._ids, "heard": received}

    @property
    def output(self) -> str:
        return self._running.server.output

    async def send(self, message: Content) -> Invocation:
        identity = f"{self._name}-{next(self._numbers)}"
        asked = self._version.message(message, {"messageId": identity, **self._ids})
        progress = Progress(self._received)
        started = time.perf_counter()
        try:
            async with self._running.server.watched():
                await self._work(asked, progress)
            self._remember(progress)
            _require_success(progress)
        except TrialError as exc:
            exc.seen = progress.invocation(message, time.perf_counter() - started)
            raise
        found = progress.invocation(message, time.perf_counter() - started)
        waits_for_user = self._running.agent.input_required == "user"
        if waits_for_user and any(call.name == wire.INPUT_REQUIRED for call in found.waits_for):
            return found.model_copy(update={"waits_for": ()})
        return found

    async def _work(self, asked: dict[str, Json], progress: Progress) -> None:
        """Send the message, and wait until its task is settled."""
        peer, version = self._running, self._version
        if self._streams:
            async with aclosing(peer.stream(version.stream, {"message": asked})) as updates:
                async for update in updates:
                    progress.add(update)
                    # A whole task may have the state before our message.
                    if progress.is_settled and not isinstance(update, wire.Task):
                        break
        else:
            progress.add(await peer.call(version.send, {"message": asked}))
        pauses = BACKOFF.pauses()
        while not progress.is_settled:
            if progress.task_id is None:
                raise TrialError("protocol", "the agent's stream ended without a task or a message")
            await asyncio.sleep(next(pauses))
            progress.add(await peer.call(version.get, {"id": progress.task_id}))

    def _remember(self, progress: Progress) -> None:
        task = progress.task_id if progress.state == "input-required" else None
        ids = {"contextId": progress.context_id, "taskId": task}
        self._ids = {key: value for key, value in ids.items() if value}


def _require_success(progress: Progress) -> None:
    if progress.state in _FAILURES:
        failure = _FAILURES[progress.state]
        detail = one_line(progress.status_text, SAID_CHARS)
        kind: FailureKind = "unsupported" if progress.state == "auth-required" else "raised"
        raise TrialError(kind, f"{failure}: {detail}" if detail else failure)
