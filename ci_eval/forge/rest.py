"""Requests to a host of repositories: its limits, retries and checked answers.

The whole policy for retries stands here: `MAX_WAIT_S` bounds one wait, `PATIENCE_S` all waits
together.  A limit that lasts longer ends the attempts at once, also those of later requests.
"""

import asyncio
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from pydantic import ValidationError

from ci_eval.records.errors import TrialError
from ci_eval.records.model import Json, Stored
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.http import Net, Request, Response
from ci_eval.text.validation_messages import explain
from ci_eval.text.yaml_files import dotted

M = TypeVar("M", bound=Stored)

ANSWER_S = 60.0
"""How long an answer may take."""
MAX_WAIT_S = 90.0
"""The longest single wait, in seconds; hosts ask for 60 where they name no time."""
PATIENCE_S = 150.0
"""The longest time for all waits of one connection together, in seconds."""
_PAUSES_S = (1.0, 4.0, 10.0)
"""After how long a server that is not well is asked again."""
_UNWELL = (500, 502, 503, 504)


class HostError(Exception):
    """A host could not be asked, or refused."""

    def __init__(self, message: str, *, hint: str = "", status: int | None = None) -> None:
        self.hint = hint
        """The way out, where one is known."""
        self.status = status
        """What the host answered with, where it answered."""
        super().__init__(message)


class LimitedError(HostError):
    """A host's limit lasts longer than we wait; the request was not executed."""


def is_unwell(response: Response) -> bool:
    """Check whether the server failed, so that another attempt may succeed."""
    return response.status in _UNWELL


class Manners(NamedTuple):
    """How one kind of host answers."""

    name: str
    limited: Callable[[Response, float], float | None]
    """Returns the seconds to wait for a limit, by the answer and the time; `None` for no limit."""
    said_by: Callable[[Response], str]
    """Returns the message of an error, to be appended to ours."""
    is_unwell: Callable[[Response], bool] = is_unwell
    """True if the server failed, so that another attempt may succeed."""


class Host:
    """Sends requests, and sends them again as long as the host puts them off."""

    def __init__(self, net: Net, context: RunContext, manners: Manners) -> None:
        self._net = net
        self._world = context
        self._manners = manners
        self._patience_s = PATIENCE_S
        self._closed = (0.0, "")
        """When the host accepts requests again, by the run context's clock; and its message."""

    async def send(self, request: Request, *, again: bool, within_s: float = ANSWER_S) -> Response:
        """Return what the host answers in the end, whatever its status.

        `again` says that a request is sent again too where nobody knows what became of it.

        Raises:
            LimitedError: it wants no requests for longer than we wait.
            HostError: it does not answer, or is not well.

        """
        until, why = self._closed
        if (left_s := until - self._world.now()) > 0:
            raise _limited_error(why, left_s)
        pauses = iter(_PAUSES_S)
        while True:
            response, said = await self._tried(request, within_s)
            limited_s = self._manners.limited(response, self._world.now()) if response else None
            pause_s = next(pauses, None)
            if response and limited_s is not None:
                said = f"{self._manners.name} was asked too often{self._manners.said_by(response)}"
                if pause_s is None or limited_s > min(MAX_WAIT_S, self._patience_s):
                    self._close(response, said, limited_s)
                    raise _limited_error(said, limited_s)
                await self._wait(limited_s, said)
                continue
            if response and not (again and self._manners.is_unwell(response)):
                return response
            if pause_s is None or not again or pause_s > self._patience_s:
                raise HostError(said)
            await self._wait(pause_s, said)

    def _close(self, response: Response, said: str, limited_s: float) -> None:
        """Refuse further requests; a limit with status 200 concerns GraphQL alone."""
        if response.status != 200:
            self._closed = (self._world.now() + limited_s, said)

    async def _tried(self, request: Request, within_s: float) -> tuple[Response | None, str]:
        """Return what came back, if anything did, and what there is to say of it."""
        try:
            async with asyncio.timeout(within_s):
                response = await self._net.send(request)
        except TimeoutError:
            return None, f"{request.shown} has not answered for {within_s:g} s"
        except TrialError as exc:
            if exc.kind != "connection":
                raise HostError(str(exc)) from exc
            return None, str(exc)
        # An answer with status 200 that failed says why in its errors.
        shown = (
            f"200{self._manners.said_by(response)}" if response.status == 200 else response.shown
        )
        return response, f"{request.shown} answered {shown}"

    async def _wait(self, pause_s: float, said: str) -> None:
        """Wait before a request is sent again."""
        self._patience_s -= pause_s
        self._world.say(f"{said}; asking again in {pause_s:.0f} s")
        await asyncio.sleep(pause_s)


def _limited_error(said: str, left_s: float) -> LimitedError:
    return LimitedError(f"{said}; it may be asked again in {left_s:.0f} s")


def read(response: Response) -> Json:
    """Return an answer as JSON.

    Raises:
        HostError: it is none.

    """
    try:
        return response.json()
    except TrialError as exc:
        raise HostError(str(exc)) from exc


def items(response: Response, member: str = "") -> list[Json]:
    """Return the list that an answer is, or that it holds as its `member`.

    Raises:
        HostError: there is none.

    """
    value = read(response)
    found = value.get(member) if member and isinstance(value, dict) else value
    if not isinstance(found, list):
        raise HostError(f"{response.request.shown} answered no list")
    return found


def checked(item: Json, kind: type[M], response: Response) -> M:
    """Return a part of an answer as what it should be.

    Raises:
        HostError: it is something else.

    """
    try:
        return kind.model_validate(item)
    except ValidationError as exc:
        loc, why = next(iter(explain(exc, kind)))
        where = response.request.quoted(f"{dotted(loc)}: {why}" if loc else why)
        message = f"{response.request.shown} answered what it should not: {where}"
        raise HostError(message) from exc
