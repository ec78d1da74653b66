"""A clock that jumps: hours are over at once, and how busy the machine is cannot be seen.

Time stands still while anything can go on, and jumps to when the first one wants to be woken as
soon as all wait.  So what is tested may wait neither for threads nor for other processes.
"""

import asyncio
import selectors
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

T = TypeVar("T")


class _Jumping(selectors.DefaultSelector):
    """What an event loop waits with; it does not wait."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if not ready:
            assert timeout is not None, "all wait, and nothing will ever wake them"
            self.now += timeout
        return ready


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` as `asyncio.run` does, by a clock that jumps."""
    selector = _Jumping()
    loop = asyncio.SelectorEventLoop(selector)
    with pytest.MonkeyPatch.context() as patch, asyncio.Runner(loop_factory=lambda: loop) as runner:
        patch.setattr(time, "monotonic", lambda: selector.now)
        patch.setattr(time, "perf_counter", lambda: selector.now)
        return runner.run(main)


async def timed(work: Coroutine[Any, Any, T]) -> tuple[T, float]:
    """Return the result of `work`, and its duration in seconds."""
    began = time.monotonic()
    return await work, time.monotonic() - began
