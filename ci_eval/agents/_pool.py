"""Worker processes that hold the conversations of an agent, several at a time."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from ci_eval.agents._link import Launch, Link
from ci_eval.agents._reply import to_invocation
from ci_eval.agents._request import as_asked, opening
from ci_eval.errors import TrialError
from ci_eval.plugins import Session
from ci_eval.records import Content, Invocation, Json, Trial

WORKER = str(Path(__file__).with_name("_worker.py"))
"""The file that a worker runs."""
MAX_STARTS = 2
"""How often in a row a worker may fail to start before it is not tried any more."""


@dataclass
class _Seat:
    """A place for one worker at a time."""

    load: int = 0
    """How many conversations it has."""
    link: asyncio.Task[Link] | None = None


class Pool:
    """Holds conversations in `workers` processes, `threads` at a time in each.

    Where `threads` is `None` there are as many as are asked for.  A worker that died is
    replaced when it is needed again.
    """

    def __init__(
        self, launch: Launch, *, workers: int, threads: int | None, session_prefix: str
    ) -> None:
        self._launch = launch
        self._seats = [_Seat() for _ in range(workers)]
        self._room = asyncio.Semaphore(workers * threads) if threads else None
        self._single_rooms = asyncio.Semaphore(workers)
        self._session_prefix = session_prefix
        self._numbers = count(1)
        self._links: set[Link] = set()
        self._failures: list[TrialError] = []

    async def open(self, trial: Trial, *, alone: bool = False) -> Session:
        """Begin the conversation of `trial`, when there is room for it."""
        async with AsyncExitStack() as leaving:
            link = await (self._single(leaving) if alone else self._shared(leaving))
            number = next(self._numbers)
            link.begin(number)
            leaving.callback(link.finish, number)
            session = opening(trial, f"{self._session_prefix}{number}")
            return _Conversation(link, number, session, leaving.pop_all())

    async def stop(self) -> None:
        """End every worker."""
        starting = [seat.link for seat in self._seats if seat.link and not seat.link.done()]
        for task in starting:
            task.cancel()
        await asyncio.gather(
            *starting, *(link.stop() for link in self._links), return_exceptions=True
        )
