"""Agents of Google ADK behind an API server."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

from pydantic import Field, ValidationError

from ci_eval.agents._adk_api import Api, Place, is_taken
from ci_eval.agents._adk_events import Rules, refuse_silence, to_invocation
from ci_eval.agents._agent_address import with_variables
from ci_eval.agents._agent_input import opening, refuse_tool_mocks, session_ids
from ci_eval.agents._agent_server import ServedAgent, Server, UrlPath
from ci_eval.formats.event_lists import calls_of
from ci_eval.formats.gemini_stream import MADE_BY_US, Aggregator, ModelResponse
from ci_eval.plugins.points import Agent, RunningAgent, Session, agent
from ci_eval.records.cases import Content, Invocation, Json
from ci_eval.records.errors import TrialError
from ci_eval.records.trials import Trial
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.http import SHOWN_CHARS
from ci_eval.text.sanitize import one_line
from ci_eval.text.suggest import did_you_mean

OPEN_S = 60.0
"""Timeout for opening a session on a server that is ready."""
OLD = (2, 3)
"""The last version of ADK that keeps less data of a run."""


@agent("adk_server")
class AdkServer(ServedAgent, Agent):
    """An agent of Google ADK behind an API server: `adk api_server`, `adk web`, or your own.

    Name the address of a running server, or start one for the run with `start`, such as
    `[adk, api_server, --port, "{port}", --session_service_uri, "memory://", agents]`, which leaves
    no files behind.
    Each case gets its own session with its initial state and, unless the case names a user, its
    own user.  The session is not deleted.  Its last state is the final state.

    The trace is as with the `adk` agent, but without the models' instructions and tools, which
    servers do not report.  Tools cannot have canned results.  A run that loses its connection is
    an error, with the events received before.
    """

    adk_server: str | None
    """The address, such as `http://127.0.0.1:8000`. With `start` it may be empty, or have `{port}`;
    `${NAME}` stands for an environment variable, as in `headers`."""
    app: str | None = Field(default=None, min_length=1)
    """Name of the app; default: the server's only app."""
    stream: bool = False
    """Whether models stream their responses, as for an interactive user."""
    ready: UrlPath | None = "/health"
    """A path that returns a status below 500 once the started server is ready."""

    @asynccontextmanager
    async def start(self, context: RunContext) -> AsyncIterator[RunningAgent]:
        """Start the server, if configured; leaving the context stops it."""
        address = self.adk_server and with_variables(self.adk_server, context.env)
        async with self.served(address, context) as server:
            yield _Running(self, server, session_ids(context))


class _Running:
    """Connection to an API server."""

    def __init__(self, agent: AdkServer, server: Server, ids: Iterator[str]) -> None:
        self.agent = agent
        self.server = server
        self._session_ids = ids
        self._about: tuple[str, Rules] | None = None
        """The app, and the rules of the server's version of ADK."""
        self._lock = asyncio.Lock()

    async def open(self, trial: Trial, *, alone: bool = False, memento: Json = None) -> Session:
        del alone  # all conversations share the server
        return await self.server.hold(trial, partial(self._begin, trial, memento))

    async def _begin(self, trial: Trial, memento: Json) -> Session:
        refuse_tool_mocks(trial, "adk_server")
        async with self.server.watched():
            api = Api(self.server.net, await self.server.address(), self.server.headers)
            try:
                async with asyncio.timeout(OPEN_S):
                    return await self._open(api, trial, memento)
            except TimeoutError:
                message = f"the server did not open a session within {OPEN_S:g} s"
                raise TrialError("connection", message) from None

    async def _open(self, api: Api, trial: Trial, memento: Json) -> Session:
        app, rules = await self._describe(api)
        if memento is None:
            session = opening(trial, next(self._session_ids))
            user = session["user_id"] if trial.case.session_input else session["id"]
            place = Place(app, user, session["id"])
            await _begin(api, place, session["state"], trial)
            return _Conversation(self, api, place, rules)
        place = Place(*memento["place"])
        if await api.state(place) is None:
            message = f"the server no longer has the session {place.session!r}"
            raise TrialError("start", f"{message}; run without --resume")
        return _Conversation(self, api, place, rules, memento["asked"])

    async def _describe(self, api: Api) -> tuple[str, Rules]:
        async with self._lock:
            if self._about is None:
                version = await api.version()
                rules: Rules = "adk@2.3" if version and version <= OLD else "adk"
                self._about = _chosen(self.agent.app, await api.apps()), rules
            return self._about


def _chosen(wanted: str | None, apps: list[str] | None) -> str:
    """Return the app to use.

    Raises:
        TrialError: there is no such app, or it is ambiguous.

    """
    if wanted is not None and (apps is None or wanted in apps):
        return wanted
    if wanted is None and apps and len(apps) == 1:
        return apps[0]
    if apps is None:
        message = "the server does not list its apps; set `app`"
    else:
        names = ", ".join(apps) or "none"
        message = f"the server has these apps: {names}; set `app` to one of them"
        if wanted is not None:
            guess = did_you_mean(wanted, apps)
            message = f"the server has no app {wanted!r}, only {names}{guess}"
    raise TrialError("start", message)


