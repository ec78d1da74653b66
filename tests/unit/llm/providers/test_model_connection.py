"""A client is made once, at its first use, and closed at the end."""

import asyncio
import threading

import pytest
from pydantic import TypeAdapter, ValidationError

from ci_eval.llm.providers.model_connection import Connection
from ci_eval.records.errors import JudgeError
from ci_eval.runtime.http import Address


class Made:
    """Counts what is made and closed."""

    def __init__(self) -> None:
        self.made: list[threading.Thread] = []
        self.closed: list[int] = []
        self.ready = threading.Event()
        self.ready.set()

    def make(self) -> int:
        self.ready.wait(120)
        self.made.append(threading.current_thread())
        return len(self.made)

    async def close(self, client: int) -> None:
        self.closed.append(client)


def test_what_is_never_used_is_never_made() -> None:
    found = Made()

    async def run() -> None:
        async with Connection(found.make, found.close):
            pass

    asyncio.run(run())
    assert (found.made, found.closed) == ([], [])


def test_all_share_one_client_that_is_made_in_a_thread() -> None:
    found = Made()

    async def run() -> list[int]:
        async with Connection(found.make, found.close) as connection:
            return await asyncio.gather(*(connection.client() for _ in range(5)))

    assert asyncio.run(run()) == [1] * 5
    assert len(found.made) == 1
    assert found.made != [threading.main_thread()]
    assert found.closed == [1]


def test_who_is_cancelled_does_not_spoil_it_for_the_others() -> None:
    found = Made()
    found.ready.clear()

    async def run() -> int:
        async with Connection(found.make, found.close) as connection:
            first, second = (asyncio.create_task(connection.client()) for _ in range(2))
            await asyncio.sleep(0)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            found.ready.set()
            return await second

    assert asyncio.run(run()) == 1
    assert found.closed == [1]


def test_what_cannot_be_made_is_told_to_all_and_never_closed() -> None:
    found = Made()

    def make() -> int:
        raise JudgeError("no key")

    async def run() -> list[int | BaseException]:
        async with Connection(make, found.close) as connection:
            calls = (connection.client() for _ in range(2))
            return await asyncio.gather(*calls, return_exceptions=True)

    assert [str(each) for each in asyncio.run(run())] == ["no key", "no key"]
    assert found.closed == []


@pytest.mark.parametrize("text", ["localhost:8080", "ftp://a", "http://", "http://a b", "a"])
def test_an_address_says_how_to_get_there(text: str) -> None:
    with pytest.raises(ValidationError, match="expected an address such as"):
        TypeAdapter[str](Address).validate_python(text)


@pytest.mark.parametrize("text", ["http://127.0.0.1:8080", "https://gateway.example/v1/"])
def test_an_address_is_kept_as_it_is(text: str) -> None:
    assert TypeAdapter[str](Address).validate_python(text) == text
