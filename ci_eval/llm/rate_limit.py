"""How fast a provider is asked: so many calls at once, so many a minute, and fewer when it is hurt.

The number of calls at once grows while they succeed and is cut when the provider says that it
is too much: additive increase, multiplicative decrease, as TCP does it (RFC 5681), but gentler,
for a refused call costs little.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

CUT = 0.7
"""What is left of the calls at once when a provider refuses one."""
GROWTH = 0.25
"""By how much they grow with every call that succeeds."""
_HEAD_START_S = 0.001
"""How long a call has the event loop to itself when it begins.

In this time it prepares its request and sends it. Else all that wait would prepare theirs first,
and then send them together, wait together and be read together: half as many calls a second,
measured with 50 at once.
"""


class Pace:
    """The turns of all calls to one provider."""

    def __init__(
        self,
        *,
        concurrency: int,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
    ) -> None:
        self._most = concurrency
        self._room = float(concurrency)
        self._busy = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._door = asyncio.Lock()
        self._not_before = 0.0
        self._between_s = 60 / requests_per_minute if requests_per_minute else 0.0
        self._per_token_s = 60 / tokens_per_minute if tokens_per_minute else 0.0
        self._free_at = 0.0
        self._cut_at = 0.0

    @property
    def room(self) -> int:
        """How many calls may be under way at once, at the moment."""
        return int(self._room)

    @asynccontextmanager
    async def turn(self, tokens: int) -> AsyncIterator[None]:
        """Wait for a turn to make a call of about so many tokens, and hold it."""
        await self._enter()
        try:
            await self._wait_until(self._reserve(tokens))
            await self._door.acquire()
            asyncio.get_running_loop().call_later(_HEAD_START_S, self._door.release)
            yield
        finally:
            self._busy -= 1
            self._admit()

    def went_well(self) -> None:
        """Note that a call succeeded."""
        self._room = min(self._most, self._room + GROWTH)
        self._admit()

    def too_much(self, started: float, after_s: float | None) -> None:
        """Note that the provider refused a call, begun at `started`, because there are too many.

        `after_s` is when it wants to be asked again; nobody asks it before.
        """
        now = time.monotonic()
        if after_s:
            self._not_before = max(self._not_before, now + after_s)
        if started > self._cut_at:  # one refusal of many that were sent together counts
            self._room = max(1.0, self._room * CUT)
            self._cut_at = now

    async def _enter(self) -> None:
        if self._busy < self.room and not self._waiting:
            self._busy += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._busy -= 1
                self._admit()
            raise

    def _admit(self) -> None:
        while self._waiting and self._busy < self.room:
            turn = self._waiting.popleft()
            if not turn.done():
                self._busy += 1
                turn.set_result(None)

    def _reserve(self, tokens: int) -> float:
        """Return from when on the call may be made, and put the next one after it."""
        at = max(time.monotonic(), self._free_at)
        self._free_at = at + max(self._between_s, self._per_token_s * tokens)
        return at

    async def _wait_until(self, moment: float) -> None:
        # The provider may put it off again meanwhile.
        while (left := max(moment, self._not_before) - time.monotonic()) > 0:  # noqa: ASYNC110  # it is the time that is waited for
            await asyncio.sleep(left)
