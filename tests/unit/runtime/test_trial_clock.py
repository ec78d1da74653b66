import asyncio

import pytest
from support import jumping_clock

from ci_eval.runtime.trial_clock import TrialClock


async def busy(clock: TrialClock, *spans: tuple[float, float]) -> None:
    """Stop the clock during each span of seconds, from now."""

    async def one(begin: float, end: float) -> None:
        await asyncio.sleep(begin)
        with clock.stopped():
            await asyncio.sleep(end - begin)

    await asyncio.gather(*(one(*span) for span in spans))


def test_stopped_time_does_not_count_and_overlaps_count_once():
    async def trial() -> tuple[float, float]:
        async with asyncio.timeout(10) as limit:
            clock = TrialClock(limit)
            await busy(clock, (1, 100), (50, 200), (300, 400))
            return clock.stopped_s, limit.when() - asyncio.get_running_loop().time()

    with pytest.raises(TimeoutError):  # 1 s before and 100 s between
        jumping_clock.run(trial())

    async def shorter() -> tuple[float, float]:
        async with asyncio.timeout(10) as limit:
            clock = TrialClock(limit)
            await busy(clock, (1, 100), (50, 200), (203, 400))
            return clock.stopped_s, limit.when() - asyncio.get_running_loop().time()

    assert jumping_clock.run(shorter()) == pytest.approx((396, 6))


def test_what_is_still_stopped_when_the_trial_ends_disturbs_nothing():
    async def trial() -> float:
        async with asyncio.timeout(10) as limit:
            clock = TrialClock(limit)
            waiting = asyncio.create_task(busy(clock, (0, 100)))
            await asyncio.sleep(50)
        stopped = clock.stopped_s
        await waiting
        return stopped

    assert jumping_clock.run(trial()) == pytest.approx(50)
