"""A client of a provider's package: made at its first use, closed at the end."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Generic, Self, TypeVar

from ci_eval.records.errors import JudgeError

C = TypeVar("C")


class Connection(Generic[C]):
    """What a judge asks through; a run whose answers were all kept never makes one.

    It is made in a thread, for to import such a package takes a second or two, in which agents
    would stand still.
    """

    def __init__(self, make: Callable[[], C], close: Callable[[C], Awaitable[None]]) -> None:
        self._make = make
        self._close = close
        self._made: asyncio.Task[C] | None = None

    async def client(self) -> C:
        """Return the client, the same one to all.

        Raises:
            JudgeError: it could not be made.

        """
        if self._made is None:
            self._made = asyncio.create_task(asyncio.to_thread(self._make))
        # Who is cancelled while it is made does not spoil it for the others.
        return await asyncio.shield(self._made)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._made is not None:
            with suppress(JudgeError):
                await self._close(await self._made)


def sendable(key: str, name: str) -> str:
    """Return `key`, which the variable `name` holds.

    Raises:
        ValueError: it cannot be sent; who tries shows it in his errors.

    """
    if not re.fullmatch(r"[!-~]*", key):
        raise ValueError(f"{name} holds no key: a space, a line break or a letter that none has")
    return key
