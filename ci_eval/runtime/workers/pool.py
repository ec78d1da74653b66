"""Worker processes that answer for a function of the user's, several conversations at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, cast

from ci_eval.records.errors import TrialError
from ci_eval.records.model import Json
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.environments import Declared, agent_environment
from ci_eval.runtime.processes import Launch
from ci_eval.runtime.workers.link import Link
from ci_eval.runtime.workers.wire import encode

WORKER = str(Path(__file__).with_name("worker.py"))
"""The file that a worker runs."""
MAX_STARTS = 2
"""How often in a row a worker may fail to start before it is not tried any more."""


class Adapter(NamedTuple):
    """What lets a worker call something else than a function that takes a message."""

    name: str
    """The file in `adapters`, without its suffix."""
    options: Mapping[str, Json] = {}
    """What it is told."""

    @property
    def path(self) -> Path:
        """The file."""
        return Path(__file__).parent / "adapters" / f"{self.name}.py"


def launch(
    interpreter: str,
    target: str,
    context: RunContext,
    env: Declared,
    *,
    adapter: Adapter | None = None,
) -> Launch:
    """Return how a worker for `target` is started: a `module:callable`, or what `adapter` takes."""
    root = context.root.resolve()
    adapted = (str(adapter.path), encode(adapter.options)) if adapter else ()
    return Launch(
        argv=(interpreter, WORKER, str(root), target, *adapted),
        env=agent_environment(context.env, env),
        cwd=root,
    )


@dataclass
class _Seat:
    """A place for one worker at a time."""

    load: int = 0
    """How many conversations it has."""
    link: asyncio.Task[Link] | None = None

    def leave(self) -> None:
        self.load -= 1

    def is_empty(self) -> bool:
        """Say whether there is no worker, nor one to come."""
        if self.link is None or not self.link.done():
            return self.link is None
        return self.link.cancelled() or bool(self.link.exception()) or not self.link.result().alive


class Pool:
    """Holds conversations in `workers` processes, `threads` at a time in each.

    Where `threads` is `None` there are as many as are asked for.  Workers are started when they
    are needed, and so is the replacement of one that died; `prepare` sees to it that one can be,
    and returns how.
    """

    def __init__(
        self, prepare: Callable[[], Awaitable[Launch]], *, workers: int, threads: int | None
    ) -> None:
        self._prepare = prepare
        self._seats = [_Seat() for _ in range(workers)]
        self._room = asyncio.Semaphore(workers * threads) if threads else None
        self._single_rooms = asyncio.Semaphore(workers)
        self._numbers = count(1)
        self._links: set[Link] = set()
        self._failures = 0
        self._failure = ""

    async def open(self, *, alone: bool = False) -> "Lease":
        """Begin a conversation when there is room for it; `alone` in a worker of its own.

        Raises:
            TrialError: no worker can start.

        """
        async with AsyncExitStack() as leaving:
            link = await (self._own_link(leaving) if alone else self._shared_link(leaving))
            number = next(self._numbers)
            link.begin(number)
            return Lease(link, number, leaving.pop_all())

    async def stop(self) -> None:
        """End every worker."""
        starts = [seat.link for seat in self._seats if seat.link]
        for start in starts:
            start.cancel()
        ends = [link.stop() for link in self._links]
        await asyncio.gather(*starts, *ends, return_exceptions=True)

    async def _shared_link(self, leaving: AsyncExitStack) -> Link:
        if self._room:
            await leaving.enter_async_context(self._room)
        seat = min(self._seats, key=lambda seat: seat.load)
        seat.load += 1
        leaving.callback(seat.leave)
        if seat.is_empty():
            seat.link = asyncio.create_task(self._start())
        # A trial that is cancelled while it waits does not take the worker from the others.
        return await asyncio.shield(cast("asyncio.Task[Link]", seat.link))

    async def _own_link(self, leaving: AsyncExitStack) -> Link:
        await leaving.enter_async_context(self._single_rooms)
        link = await self._start()
        leaving.push_async_callback(link.stop)
        return link

    async def _start(self) -> Link:
        if self._failures >= MAX_STARTS:
            raise TrialError("start", self._failure)
        try:
            link = await Link.start(await self._prepare())
        except TrialError as exc:
            self._failures += 1
            self._failure = str(exc)
            raise
        self._failures = 0
        self._links = {link, *(other for other in self._links if not other.is_over)}
        return link


@dataclass
class Lease:
    """One conversation, in one worker."""

    link: Link
    number: int
    """Of the conversation, in its pool."""
    leaving: AsyncExitStack
    output: str = ""
    """What the conversation wrote, once it has ended."""

    async def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return what the worker answers, as `Link.ask` does."""
        return await self.link.ask(self.number, request)

    async def end(self) -> None:
        """Let the worker forget the conversation."""
        self.output = self.link.finish(self.number)
        await self.leaving.aclose()
