"""Rate limits of a provider: concurrent calls, requests per minute and tokens per minute.

Concurrency grows while calls succeed and is cut when the provider throttles: additive increase,
multiplicative decrease as in TCP (RFC 5681), but gentler, since a throttled call costs little.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from weakref import WeakKeyDictionary

CUT = 0.7
"""Factor for the concurrency when the provider throttles a call."""
GROWTH = 0.25
"""Increase of the concurrency with every call that succeeds."""
HEAD_START_S = 0.001
"""Seconds between the starts of two calls, so that the first can send its request.

Without it, all waiting calls prepare their requests together, send them together and are read
together: half as many calls per second, measured with 50 concurrent calls.  Calls prepared in other
processes, such as those of agents, need no head start.
"""


@dataclass
class Pace:
    """When a provider takes the next call; shared by all its callers in a run."""

    closed_until: float = 0.0
    """In seconds of `time.monotonic`."""
    per_request_s: float = 0.0
    """Seconds between the starts of two calls."""
    _per_token_s: float = 0.0
    _next_at: float = 0.0

    def limit(self, requests_per_minute: float | None, tokens_per_minute: float | None) -> None:
        """Add limits; of several, the smallest applies."""
        if requests_per_minute:
            self.per_request_s = max(self.per_request_s, 60 / requests_per_minute)
        if tokens_per_minute:
            self._per_token_s = max(self._per_token_s, 60 / tokens_per_minute)

    def close(self, until: float) -> None:
        """Admit no calls before `until`."""
        self.closed_until = max(self.closed_until, until)

    async def wait(self, tokens: int) -> None:
        """Wait for the turn of a call of about `tokens` tokens."""
        at = max(time.monotonic(), self._next_at)
        self._next_at = at + max(self.per_request_s, self._per_token_s * tokens)
        # The provider may throttle again meanwhile.
        while (left := max(at, self.closed_until) - time.monotonic()) > 0:  # noqa: ASYNC110  # waits for a time, not for an event
            await asyncio.sleep(left)


_paces: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Pace]] = WeakKeyDictionary()
"""By event loop, since each run has its own, and by provider."""


def pace_of(provider: str) -> Pace:
    """Return the pace of a provider, which agents and judges share."""
    loop = asyncio.get_running_loop()
    return _paces.setdefault(loop, {}).setdefault(provider, Pace())


class RateLimiter:
    """Admits the calls to one provider, at a `pace` that is shared with others."""

    def __init__(
        self, *, concurrency: int, pace: Pace | None = None, head_start_s: float = HEAD_START_S
    ) -> None:
        self._max_concurrency = concurrency
        self._window = float(concurrency)
        self._running = 0
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._start_lock = asyncio.Lock()
        self._pace = pace or Pace()
        self._head_start_s = head_start_s
        self._cut_at = 0.0

    @property
    def window(self) -> int:
        """Number of concurrent calls allowed at the moment."""
        return int(self._window)

    @asynccontextmanager
    async def slot(self, tokens: int) -> AsyncIterator[None]:
        """Wait until a call of about `tokens` tokens may start, and count it while it runs."""
        await self._enter()
        try:
            await self._pace.wait(tokens)
            if self._head_start_s:
                await self._start_lock.acquire()
                loop = asyncio.get_running_loop()
                loop.call_later(self._head_start_s, self._start_lock.release)
            yield
        finally:
            self._running -= 1
            self._admit()

    def succeeded(self) -> None:
        """Allow more concurrency after a call that succeeded."""
        self._window = min(self._max_concurrency, self._window + GROWTH)
        self._admit()

    def throttled(self, started: float, after_s: float) -> None:
        """Reduce concurrency after the provider throttled a call begun at `started`.

        `after_s` are the seconds during which no call may start.
        """
        now = time.monotonic()
        self._pace.close(now + after_s)
        if started > self._cut_at:  # calls sent together count once
            self._window = max(1.0, self._window * CUT)
            self._cut_at = now

    async def _enter(self) -> None:
        if self._running < self.window and not self._waiters:
            self._running += 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiters.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._running -= 1
                self._admit()
            raise

    def _admit(self) -> None:
        while self._waiters and self._running < self.window:
            turn = self._waiters.popleft()
            if not turn.done():
                self._running += 1
                turn.set_result(None)
