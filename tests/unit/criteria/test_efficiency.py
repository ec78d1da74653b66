"""What an agent needed is measured and shown, and never judged."""

from typing import Any

import pytest
from pydantic import ValidationError

from ci_eval.criteria.adk_efficiency import (
    Efficiency,
    InferenceCallCount,
    InvocationDuration,
    TokenUsage,
    ToolCallCount,
)
from ci_eval.records.cases import EvalCase, Status
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace, TrialKey

KEY = TrialKey(agent="a", evalset="e", case="c")
ALL: list[type[Efficiency]] = [ToolCallCount, InferenceCallCount, TokenUsage, InvocationDuration]


def scored(criterion: Efficiency, *turns: dict[str, Any]) -> Score:
    trace = Trace.model_validate(
        {"key": KEY, "invocations": [{"user_content": {}, **turn} for turn in turns]}
    )
    return criterion.score(EvalCase(eval_id="c", conversation=()), trace)


def calls(count: int) -> dict[str, Any]:
    return {"intermediate_data": {"tool_uses": [{"name": "t", "args": {}}] * count}}


def events(*given: dict[str, Any]) -> dict[str, Any]:
    return {"intermediate_data": {"invocation_events": [{"author": "a", **each} for each in given]}}


def usage(**counts: object) -> dict[str, Any]:
    return {"usage_metadata": counts}


def values(score: Score) -> list[float | None]:
    return [part.value for part in score.invocations]


def evidence(score: Score) -> list[dict[str, Any] | None]:
    return [part.evidence for part in score.invocations]


# --- What holds for all ---------------------------------------------------------------------


@pytest.mark.parametrize("model", ALL)
def test_a_measure_takes_no_threshold(model: type[Efficiency]) -> None:
    assert model().threshold is None
    with pytest.raises(ValidationError, match="takes no threshold; it is informational"):
        model(threshold=1)


@pytest.mark.parametrize("model", ALL)
def test_nothing_is_measured_where_nothing_was_done(model: type[Efficiency]) -> None:
    found = scored(model())
    assert (found.status, found.value, found.informational) == (Status.SKIPPED, None, True)


@pytest.mark.parametrize("model", ALL)
def test_less_is_better_and_everything_passes(model: type[Efficiency]) -> None:
    found = scored(model(), {**events(usage(prompt_token_count=5)), "duration": 1e6})
    assert (found.better, found.status) == ("lower", Status.PASSED)


# --- Each -----------------------------------------------------------------------------------


def test_tool_calls_are_counted_in_either_shape() -> None:
    call = {"content": {"parts": [{"function_call": {"name": "t"}}, {"text": "x"}]}}
    found = scored(ToolCallCount(), calls(3), events(call, call), {})
    assert (values(found), found.value) == ([3.0, 2.0, 0.0], 5 / 3)


def test_calls_of_a_model_are_events_that_a_model_made() -> None:
    turn = events(usage(), {"model_version": "m"}, {"content": {"parts": []}}, {})
    found = scored(InferenceCallCount(), turn, calls(2), events())
    assert (values(found), found.value) == ([2.0, None, 0.0], 1.0)
    assert scored(InferenceCallCount(), calls(1)).status is Status.SKIPPED


def test_tokens_are_added_up_and_divided_by_all_turns() -> None:
    turn = events(
        usage(prompt_token_count=10, candidates_token_count=4), usage(thoughtsTokenCount=6)
    )
    found = scored(TokenUsage(), turn, {}, events({}))
    assert (values(found), found.value) == ([20.0, None, None], 20 / 3)


def test_the_kinds_of_tokens_are_shown() -> None:
    turn = events(
        usage(
            prompt_token_count=10,
            toolUsePromptTokenCount=1,
            candidates_token_count=4,
            thoughts_token_count=2,
            cached_content_token_count=3,
        )
    )
    found = scored(TokenUsage(), turn)
    assert found.value == 17.0
    assert evidence(found) == [
        {"input": 11, "output": 6, "cached": 3, "reasoning": 2, "tool_use": 1}
    ]


def test_tokens_that_are_neither_put_in_nor_out_are_shown_and_not_counted() -> None:
    found = scored(TokenUsage(), events(usage(cachedContentTokenCount=3)))
    assert (found.status, found.value) == (Status.SKIPPED, None)
    assert evidence(found) == [{"cached": 3}]


@pytest.mark.parametrize("odd", [None, "5", 1.5, [5]])
def test_a_count_that_is_no_whole_number_is_none(odd: object) -> None:
    found = scored(TokenUsage(), events(usage(prompt_token_count=odd, candidates_token_count=2)))
    assert evidence(found) == [{"output": 2}]


def test_of_two_spellings_of_a_count_the_python_one_counts() -> None:
    found = scored(TokenUsage(), events(usage(prompt_token_count=1, promptTokenCount=2)))
    assert found.value == 1.0


def test_seconds_are_the_mean_over_the_turns_that_were_timed() -> None:
    found = scored(InvocationDuration(), {"duration": 1.0}, {}, {"duration": 2.0004})
    assert (values(found), found.value) == ([1.0, None, 2.0004], 1.5)


def test_seconds_are_shown_by_where_they_went() -> None:
    turns = (
        {"duration": 3.0, "model_duration": 1.5, "tool_duration": 0.5},
        {"duration": 1.0, "model_duration": 2.0, "tool_duration": 0.0},
        {"duration": 1.0, "model_duration": 0.5},
    )
    assert evidence(scored(InvocationDuration(), *turns)) == [
        {"model_s": 1.5, "tool_s": 0.5, "framework_s": 1.0},
        {"model_s": 2.0, "tool_s": 0.0, "framework_s": 0.0},  # clocks differ
        {"model_s": 0.5, "tool_s": None, "framework_s": None},
    ]


def test_no_time_at_all_is_a_time() -> None:
    found = scored(InvocationDuration(), {"duration": 0.0})
    assert (found.value, found.status) == (0.0, Status.PASSED)
