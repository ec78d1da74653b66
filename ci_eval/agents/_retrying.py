"""Calls of a model that are made again where they fail in passing."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ci_eval.records.errors import TrialError

ATTEMPTS = 4
"""How often a call is made at most."""
FIRST_PAUSE_S = 0.5
"""What is waited before a call is made again, in seconds; twice as long each time."""
LONGEST_PAUSE_S = 60.0
"""Where the provider wants it still later, a call is not made again."""

T = TypeVar("T")


async def retried(
    call: Callable[[], Awaitable[T]], wait: Callable[[TrialError], float | None]
) -> T:
    """Return what `call` returns, made as often as it takes.

    `wait` says of an error how many seconds the provider wants at least to be left alone, or
    `None` where it is of no use to ask again.

    Raises:
        TrialError: the last one, where no call came to anything.

    """
    for attempt in range(ATTEMPTS - 1):
        try:
            return await call()
        except TrialError as exc:
            wanted = wait(exc)
            if wanted is None:
                raise
            pause = max(FIRST_PAUSE_S * 2.0**attempt, wanted)
            if pause > LONGEST_PAUSE_S:
                raise
        await asyncio.sleep(pause)
    return await call()
