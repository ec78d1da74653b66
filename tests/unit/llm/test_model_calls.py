import asyncio
import time
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from support import jumping_clock
from support.scripted_judge import context, judge

from ci_eval.llm import model_calls as calling
from ci_eval.llm.judge_settings import JudgeOptions
from ci_eval.llm.model_calls import Budget, Caller, Meter
from ci_eval.records.errors import JudgeError
from ci_eval.records.questions import Answer, Question


def question(number: int = 0) -> Question:
    return Question("ci/c", "", f"t{number}", {})


async def ask(told, count: int = 1, budget: Budget | None = None, **options):
    """Ask so many questions at once, and return what came of each, and the meter."""
    meter = Meter()
    async with AsyncExitStack() as stack:
        block = JudgeOptions.model_validate(options)
        line = Caller(told, block, context(Path()), stack)
        calls = (line.call(question(n), meter, budget or Budget(None, None)) for n in range(count))
        return await asyncio.gather(*calls, return_exceptions=True), meter


def failing(times: int, **how):
    """Return a call that fails so often, and then returns `ok`."""
    left = [times]

    def say(_question):
        if left[0]:
            left[0] -= 1
            raise JudgeError("went wrong", **how)
        return "ok"

    return say


def test_what_fails_in_passing_is_asked_again(tmp_path):
    told = judge(failing(3, passing=True))
    (answer,), meter = jumping_clock.run(ask(told))
    assert answer.text == "ok"
    assert len(told.asked) == meter.usage.calls == 4


def test_so_often_and_no_more():
    told = judge(failing(9, passing=True))
    (error,), meter = jumping_clock.run(ask(told, attempts=3))
    assert str(error) == "went wrong; gave up after 3 attempts"
    assert meter.usage.calls == 3


def test_what_will_not_pass_is_asked_once():
    told = judge(failing(1))
    (error,), meter = jumping_clock.run(ask(told))
    assert str(error) == "went wrong"
    assert meter.usage.calls == 1


def test_a_call_that_takes_too_long_is_ended_and_made_again():
    told = judge(lambda _: "ok", delay_s=3600.0)

    async def heals():
        await asyncio.sleep(10)
        type(told).delay_s = 0.0

    async def work():
        healing = asyncio.create_task(heals())
        found = await jumping_clock.timed(ask(told, timeout_s=20))
        await healing
        return found

    ((answer,), meter), took = jumping_clock.run(work())
    assert answer.text == "ok"
    assert meter.usage.calls == 2
    assert 20 < took < 21


@pytest.mark.parametrize("delay_s", [0.0, 3600.0], ids=["refuses", "hangs"])
def test_a_provider_that_is_down_is_given_up_within_the_time_that_is_allowed(delay_s):
    told = judge(failing(10_000, passing=True), delay_s=delay_s)
    asked = ask(told, 40, patience_s=40, timeout_s=30, attempts=100, concurrency=8)
    (errors, _), took = jumping_clock.run(jumping_clock.timed(asked))

    assert 39 < took < 41
    assert all(isinstance(each, JudgeError) for each in errors)
    last = "no answer within" if delay_s else "went wrong"
    told = f"considered unavailable: no successful response for 40 s; {last}"
    assert any(str(each).startswith(told) for each in errors)


def test_time_in_which_nobody_asked_does_not_count_against_a_provider():
    told = judge(failing(1, passing=True))

    async def work():
        meter = Meter()
        async with AsyncExitStack() as stack:
            block = JudgeOptions(patience_s=20)
            line = Caller(told, block, context(Path()), stack)
            budget = Budget(None, None)
            first = await line.call(question(), meter, budget)
            await asyncio.sleep(3600)
            return first, await line.call(question(), meter, budget)

    assert [each.text for each in jumping_clock.run(work())] == ["ok", "ok"]


def test_a_provider_that_knows_no_such_model_is_not_asked_again():
    told = judge(failing(100, hopeless=True))
    errors, _ = jumping_clock.run(ask(told, 20, concurrency=1))
    assert len(told.asked) == 1
    assert {str(each) for each in errors} == {"went wrong"}


def test_one_that_refuses_everything_is_given_up_after_a_few():
    told = judge(failing(100))
    jumping_clock.run(ask(told, 20, concurrency=1))
    assert len(told.asked) == calling.MAX_REFUSALS


def test_one_refused_question_does_not_spoil_the_others():
    def say(asked):
        if asked.text == "t3":
            raise JudgeError("too long for this model")
        return "ok"

    told = judge(say)
    found, _ = jumping_clock.run(ask(told, 20, concurrency=1))
    assert [isinstance(each, Answer) for each in found] == [n != 3 for n in range(20)]


def test_nobody_is_asked_before_the_provider_wants_to_be():
    refuse = failing(1, throttled=True, after_s=20)
    asked_at = []

    def say(asked):
        asked_at.append(time.monotonic())
        return refuse(asked)

    found, _ = jumping_clock.run(ask(judge(say), 5, concurrency=1))
    first, *others = asked_at
    assert len(others) == 5
    assert min(others) >= first + 20
    assert all(isinstance(each, Answer) for each in found)


def test_a_provider_that_asks_for_a_pause_longer_than_our_patience_is_given_up_in_time():
    told = judge(failing(10_000, passing=True, throttled=True, after_s=3600))
    (errors, _), took = jumping_clock.run(jumping_clock.timed(ask(told, 8, patience_s=120)))
    assert 119 < took < 121
    assert all(isinstance(each, JudgeError) for each in errors)


def test_no_more_calls_are_under_way_than_allowed():
    told = judge(lambda _: "ok", delay_s=1)
    jumping_clock.run(ask(told, 30, concurrency=4))
    assert told.most_at_once == 4


def test_the_client_is_opened_once_and_only_when_it_is_needed():
    told = judge(lambda _: "ok", delay_s=1)
    jumping_clock.run(ask(told, 0))
    assert told.opened == 0
    jumping_clock.run(ask(told, 10))
    assert told.opened == 1


def test_a_key_that_is_missing_is_told_instead_of_asking():
    class Keyed(type(judge(lambda _: "ok"))):
        def missing(self, env):
            return "KEY"

    (error,), meter = jumping_clock.run(ask(Keyed(model="m")))
    assert str(error) == "the judge lacks KEY"
    assert meter.usage.calls == 0


def test_a_budget_counts_what_is_under_way():
    budget = Budget(None, 1.0)
    budget.begin(0.6)
    with pytest.raises(JudgeError, match="max_cost_usd"):
        budget.begin(0.6)
    budget.end(0.6, 0.1)
    budget.begin(0.6)
    assert (budget.calls, budget.cost_usd) == (2, 0.1)


def test_a_call_that_was_cut_short_counts_too():
    budget = Budget(2, None)
    told = judge(failing(5, passing=True))
    (error,), _ = jumping_clock.run(ask(told, budget=budget))
    assert "the 2 calls of `judge.max_calls` are used up" in str(error)
    assert len(told.asked) == 2
