"""Calls of a user's function, retried if another call took down their shared worker."""

import asyncio
from contextlib import suppress

from ci_eval.records.cases import Json
from ci_eval.records.errors import DisturbedError, TrialError
from ci_eval.runtime.workers.worker_pool import Pool

MAX_RETRIES = 3
"""The most retries of a call whose worker was taken down by another call."""


async def call(pool: Pool, message: Json, *, name: str, timeout_s: float) -> Json:
    """Call the function with `message`, and return its result; errors call it `name`.

    Raises:
        BadAnswerError: the result is not JSON.
        TrialError: it failed, or timed out after `timeout_s` seconds.

    """
    for retries in range(MAX_RETRIES):
        with suppress(DisturbedError):
            return await _once(pool, message, name, timeout_s, alone=retries > 0)
    return await _once(pool, message, name, timeout_s, alone=True)


async def _once(pool: Pool, message: Json, name: str, timeout_s: float, *, alone: bool) -> Json:
    lease = await pool.open(alone=alone)
    try:
        async with asyncio.timeout(timeout_s):
            answer = await lease.ask({"message": message, "session": {}})
    except TimeoutError:
        raise TrialError("timeout", f"{name} timed out after {timeout_s:g} s") from None
    finally:
        await lease.end()
    return answer["reply"]