async def _begin(api: Api, place: Place, state: dict[str, Json], trial: Trial) -> None:
    """Create the session, unless the case names one that exists."""
    try:
        await api.create(place, state)
    except TrialError as exc:
        pinned = trial.case.session_input and trial.case.session_input.session_id
        if not (pinned and is_taken(exc)) or await api.state(place) is None:
            raise


# --- Conversations ----------------------------------------------------------------------------


@dataclass
class _Conversation(Session):
    """One session on the server."""

    running: _Running
    api: Api
    place: Place
    rules: Rules
    pending: dict[str, list[str]] = field(default_factory=dict)
    """The event id and invocation id of each pending call."""
    is_whole: bool = True
    """Whether every run was received to its end."""

    @property
    def memento(self) -> Json:
        if self.running.agent.launched is not None:  # our server loses its sessions with the run
            return None
        return {"place": list(self.place), "asked": self.pending}

    @property
    def output(self) -> str:
        return self.running.server.output

    async def send(self, message: Content) -> Invocation:
        self.is_whole = False
        received = _Received(message, self.rules)
        body = self._body(message)
        events = self.api.run(body, streaming=self.running.agent.stream)
        try:
            async with self.running.server.watched():
                async with aclosing(events):
                    async for event in events:
                        received.add(event)
                found = received.ended()
        except TrialError as exc:
            exc.seen = exc.seen or received.seen()
            raise
        self.is_whole = True
        self._note_pending(received.events, found)
        return found

    async def close(self) -> dict[str, Json] | None:
        if not self.is_whole:
            return None
        async with self.running.server.watched():
            return await self.api.state(self.place)

    def _body(self, message: Content) -> dict[str, Json]:
        sent = message.model_dump(mode="json", by_alias=True, exclude_none=True)
        body = {
            "appName": self.place.app,
            "userId": self.place.user,
            "sessionId": self.place.session,
            "newMessage": sent,
        }
        answers = (part.function_response for part in message.parts or ())
        for each in answers:
            if each and each.id in self.pending:
                body["functionCallEventId"], body["invocationId"] = self.pending[each.id]
        return body

    def _note_pending(self, events: list[dict[str, Any]], found: Invocation) -> None:
        waiting = {call.id for call in found.waits_for}
        self.pending = {
            call["id"]: [str(event.get("id", "")), str(event.get("invocationId", ""))]
            for event in events
            for part in (event.get("content") or {}).get("parts") or ()
            if (call := part.get("functionCall")) and call.get("id") in waiting
        }


class _Received:
    """The events of a run so far."""

    def __init__(self, message: Content, rules: Rules) -> None:
        self.events: list[dict[str, Any]] = []
        self._message = message
        self._rules = rules
        self._started = time.perf_counter()
        self._chunks: dict[tuple[Json, Json], list[dict[str, Any]]] = {}
        """Chunks of incomplete responses, by agent and branch, as several may respond at once."""

    def add(self, event: dict[str, Any]) -> None:
        """Add the next event."""
        who = str(event.get("author")), str(event.get("branch"))
        if not event.get("partial"):
            self.events.append(event)
            if event.get("content"):
                self._chunks.pop(who, None)
        elif event.get("content"):
            self._chunks.setdefault(who, []).append(event)

    def ended(self) -> Invocation:
        """Return the invocation of the completed run.

        Raises:
            TrialError: the run is incomplete, or has no response.

        """
        found = self._invocation(self.events)
        if self.events or not self._chunks:
            refuse_silence(self.events, found)
        if self._chunks:
            raise TrialError("connection", "the stream ended in the middle of a model response")
        last = found.events[-1].content if found.events else None
        waiting = {call.id for call in found.waits_for}
        open_calls = [call for call in calls_of(last) if call.id not in waiting]
        if open_calls and found.final_response is None:
            shown = one_line(open_calls[0].name or "", SHOWN_CHARS)
            raise TrialError("connection", f"the run ended before the call of {shown!r} returned")
        return found

    def seen(self) -> Invocation | None:
        """Return the invocation of an incomplete run, without data that cannot be read."""
        pieces: list[dict[str, Any]] = []
        with suppress(TrialError, ValidationError):
            pieces = [_joined(chunks) for chunks in self._chunks.values()]
        with suppress(TrialError):
            return self._invocation([*self.events, *pieces])
        return None

    def _invocation(self, events: list[dict[str, Any]]) -> Invocation:
        details = {"duration": time.perf_counter() - self._started}
        return to_invocation(events, self._message, rules=self._rules, details=details)


def _joined(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """Join the chunks of an incomplete response to one event, which is not final."""
    numbers = count(1)
    made = Aggregator(lambda: f"{MADE_BY_US}{next(numbers)}")
    for chunk in chunks:
        made.add(ModelResponse.model_validate(chunk))
    whole = made.close()
    fields = whole.model_dump(exclude_none=True) if whole else {}
    first = {"author": chunks[0]["author"], "invocation_id": chunks[0].get("invocationId")}
    return {**fields, **first, "partial": True}
