"""Client for ADK's API servers: `adk api_server`, `adk web` and servers built on them."""

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote

from ci_eval.records.cases import Json
from ci_eval.records.errors import TrialError
from ci_eval.runtime.http import SHOWN_CHARS, Net, Request, StatusError
from ci_eval.text.json_text import NotJsonError, parse_json
from ci_eval.text.sanitize import one_line

MAX_EVENTS = 100_000
"""Maximum number of events of a run."""
_ABSENT = (404, 405, 501)
"""Status codes for an endpoint or resource that does not exist."""


class Place(NamedTuple):
    """A session on a server."""

    app: str
    user: str
    session: str

    @property
    def path(self) -> str:
        """The path of the session."""
        return f"{self.sessions}/{quote(self.session, safe='')}"

    @property
    def sessions(self) -> str:
        """The path of the user's sessions."""
        return f"/apps/{quote(self.app, safe='')}/users/{quote(self.user, safe='')}/sessions"


@dataclass(frozen=True)
class Api:
    """The API server at `address`; every request has `headers`."""

    net: Net
    address: str
    headers: Mapping[str, str]

    async def apps(self) -> list[str] | None:
        """Return the names of the apps; `None` if the server does not list them.

        Raises:
            TrialError: it cannot be reached, or returns something else.

        """
        found = await self._optional("/list-apps")
        if found is None:
            return None
        if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
            shown = self._request("GET", "/list-apps").shown
            message = f"{shown} answered {_shown(found)}; expected the names of apps"
            raise TrialError("protocol", message)
        return found

    async def version(self) -> tuple[int, ...] | None:
        """Return the version of ADK; `None` if the server does not report it.

        Raises:
            TrialError: it cannot be reached.

        """
        found = await self._optional("/version")
        text = found.get("version") if isinstance(found, dict) else None
        numbers = re.match(r"(\d{1,9})\.(\d{1,9})", text) if isinstance(text, str) else None
        return (int(numbers[1]), int(numbers[2])) if numbers else None

    async def create(self, place: Place, state: Mapping[str, Json]) -> None:
        """Create the session.

        Raises:
            TrialError: it cannot be created.

        """
        body = {"sessionId": place.session, "state": dict(state)}
        (await self.net.send(self._request("POST", place.sessions, body))).json()

    async def state(self, place: Place) -> dict[str, Json] | None:
        """Return the state of the session; `None` if it does not exist.

        Raises:
            TrialError: it cannot be read.

        """
        request = self._request("GET", place.path)
        response = await self.net.send(request)
        if response.status in _ABSENT:
            return None
        session = response.json()
        state = session.get("state", {}) if isinstance(session, dict) else session
        if not isinstance(state, dict):
            message = f"{request.shown} answered {_shown(state)}, which is not a session"
            raise TrialError("protocol", message)
        return state

    async def run(
        self, body: Mapping[str, Json], *, streaming: bool
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the events of a run as they arrive; if `streaming`, with chunks of responses.

        Raises:
            TrialError: it failed, or the connection was lost.

        """
        try:
            async with aclosing(self._streamed({**body, "streaming": streaming})) as events:
                async for event in events:
                    yield event
        except StatusError as exc:
            if streaming or exc.response.status not in _ABSENT:
                raise
        else:
            return
        for event in await self._whole(body):  # a server that does not stream events
            yield event

    async def _streamed(self, body: Mapping[str, Json]) -> AsyncGenerator[dict[str, Any], None]:
        request = self._request("POST", "/run_sse", body)
        number, last = 0, ""
        async with self.net.stream(request) as sent:
            async for data in sent:
                number += 1
                if number > MAX_EVENTS:
                    message = f"{request.shown} sent more than {MAX_EVENTS:,} events"
                    raise TrialError("protocol", message)
                event = _event(request, _parsed(request, data))
                # The artifacts of an event arrive as a second event with its id.
                if not last or event.get("id") != last or event.get("content"):
                    yield event
                last = event.get("id") or ""

    async def _whole(self, body: Mapping[str, Json]) -> list[dict[str, Any]]:
        request = self._request("POST", "/run", body)
        response = await self.net.send(request)
        if response.status == 500:
            raise TrialError("raised", f"the run failed: {request.shown} answered {response.shown}")
        events = response.json()
        if not isinstance(events, list):
            message = f"{request.shown} answered {_shown(events)}; expected a list of events"
            raise TrialError("protocol", message)
        return [_event(request, event) for event in events]

    async def _optional(self, path: str) -> Json:
        response = await self.net.send(self._request("GET", path))
        return None if response.status in _ABSENT else response.json()

    def _request(self, method: str, path: str, body: Json = None) -> Request:
        return Request(method, self.address + path, body, self.headers)


def is_taken(error: TrialError) -> bool:
    """Return True if a session could not be created, perhaps because its id exists."""
    return isinstance(error, StatusError) and error.response.status in (400, 409, 500)


def _parsed(request: Request, data: str) -> Json:
    try:
        return parse_json(data)
    except NotJsonError as exc:
        message = f"{request.shown} sent {one_line(data, SHOWN_CHARS)!r}, which {exc}"
        raise TrialError("protocol", message) from None


def _event(request: Request, found: Json) -> dict[str, Any]:
    """Return an event of a run.

    Raises:
        TrialError: it is not an event, or reports that the agent failed.

    """
    if isinstance(found, dict) and "author" in found:
        return found
    if isinstance(found, dict) and "error" in found:
        raise TrialError("raised", f"the agent raised {_shown(found['error'])}")
    raise TrialError("protocol", f"{request.shown} sent {_shown(found)}, which is not an event")


def _shown(value: Json) -> str:
    return one_line(value if isinstance(value, str) else repr(value), SHOWN_CHARS)
