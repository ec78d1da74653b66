"""Asks a host of repositories, with the patience that its limits take.

What hosts have in common: a request is put off by a limit, or gets no answer while the host is not
well, and is sent again then; and nobody sees an answer that was not checked against a schema.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from pydantic import ValidationError

from ci_eval.documents import dotted
from ci_eval.errors import TrialError
from ci_eval.explain import explain
from ci_eval.net import Net, Request, Response
from ci_eval.records import Json, Stored
from ci_eval.world import World

M = TypeVar("M", bound=Stored)

ANSWER_S = 60.0
"""How long an answer may take."""
PATIENCE_S = 150.0
"""How long is waited in all, because a host asks for it or is not well."""
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


Limited = Callable[[Response, float], float | None]
"""Says how long to wait as the limits of a host want it, by its answer and the time; `None` where
no limit is in the way."""
SaidBy = Callable[[Response], str]
"""Returns what an error of a host says of itself, to be put behind ours."""


class Host:
    """Sends requests, and sends them again as long as the host puts them off."""

    def __init__(
        self,
        net: Net,
        world: World,
        name: str,
        limited: Limited,
        said_by: SaidBy,
    ) -> None:
        self._net = net
        self._world = world
        self._name = name
        self._limited = limited
        self._said_by = said_by
        self._patience_s = PATIENCE_S

    async def send(self, request: Request, *, again: bool, within_s: float = ANSWER_S) -> Response:
        """Return what the host answers in the end, whatever its status.

        `again` says that a request is sent again too where nobody knows what became of it.

        Raises:
            HostError: it does not answer, or wants to be left alone for longer than is waited.

        """
        pauses = iter(_PAUSES_S)
        while True:
            response, said = await self._tried(request, within_s)
            limited_s = self._limited(response, self._world.now()) if response else None
            if response and limited_s is not None:
                said = f"{self._name} was asked too often{self._said_by(response)}"
            elif response and not (again and response.status in _UNWELL):
                return response
            pause_s = next(pauses, None)
            if pause_s is None or (limited_s is None and not again):
                raise HostError(said)
            await self._wait(pause_s if limited_s is None else limited_s, said)

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
        return response, f"{request.shown} answered {response.shown}"

    async def _wait(self, pause_s: float, said: str) -> None:
        """Wait before a request is sent again, unless all patience is gone."""
        if pause_s > self._patience_s:
            raise HostError(f"{said}; it may be asked again in {pause_s:.0f} s")
        self._patience_s -= pause_s
        self._world.say(f"{said}; asking again in {pause_s:.0f} s")
        await asyncio.sleep(pause_s)


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
