"""Pool of worker processes that run a user's function, for several conversations at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, cast

from ci_eval.records.cases import Json
from ci_eval.records.errors import DisturbedError, TrialError
from ci_eval.runtime.processes import Launch
from ci_eval.runtime.workers.worker_link import Link

WORKER = str(Path(__file__).with_name("worker.py"))
"""The script that a worker runs."""
MAX_STARTS = 2
"""Maximum number of consecutive failed starts before giving up."""
MAX_RETRIES = 3
"""The most retries of a call whose worker was taken down by another call."""


class Adapter(NamedTuple):
    """A file that lets a worker run something other than a function that takes a message."""

    name: str
    """The name of the framework: `adapters/NAME_adapter.py` is the file."""
    options: Mapping[str, Json] = {}
    """The options that it gets."""

    @property
    def path(self) -> Path:
        """The path of the file."""
        return Path(__file__).parent / "adapters" / f"{self.name}_adapter.py"


class Size(NamedTuple):
    """The size of a pool, and additional variables of its workers."""

    workers: int = 1
    threads: int | None = None
    """Maximum number of concurrent conversations in one worker; `None` for any number."""
    variables: Callable[[], Mapping[str, str]] = dict
    """Returns additional environment variables for one more worker."""


ONE = Size()
"""One worker, for any number of conversations."""


@dataclass
class _Slot:
    """A slot for one worker at a time."""

    load: int = 0
    """The number of its conversations."""
    link: asyncio.Task[Link] | None = None

    def leave(self) -> None:
        self.load -= 1

    def is_empty(self) -> bool:
        """Return True if there is no worker, and none is starting."""
        if self.link is None or not self.link.done():
            return self.link is None
        return self.link.cancelled() or bool(self.link.exception()) or not self.link.result().alive


class Pool:
    """Holds conversations in `workers` processes, `threads` at a time in each.

    If `threads` is `None`, their number is unlimited.  Workers, and replacements for dead ones, are
    started on demand; `prepare` makes that possible, and returns the launch of a worker.
    """

    def __init__(
        self, prepare: Callable[[], Awaitable[Launch]], *, workers: int, threads: int | None
    ) -> None:
        self._prepare = prepare
        self._slots = [_Slot() for _ in range(workers)]
        self._capacity = asyncio.Semaphore(workers * threads) if threads else None
        self._single_workers = asyncio.Semaphore(workers)
        self._numbers = count(1)
        self._links: set[Link] = set()
        self._failures = 0
        self._failure = ""

    async def open(self, *, alone: bool = False) -> "Lease":
        """Open a conversation once there is capacity; `alone` in its own worker.

        Raises:
            TrialError: no worker can be started.

        """
        async with AsyncExitStack() as cleanup:
            link = await (self._own_link(cleanup) if alone else self._shared_link(cleanup))
            number = next(self._numbers)
            link.begin(number)
            return Lease(link, number, cleanup.pop_all())

    async def call(self, message: Json, *, name: str, timeout_s: float) -> Json:
        """Return the reply to `message`; errors call the function `name`.

        It is asked again if another conversation took down their shared worker.

        Raises:
            BadAnswerError: the result is not JSON.
            TrialError: it failed, or timed out after `timeout_s` seconds.

        """
        late = TrialError("timeout", f"{name} timed out after {timeout_s:g} s")
        once = partial(self.ask_once, message, timeout_s=timeout_s, late=late)
        for retries in range(MAX_RETRIES):
            with suppress(DisturbedError):
                return await once(alone=retries > 0)
        return await once(alone=True)

    async def ask_once(
        self,
        message: Json,
        *,
        timeout_s: float | None = None,
        late: Exception | None = None,
        alone: bool = False,
    ) -> Json:
        """Return the reply to `message` in a conversation of its own; raise `late` after a time."""
        lease = await self.open(alone=alone)
        try:
            async with asyncio.timeout(timeout_s):
                answer = await lease.ask({"message": message, "session": {}})
        except TimeoutError as exc:
            raise late or exc from None
        finally:
            await lease.end()
        return answer["reply"]

    async def stop(self) -> None:
        """Stop all workers."""
        starts = [slot.link for slot in self._slots if slot.link]
        for start in starts:
            start.cancel()
        ends = [link.stop() for link in self._links]
        await asyncio.gather(*starts, *ends, return_exceptions=True)

    async def _shared_link(self, cleanup: AsyncExitStack) -> Link:
        if self._capacity:
            await cleanup.enter_async_context(self._capacity)
        slot = min(self._slots, key=lambda slot: slot.load)
        slot.load += 1
        cleanup.callback(slot.leave)
        if slot.is_empty():
            slot.link = asyncio.create_task(self._start())
        # Cancelling a trial while it waits must not cancel the start for others.
        return await asyncio.shield(cast("asyncio.Task[Link]", slot.link))

    async def _own_link(self, cleanup: AsyncExitStack) -> Link:
        await cleanup.enter_async_context(self._single_workers)
        link = await self._start()
        cleanup.push_async_callback(link.stop)
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
    """One conversation in one worker."""

    link: Link
    number: int
    """The number of the conversation in its pool."""
    cleanup: AsyncExitStack
    output: str = ""
    """The output of the conversation, after its end."""

    async def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the worker's reply, as `Link.ask` does."""
        return await self.link.ask(self.number, request)

    async def end(self) -> None:
        """End the conversation."""
        self.output = self.link.finish(self.number)
        await self.cleanup.aclose()
