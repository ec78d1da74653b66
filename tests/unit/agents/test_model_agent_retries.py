"""When a call is made again, and when it is not."""

import asyncio

import pytest

from ci_eval.agents import _model_agent_retries
from ci_eval.agents._model_agent_retries import retried
from ci_eval.records.errors import TrialError


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the pauses, which take no time."""
    found: list[float] = []

    async def sleep(seconds: float) -> None:
        found.append(seconds)

    monkeypatch.setattr(_model_agent_retries.asyncio, "sleep", sleep)
    return found


class Calls:
    """Calls that fail, all but the last."""

    def __init__(self, failures: int) -> None:
        self.made = 0
        self._failures = failures

    async def __call__(self) -> str:
        self.made += 1
        if self.made <= self._failures:
            raise TrialError("connection", f"failure {self.made}")
        return "answer"


def result(calls: Calls, wanted: float | None) -> str:
    return asyncio.run(retried(calls, lambda _: wanted))


def test_a_pause_is_twice_as_long_as_the_one_before(pauses: list[float]) -> None:
    assert result(Calls(3), 0.0) == "answer"
    assert pauses == [0.5, 1.0, 2.0]


def test_nobody_is_asked_before_it_wants_to_be(pauses: list[float]) -> None:
    assert result(Calls(3), 1.5) == "answer"
    assert pauses == [1.5, 1.5, 2.0]


def test_the_last_failure_is_told(pauses: list[float]) -> None:
    calls = Calls(9)
    with pytest.raises(TrialError, match="failure 4"):
        result(calls, 0.0)
    assert (calls.made, len(pauses)) == (4, 3)


@pytest.mark.parametrize("wanted", [None, 60.1])
def test_what_waiting_does_not_mend_is_told_at_once(
    pauses: list[float], wanted: float | None
) -> None:
    calls = Calls(9)
    with pytest.raises(TrialError, match="failure 1"):
        result(calls, wanted)
    assert (calls.made, pauses) == (1, [])


def test_the_longest_pause_is_waited(pauses: list[float]) -> None:
    assert result(Calls(1), 60.0) == "answer"
    assert pauses == [60.0]
