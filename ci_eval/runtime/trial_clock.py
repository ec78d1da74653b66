"""The time limit of a trial, which is paused while others keep the agent waiting."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class TrialClock:
    """Pauses the time limit `limit` of a trial, for one or several overlapping reasons."""

    def __init__(self, limit: asyncio.Timeout) -> None:
        self._limit = limit
        self._stops = 0
        self._began = 0.0
        self._left_s = 0.0
        self._stopped_s = 0.0

    @property
    def stopped_s(self) -> float:
        """The seconds for which it has been paused so far."""
        return self._stopped_s + (_now() - self._began if self._stops else 0.0)

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Pause the time limit until the context is left."""
        if not self._stops:
            self._began = _now()
            self._left_s = (self._limit.when() or self._began) - self._began
            self._reschedule(None)
        self._stops += 1
        try:
            yield
        finally:
            self._stops -= 1
            if not self._stops:
                self._stopped_s += _now() - self._began
                self._reschedule(_now() + self._left_s)

    def _reschedule(self, when: float | None) -> None:
        with suppress(RuntimeError):  # the trial is over
            self._limit.reschedule(when)


def _now() -> float:
    return asyncio.get_running_loop().time()
