"""Retries of calls to a model that is itself the agent."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ci_eval.records.errors import TrialError
from ci_eval.runtime.retry import Backoff

ATTEMPTS = 4
"""Maximum number of calls, the first included."""
LONGEST_PAUSE_S = 60.0
"""Maximum pause, in seconds; a provider that asks for a longer one is not called again."""
BACKOFF = Backoff(first_s=0.5, longest_s=LONGEST_PAUSE_S)

T = TypeVar("T")


async def retried(
    call: Callable[[], Awaitable[T]], wait: Callable[[TrialError], float | None]
) -> T:
    """Return the result of `call`, retried after errors that may be temporary.

    `wait` returns the minimum pause in seconds that the provider requests with an error, or `None`
    if a retry is pointless.

    Raises:
        TrialError: the last error, if no call succeeded.

    """
    for pause_s in BACKOFF.pauses(ATTEMPTS - 1):
        try:
            return await call()
        except TrialError as exc:
            wanted_s = wait(exc)
            if wanted_s is None or wanted_s > LONGEST_PAUSE_S:
                raise
        await asyncio.sleep(max(pause_s, wanted_s))
    return await call()
