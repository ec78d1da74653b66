import asyncio
import time

import pytest
from support import jumping_clock

from ci_eval.llm.rate_limit import Pace, RateLimiter, pace_of


async def _hold(pace: RateLimiter, tokens: int = 1) -> float:
    async with pace.slot(tokens):
        return time.monotonic()


def test_room_is_cut_once_for_calls_that_were_sent_together_and_grows_with_successes():
    pace = RateLimiter(concurrency=16)
    sent = time.monotonic()
    for _ in range(10):
        pace.throttled(sent, 0)
    assert pace.window == 11

    for _ in range(4):
        pace.succeeded()
    assert pace.window == 12
    for _ in range(1000):
        pace.succeeded()
    assert pace.window == 16


def test_there_is_always_room_for_one():
    pace = RateLimiter(concurrency=4)
    for _ in range(20):
        pace.throttled(time.monotonic(), 0)
    assert pace.window == 1


def test_turns_come_in_the_order_they_were_asked_for():
    order: list[int] = []

    async def one(pace: RateLimiter, number: int) -> None:
        async with pace.slot(1):
            order.append(number)
            await asyncio.sleep(0)

    async def work() -> None:
        pace = RateLimiter(concurrency=2)
        await asyncio.gather(*(one(pace, number) for number in range(20)))

    jumping_clock.run(work())
    assert order == list(range(20))


def begin(pace: RateLimiter, *tokens: int) -> list[float]:
    """Return after how many seconds each call of so many tokens begins."""

    async def work() -> list[float]:
        started = time.monotonic()
        return [
            at - started for at in await asyncio.gather(*(_hold(pace, each) for each in tokens))
        ]

    return jumping_clock.run(work())


def limited(*limits: tuple[float | None, float | None]) -> RateLimiter:
    pace = Pace()
    for requests, tokens in limits:
        pace.limit(requests, tokens)
    return RateLimiter(concurrency=10, pace=pace)


def test_so_many_requests_a_minute_are_spread_over_it():
    assert begin(limited((30, None)), 1, 1, 1, 1, 1) == pytest.approx([0, 2, 4, 6, 8])


def test_so_many_tokens_a_minute_too():
    assert begin(limited((None, 60_000)), 1000, 5000, 1) == pytest.approx([0, 1, 6])


def test_of_several_limits_the_smallest_holds():
    assert begin(limited((60, None), (30, None), (None, None)), 1, 1) == pytest.approx([0, 2])
    both = limited((60, 60_000), (120, 30_000))
    assert begin(both, 1, 5000, 1) == pytest.approx([0, 1, 11])


def test_all_who_call_a_provider_share_its_limits():
    async def work() -> list[float]:
        pace_of("a").limit(30, None)
        judges, agents, others = (
            RateLimiter(concurrency=4, pace=pace_of(name)) for name in ("a", "a", "b")
        )
        now = time.monotonic()
        return [await _hold(each) - now for each in (judges, agents, others, judges)]

    assert jumping_clock.run(work()) == pytest.approx([0, 2, 2, 4], abs=0.01)


def test_all_wait_as_long_as_the_provider_wants():
    async def work() -> list[float]:
        pace = RateLimiter(concurrency=4)
        now = time.monotonic()
        pace.throttled(now, 20)
        assert pace.window == 2
        return [at - now for at in await asyncio.gather(*(_hold(pace) for _ in range(4)))]

    # They begin one after the other, as calls do that prepare their requests.
    assert jumping_clock.run(work()) == pytest.approx([20, 20, 20, 20], abs=0.01)


def test_two_that_share_a_provider_wait_for_each_other():
    async def work() -> list[float]:
        judges, agents, others = (
            RateLimiter(concurrency=4, pace=pace_of(name)) for name in ("a", "a", "b")
        )
        now = time.monotonic()
        judges.throttled(now, 20)
        return [await _hold(others) - now, await _hold(agents) - now]

    assert jumping_clock.run(work()) == pytest.approx([0, 20], abs=0.01)


@pytest.mark.parametrize("waiting", [True, False])
def test_who_gives_up_while_waiting_takes_no_turn_from_the_others(waiting):
    async def work() -> None:
        pace = RateLimiter(concurrency=1)
        has_begun, may_end = asyncio.Event(), asyncio.Event()

        async def hold() -> None:
            async with pace.slot(1):
                has_begun.set()
                await may_end.wait()

        first = asyncio.create_task(hold())
        await has_begun.wait()
        second, third = (asyncio.create_task(_hold(pace)) for _ in range(2))
        await asyncio.sleep(0)  # both stand in line
        (second if waiting else first).cancel()
        may_end.set()
        await asyncio.gather(first, second, third, return_exceptions=True)
        await _hold(pace)
        cancelled = [each.cancelled() for each in (first, second, third)]
        assert cancelled == [not waiting, waiting, False]

    jumping_clock.run(work())
