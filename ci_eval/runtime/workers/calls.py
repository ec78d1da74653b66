"""One call of a user's function, made again where its neighbours in the worker cut it off."""

import asyncio
from contextlib import suppress

from ci_eval.records.errors import DisturbedError, TrialError
from ci_eval.records.model import Json
from ci_eval.runtime.workers.pool import Pool

MAX_DISTURBANCES = 3
"""How often a call is made again because a neighbour took its worker down."""


async def call(pool: Pool, message: Json, *, name: str, timeout_s: float) -> Json:
    """Return what the function, which messages call `name`, returns for `message`.

    Raises:
        BadAnswerError: what it returned is no JSON.
        TrialError: it returned nothing, or not within `timeout_s` seconds.

    """
    for disturbances in range(MAX_DISTURBANCES):
        with suppress(DisturbedError):
            return await _once(pool, message, name, timeout_s, alone=disturbances > 0)
    return await _once(pool, message, name, timeout_s, alone=True)


async def _once(pool: Pool, message: Json, name: str, timeout_s: float, *, alone: bool) -> Json:
    lease = await pool.open(alone=alone)
    try:
        async with asyncio.timeout(timeout_s):
            answer = await lease.ask({"message": message, "session": {}})
    except TimeoutError:
        raise TrialError("timeout", f"{name} was not done after {timeout_s:g} s") from None
    finally:
        await lease.end()
    return answer["reply"]
