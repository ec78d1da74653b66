"""An agent of Google ADK behind an api server."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, suppress
from itertools import count
from typing import Any, ClassVar, NamedTuple

from pydantic import ConfigDict, Field, ValidationError

from ci_eval.agents._adk_api import Api, Place, is_taken
from ci_eval.agents._adk_events import Rules, refuse_silence, to_invocation
from ci_eval.agents._reaching import (
    Reached,
    filled_headers,
    with_variables,
    wrong_address,
    wrong_headers,
)
from ci_eval.agents._request import opening, refuse_tool_mocks, session_ids
from ci_eval.agents._server import PORT, Server, Startable, UrlPath
from ci_eval.formats.events import calls_of
from ci_eval.formats.gemini_stream import MADE_BY_US, Aggregator, ModelResponse
from ci_eval.plugins.points import Agent, RunningAgent, Session, agent
from ci_eval.records.errors import TrialError
from ci_eval.records.model import Content, Invocation, Json
from ci_eval.records.trials import Trial
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.http import SHOWN_CHARS, Net, connecting
from ci_eval.text.sanitize import one_line
from ci_eval.text.suggest import did_you_mean

OPEN_S = 60.0
"""How long it may take until a session is begun, on a server that is ready."""
OLD = (2, 3)
"""The version of ADK that keeps less of a run, and those before it."""


@agent("adk_server")
class AdkServer(Reached, Startable, Agent):
    """An agent of Google ADK that an api server has: `adk api_server`, `adk web`, or one of yours.

    A server that runs already is asked at its address; with `start` one is started for the run,
    such as `[adk, api_server, --port, "{port}", --session_service_uri, "memory://", agents]`, which
    leaves no file behind.
    Each case gets a session of its own with the state that it starts from and, where the case
    names none, a user of its own.  The session is not deleted.  The state that it has at last is
    the final state.

    What is observed is what the `adk` agent observes, but for the instruction and the tools that
    the models were given: servers do not tell.  Nothing can be canned there.  A run that broke off
    is an error, which keeps what came before.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(populate_by_name=True)

    adk_server: str | None
    """The address, such as `http://127.0.0.1:8000`. With `start` it may be empty, or hold `{port}`;
    `${NAME}` stands for an environment variable, as in `headers`."""
    app: str | None = Field(default=None, min_length=1)
    """The app that is asked; left out, the only one that the server has."""
    stream: bool = False
    """Whether the models are to answer in chunks, as for a user who watches."""
    ready: UrlPath | None = "/health"
    """The path that answers when the started server is ready, with any status below 500."""

    def check(self, context: RunContext) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with the address, the headers and how the server is started."""
        yield from self.wrong_start(self.adk_server, context)
        yield from wrong_headers(self.headers, context.env)
        if self.adk_server is not None:
            address = self.adk_server.replace(PORT, "1")
            yield from wrong_address("adk_server", address, context.env)

    @asynccontextmanager
    async def start(self, context: RunContext) -> AsyncIterator[RunningAgent]:
        """Hold conversations; leaving the context stops a server that was started for them."""
        address = self.adk_server and with_variables(self.adk_server, context.env)
        async with connecting(context.env) as net, self.served(address, context, net) as server:
            yield _Running(self, context, net, server)


class _About(NamedTuple):
    """What a server says of itself."""

    app: str
    rules: Rules


class _Running:
    """An api server."""

    def __init__(self, said: AdkServer, context: RunContext, net: Net, server: Server) -> None:
        self.server = server
        self.is_streamed = said.stream
        self._wanted = said.app
        self._net = net
        self._headers = filled_headers(said.headers, context.env)
        self._is_ours = said.launched is not None
        self._session_ids = session_ids(context)
        self._about: _About | None = None
        self._asking = asyncio.Lock()

    async def open(self, trial: Trial, *, alone: bool = False, memento: Json = None) -> Session:
        del alone  # the server is not ours to divide
        refuse_tool_mocks(trial, "adk_server")
        async with self.server.watched():
            api = Api(self._net, await self.server.address(), self._headers)
            try:
                async with asyncio.timeout(OPEN_S):
                    return await self._open(api, trial, memento)
            except TimeoutError:
                message = f"the server did not begin a session within {OPEN_S:g} s"
                raise TrialError("connection", message) from None

    async def _open(self, api: Api, trial: Trial, memento: Json) -> Session:
        about = await self._told(api)
        if memento is None:
            session = opening(trial, next(self._session_ids))
            user = session["user_id"] if trial.case.session_input else session["id"]
            place = Place(about.app, user, session["id"])
            await _begin(api, place, session["state"], trial)
            return _Conversation(self, api, place, about.rules)
        place = Place(*memento["place"])
        if await api.state(place) is None:
            message = f"the server does not have the session {place.session!r} any more"
            raise TrialError("start", f"{message}; leave out --resume")
        return _Conversation(self, api, place, about.rules, asked=memento["asked"])

    @property
    def keeps_sessions(self) -> bool:
        """Whether the sessions are there after the run."""
        return not self._is_ours

    async def _told(self, api: Api) -> _About:
        async with self._asking:
            if self._about is None:
                version = await api.version()
                rules: Rules = "adk@2.3" if version and version <= OLD else "adk"
                self._about = _About(_chosen(self._wanted, await api.apps()), rules)
            return self._about


def _chosen(wanted: str | None, apps: list[str] | None) -> str:
    """Return the app that is asked.

    Raises:
        TrialError: there is no such app, or nothing says which one.

    """
    if wanted is not None and (apps is None or wanted in apps):
        return wanted
    if wanted is None and apps and len(apps) == 1:
        return apps[0]
    if apps is None:
        message = "the server does not say which apps it has; name one with `app`"
    else:
        names = ", ".join(apps) or "none"
        message = f"the server has these apps: {names}; say with `app` which one is meant"
        if wanted is not None:
            guess = did_you_mean(wanted, apps)
            message = f"the server has no app {wanted!r}, but {names}{guess}"
    raise TrialError("start", message)


async def _begin(api: Api, place: Place, state: dict[str, Json], trial: Trial) -> None:
    """Make the session, unless the case names one that is there."""
    try:
        await api.create(place, state)
    except TrialError as exc:
        pinned = trial.case.session_input and trial.case.session_input.session_id
        if not (pinned and is_taken(exc)) or await api.state(place) is None:
            raise


# --- Conversations ----------------------------------------------------------------------------


class _Conversation(Session):
    """One session on the server."""

    def __init__(
        self, running: _Running, api: Api, place: Place, rules: Rules, asked: Json = None
    ) -> None:
        self._running = running
        self._api = api
        self._place = place
        self._rules = rules
        self._asked: dict[str, list[str]] = dict(asked or {})
        """For each call that waits, the ids of its event and of its invocation."""
        self._is_whole = True
        """Whether every run was observed to its end."""

    @property
    def memento(self) -> Json:
        if not self._running.keeps_sessions:
            return None
        return {"place": list(self._place), "asked": self._asked}

    @property
    def output(self) -> str:
        return self._running.server.output

    async def send(self, message: Content) -> Invocation:
        self._is_whole = False
        received = _Received(message, self._rules)
        body = self._body(message)
        events = self._api.run(body, streaming=self._running.is_streamed)
        try:
            async with self._running.server.watched():
                async with aclosing(events):
                    async for event in events:
                        received.add(event)
                found = received.ended()
        except TrialError as exc:
            exc.seen = exc.seen or received.seen()
            raise
        self._is_whole = True
        self._note_asked(received.events, found)
        return found

    async def close(self) -> dict[str, Json] | None:
        if not self._is_whole:
            return None
        async with self._running.server.watched():
            return await self._api.state(self._place)

    def _body(self, message: Content) -> dict[str, Json]:
        sent = message.model_dump(mode="json", by_alias=True, exclude_none=True)
        body = {
            "appName": self._place.app,
            "userId": self._place.user,
            "sessionId": self._place.session,
            "newMessage": sent,
        }
        answers = (part.function_response for part in message.parts or ())
        for each in answers:
            if each and each.id in self._asked:
                body["functionCallEventId"], body["invocationId"] = self._asked[each.id]
        return body

    def _note_asked(self, events: list[dict[str, Any]], found: Invocation) -> None:
        waiting = {call.id for call in found.waits_for}
        self._asked = {
            call["id"]: [str(event.get("id", "")), str(event.get("invocationId", ""))]
            for event in events
            for part in (event.get("content") or {}).get("parts") or ()
            if (call := part.get("functionCall")) and call.get("id") in waiting
        }


class _Received:
    """What came of a run up to now."""

    def __init__(self, message: Content, rules: Rules) -> None:
        self.events: list[dict[str, Any]] = []
        self._message = message
        self._rules = rules
        self._started = time.perf_counter()
        self._chunks: dict[tuple[Json, Json], list[dict[str, Any]]] = {}
        """Of answers that are not complete, by who gives them: several agents may at once."""

    def add(self, event: dict[str, Any]) -> None:
        """Take the next event."""
        who = str(event.get("author")), str(event.get("branch"))
        if not event.get("partial"):
            self.events.append(event)
            if event.get("content"):
                self._chunks.pop(who, None)
        elif event.get("content"):
            self._chunks.setdefault(who, []).append(event)

    def ended(self) -> Invocation:
        """Return what the whole run came to.

        Raises:
            TrialError: it was not whole, or came to nothing.

        """
        found = self._invocation(self.events)
        if self.events or not self._chunks:
            refuse_silence(self.events, found)
        if self._chunks:
            raise TrialError("connection", "the stream ended within an answer of the model")
        last = found.events[-1].content if found.events else None
        waiting = {call.id for call in found.waits_for}
        for call in calls_of(last):
            if call.id not in waiting and found.final_response is None:
                shown = one_line(call.name or "", SHOWN_CHARS)
                raise TrialError("connection", f"the run ended before the call of {shown!r} did")
        return found

    def seen(self) -> Invocation | None:
        """Return what there was of a run that broke off: what cannot be read is left out."""
        pieces: list[dict[str, Any]] = []
        with suppress(TrialError, ValidationError):
            pieces = [_together(chunks) for chunks in self._chunks.values()]
        with suppress(TrialError):
            return self._invocation([*self.events, *pieces])
        return None

    def _invocation(self, events: list[dict[str, Any]]) -> Invocation:
        told = {"duration": time.perf_counter() - self._started}
        return to_invocation(events, self._message, rules=self._rules, told=told)


def _together(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the beginning of an answer as one event, which is not final."""
    numbers = count(1)
    made = Aggregator(lambda: f"{MADE_BY_US}{next(numbers)}")
    for chunk in chunks:
        made.add(ModelResponse.model_validate(chunk))
    whole = made.close()
    told = whole.model_dump(exclude_none=True) if whole else {}
    first = {"author": chunks[0]["author"], "invocation_id": chunks[0].get("invocationId")}
    return {**told, **first, "partial": True}
