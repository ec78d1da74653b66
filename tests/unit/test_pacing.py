import asyncio
import time

import pytest

from ci_eval.pacing import Pace


async def _hold(pace: Pace, seconds: float = 0.0, tokens: int = 1) -> float:
    async with pace.turn(tokens):
        began = time.monotonic()
        await asyncio.sleep(seconds)
        return began


def test_room_is_cut_once_for_calls_that_were_sent_together_and_grows_with_successes():
    pace = Pace(concurrency=16)
    sent = time.monotonic()
    for _ in range(10):
        pace.too_much(sent, None)
    assert pace.room == 11

    for _ in range(4):
        pace.went_well()
    assert pace.room == 12
    for _ in range(1000):
        pace.went_well()
    assert pace.room == 16


def test_there_is_always_room_for_one():
    pace = Pace(concurrency=4)
    for _ in range(20):
        pace.too_much(time.monotonic(), None)
    assert pace.room == 1


def test_turns_come_in_the_order_they_were_asked_for():
    order: list[int] = []

    async def one(pace: Pace, number: int) -> None:
        async with pace.turn(1):
            order.append(number)
            await asyncio.sleep(0)

    async def work() -> None:
        pace = Pace(concurrency=2)
        await asyncio.gather(*(one(pace, number) for number in range(20)))

    asyncio.run(work())
    assert order == list(range(20))


def test_so_many_requests_a_minute_are_spread_over_it():
    async def work() -> list[float]:
        pace = Pace(concurrency=10, requests_per_minute=1200)
        return await asyncio.gather(*(_hold(pace) for _ in range(5)))

    started = time.monotonic()
    began = sorted(asyncio.run(work()))
    # Each may begin later than it could, and none earlier.
    assert all(at - started > 0.05 * number - 0.005 for number, at in enumerate(began))


def test_so_many_tokens_a_minute_too():
    async def work() -> list[float]:
        pace = Pace(concurrency=10, tokens_per_minute=60_000)
        return await asyncio.gather(*(_hold(pace, tokens=100) for _ in range(3)))

    started = time.monotonic()
    began = sorted(asyncio.run(work()))
    assert began[2] - started > 0.19


def test_all_wait_as_long_as_the_provider_wants():
    async def work() -> tuple[float, list[float]]:
        pace = Pace(concurrency=4)
        now = time.monotonic()
        pace.too_much(now, 0.2)
        return now, await asyncio.gather(*(_hold(pace) for _ in range(4)))

    now, began = asyncio.run(work())
    assert min(began) - now >= 0.2


@pytest.mark.parametrize("waiting", [True, False])
def test_who_gives_up_while_waiting_takes_no_turn_from_the_others(waiting):
    async def work() -> None:
        pace = Pace(concurrency=1)
        first = asyncio.create_task(_hold(pace, 0.02))
        second = asyncio.create_task(_hold(pace))
        third = asyncio.create_task(_hold(pace))
        await asyncio.sleep(0.005)
        (second if waiting else first).cancel()
        async with asyncio.timeout(1):
            await asyncio.gather(first, second, third, return_exceptions=True)
        async with asyncio.timeout(1):
            await _hold(pace)

    asyncio.run(work())
