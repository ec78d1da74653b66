"""Whose call it is, and its number among equal ones."""

import asyncio

import pytest
from support import jumping_clock

from ci_eval.llm.gateway.gateway_options import ModelOptions, unreachable
from ci_eval.llm.gateway.open_conversations import (
    MAX_WAIT_S,
    Conversation,
    Process,
    RefusedCallError,
)
from ci_eval.llm.gateway.spending import Spending, exceeded, overspent
from ci_eval.records.errors import DisturbedError, TrialError
from ci_eval.records.model_usage import ModelUsage
from ci_eval.records.trials import TrialKey
from ci_eval.runtime.trial_clock import TrialClock

KEY = TrialKey(agent="a", evalset="e", case="c")


def test_equal_requests_are_numbered_and_a_failed_one_gives_its_number_back():
    conversation = Conversation(KEY)
    assert [conversation.take("r") for _ in range(3)] == [0, 1, 2]
    assert conversation.take("other") == 0
    conversation.fail("r", 1, "busy")
    assert conversation.take("r") == 1
    assert conversation.take("r") == 3


def test_a_failure_is_an_error_unless_the_request_succeeds_later():
    conversation = Conversation(KEY)
    conversation.take("r")
    conversation.fail("r", 0, "busy")
    with pytest.raises(TrialError, match="busy"):
        conversation.check()

    conversation.take("r")
    conversation.fail("r", 0, "still busy")
    conversation.take("r")
    conversation.succeed("r", 0, ModelUsage(calls=1))
    conversation.check()
    assert conversation.take_usage() == ModelUsage(calls=1, retries=2)
    assert conversation.take_usage() == ModelUsage()


def test_an_equal_request_beside_a_failed_one_is_no_retry_of_it():
    conversation = Conversation(KEY)
    assert [conversation.take("r"), conversation.take("r")] == [0, 1]
    conversation.fail("r", 0, "busy")
    conversation.succeed("r", 1, ModelUsage(calls=1))

    assert conversation.take_usage() == ModelUsage(calls=1)
    with pytest.raises(TrialError, match="busy"):
        conversation.check()


def test_a_request_whose_client_has_left_is_repeated_under_its_number():
    conversation, left = Conversation(KEY), [False]
    first = conversation.begin(("r", conversation.take("r")), "POST chat", lambda: left[0])
    assert conversation.take("r") == 1
    left[0], first.is_begun = True, True  # it leaves a stream at its last event
    assert not first.is_given_up
    first.is_begun = False
    with pytest.raises(TrialError, match="POST chat: its answer was not complete 30 s after"):
        conversation.check()
    again = conversation.begin(("r", conversation.take("r")), "POST chat", lambda: False)

    assert (again.slot, first.is_repeated) == (("r", 0), True)
    assert conversation.take("r") == 2
    conversation.check()
    with pytest.raises(TrialError, match="its answer was not complete"):
        conversation.check_end()
    again.succeed(ModelUsage(calls=1))
    first.fail("late")
    conversation.check()
    conversation.check_end()
    assert conversation.take_usage() == ModelUsage(calls=1, retries=1)


def test_the_first_refusal_counts():
    conversation = Conversation(KEY)
    conversation.refuse(TrialError("models", "first"))
    conversation.refuse(TrialError("not_recorded", "second"))
    with pytest.raises(TrialError, match="first"):
        conversation.check()


def test_a_call_without_a_mark_belongs_to_the_only_conversation():
    one, other = Conversation(KEY), Conversation(KEY)
    process = Process("http://x", {1: one})
    assert process.of(None) is one
    assert process.of("1") is one
    process.conversations[2] = other

    assert process.of("2") is other
    for mark in (None, "", "x", "-1", "9" * 30, "3"):
        with pytest.raises(RefusedCallError):
            process.of(mark)
    for each in (one, other):
        with pytest.raises(DisturbedError) as found:
            each.check()
        assert found.value.alone


def test_a_call_of_a_conversation_that_is_over_may_be_one_of_the_only_other():
    one = Conversation(KEY)
    with pytest.raises(RefusedCallError):
        Process("http://x", {1: one}).of("2")
    with pytest.raises(DisturbedError):
        one.check()


@pytest.mark.parametrize("mark", [None, "1"])
def test_a_process_without_conversations_has_none(mark):
    assert Process("http://x").of(mark) is None


def test_calls_in_progress_count_towards_a_limit():
    options = ModelOptions(max_cost_usd=1.0)
    run, trial = Spending(), Spending()
    run.begin(0.6)
    assert "the budget of the run is used up" in exceeded(options, run, trial, 0.6, is_shard=False)
    run.end(0.6, 0.1)
    assert exceeded(options, run, trial, 0.6, is_shard=False) == ""
    assert run.cost_usd == pytest.approx(0.1)


def test_a_call_that_cost_more_than_estimated_exceeds_a_limit():
    run, trial = Spending(cost_usd=0.6), Spending(cost_usd=0.2)
    assert overspent(ModelOptions(max_cost_usd=0.6, max_cost_usd_per_trial=0.2), run, trial) == ""
    assert overspent(ModelOptions(max_cost_usd=0.5), run, trial, is_shard=True) == (
        "the budget of the run is exceeded: $0.6000 of $0.5, the share of this shard; "
        "raise `models.max_cost_usd`"
    )
    assert overspent(ModelOptions(max_cost_usd_per_trial=0.1), run, trial) == (
        "the budget of the trial is exceeded: $0.2000 of $0.1; "
        "raise `models.max_cost_usd_per_trial`"
    )


@pytest.mark.parametrize("value", ["", "0", "false", "False", " no "])
def test_a_service_that_is_switched_off_leads_nowhere(value: str):
    assert unreachable({"GOOGLE_GENAI_USE_VERTEXAI": value}) == {}
    assert unreachable({"GOOGLE_GENAI_USE_VERTEXAI": "1"}) == {
        "Vertex AI": "GOOGLE_GENAI_USE_VERTEXAI"
    }


def test_an_agent_with_calls_that_wait_one_after_another_has_no_endless_time():
    async def trial() -> None:
        async with asyncio.timeout(10) as limit:
            conversation = Conversation(KEY, clock=TrialClock(limit))

            async def wait(number: int) -> None:
                await asyncio.sleep(number * 50)
                with conversation.waiting(f"call {number}"):
                    await asyncio.sleep(60)

            # Each begins to wait before the one before it has its turn.
            await asyncio.gather(*(wait(number) for number in range(1000)))

    async def timed() -> float:
        began = asyncio.get_running_loop().time()
        with pytest.raises(TimeoutError):
            await trial()
        return asyncio.get_running_loop().time() - began

    assert MAX_WAIT_S < jumping_clock.run(timed()) < MAX_WAIT_S + 100
