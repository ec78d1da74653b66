"""Connections to providers: a client that is created at its first use and closed at the end."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Generic, Self, TypeVar

from ci_eval.records.errors import JudgeError

C = TypeVar("C")


class Connection(Generic[C]):
    """A client of a provider's package; a run that replays all answers never creates it.

    It is created in a thread, since the import of such a package takes a second or two and would
    block the event loop, and with it all agents.
    """

    def __init__(self, make: Callable[[], C], close: Callable[[C], Awaitable[None]]) -> None:
        self._make = make
        self._close = close
        self._made: asyncio.Task[C] | None = None

    async def client(self) -> C:
        """Return the client, which all callers share.

        Raises:
            JudgeError: it could not be created.

        """
        if self._made is None:
            self._made = asyncio.create_task(asyncio.to_thread(self._make))
        # A cancelled caller must not cancel it for the others.
        return await asyncio.shield(self._made)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._made is not None:
            with suppress(JudgeError):
                await self._close(await self._made)


def sendable(key: str, name: str) -> str:
    """Return `key`, the value of the variable `name`.

    Raises:
        ValueError: it cannot be sent in a header; the HTTP client's own error would show the key.

    """
    if not re.fullmatch(r"[!-~]*", key):
        raise ValueError(f"{name} has a space, a line break or a non-ASCII character")
    return key
