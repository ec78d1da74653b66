"""Conversations with a server behind the model gateway, one at a time.

With several at once, nothing would tell for which conversation the server calls a model.
"""

import asyncio
from collections.abc import Awaitable, Callable

from ci_eval.plugins.points import Session
from ci_eval.records.cases import Content, Invocation, Json
from ci_eval.records.errors import TrialError
from ci_eval.runtime.http import StatusError
from ci_eval.runtime.trial_clock import TrialClock


class Turns:
    """Lets each conversation begin when the previous one is over.

    `stop` ends the process of the server, which restarts when it is needed.
    """

    def __init__(self, stop: Callable[[], Awaitable[None]]) -> None:
        self._stop = stop
        self._lock = asyncio.Lock()

    async def take(self, begin: Callable[[], Awaitable[Session]]) -> Session:
        """Begin a conversation, and return it."""
        await self._lock.acquire()
        try:
            return _Alone(await begin(), self)
        except BaseException as exc:  # whatever ends it, the next one may begin
            await self.end(is_busy=may_be_busy(exc))
            raise

    async def end(self, *, is_busy: bool) -> None:
        """Let the next conversation begin; if the server may still be busy, stop it.

        Otherwise its model calls would count for the next conversation.
        """
        try:
            if is_busy:
                await self._stop()
        finally:
            self._lock.release()


class _Alone(Session):
    """The only conversation of its server."""

    def __init__(self, inner: Session, turns: Turns) -> None:
        self._inner = inner
        self._turns = turns
        self._is_busy = False
        """Whether the server may still work on a message."""

    @property
    def memento(self) -> Json:
        return self._inner.memento

    @property
    def output(self) -> str:
        return self._inner.output

    def timed_by(self, clock: TrialClock) -> None:
        self._inner.timed_by(clock)

    def complete(self) -> None:
        self._inner.complete()

    async def send(self, message: Content) -> Invocation:
        try:
            return await self._inner.send(message)
        except BaseException as exc:  # also if the trial is cancelled
            self._is_busy = may_be_busy(exc)
            raise

    async def close(self) -> dict[str, Json] | None:
        try:
            return await self._inner.close()
        except BaseException as exc:  # also if the trial is cancelled
            self._is_busy |= may_be_busy(exc)
            raise
        finally:
            await self._turns.end(is_busy=self._is_busy)


def may_be_busy(error: BaseException) -> bool:
    """Return True unless the error came with the end of the server's answer, or without a request.

    >>> may_be_busy(TimeoutError()), may_be_busy(TrialError("raised", "the agent failed"))
    (True, False)
    """
    if not isinstance(error, TrialError):
        return True
    return error.kind in ("connection", "protocol", "timeout") and not isinstance(
        error, StatusError
    )
