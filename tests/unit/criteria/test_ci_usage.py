"""What a conversation took is added up, shown, and judged only where a threshold asks for it."""

from typing import Any

import pytest
from support.case_language import did, expecting

from ci_eval.criteria.ci_usage import Consumption, Cost, Latency, Tokens, ToolCalls
from ci_eval.records.cases import Status
from ci_eval.records.results import Score


def scored(criterion: Consumption, *turns: Any) -> Score:
    return criterion.score(expecting(*["?"] * len(turns)), did(*turns))


def tokens(**counts: int) -> dict[str, Any]:
    return {"intermediate_data": {"invocation_events": [{"author": "a", "usage_metadata": counts}]}}


BOTH = tokens(prompt_token_count=100, candidates_token_count=20, thoughts_token_count=5)
INPUT = tokens(prompt_token_count=100)
ALL = [
    (Latency, [{"duration": 1.5}, {"duration": 2.0}], 3.5),
    (Cost, [{"cost_usd": 0.25}, {"cost_usd": 0.5}], 0.75),
    (Tokens, [BOTH, BOTH], 250.0),
    (ToolCalls, [["a", "b"], ["a"]], 3.0),
]


@pytest.mark.parametrize(("model", "turns", "total"), ALL)
def test_the_value_is_the_sum_over_the_conversation(
    model: type[Consumption], turns: list[Any], total: float
):
    enough, too_little = model(threshold=total), model(threshold=total - 0.25)

    assert (scored(enough, *turns).value, scored(enough, *turns).status) == (total, Status.PASSED)
    assert scored(too_little, *turns).status is Status.FAILED
    shown = scored(model(), *turns)
    assert (shown.value, shown.status, shown.informational) == (total, Status.PASSED, True)


@pytest.mark.parametrize("count", [10**16, -(10**300)])
def test_a_count_that_cannot_be_is_taken_for_none(count: int):
    assert scored(Tokens(), tokens(prompt_token_count=count)).status is Status.SKIPPED


@pytest.mark.parametrize(("model", "turns", "total"), ALL)
def test_what_is_not_reported_is_skipped_or_where_it_is_judged_an_error(
    model: type[Consumption], turns: list[Any], total: float
):
    silent: dict[str, Any] = {"final_response": {"parts": []}}
    unknown = [silent] if model is ToolCalls else [turns[0], silent]

    assert (scored(model(), *unknown).status, scored(model(), *unknown).value) == (
        Status.SKIPPED,
        None,
    )
    judged = scored(model(threshold=1e6), *unknown)
    assert (judged.status, judged.value, judged.reason) == (Status.ERROR, None, model.unreported)


@pytest.mark.parametrize(("count", "value"), [("total", 125.0), ("input", 100.0), ("output", 25.0)])
def test_tokens_are_counted_by_what_they_are_for(count: Any, value: float):
    assert scored(Tokens(count=count), BOTH).value == value


def test_half_of_the_tokens_is_not_their_total():
    assert scored(Tokens(), INPUT).value is None
    assert scored(Tokens(count="input"), INPUT).value == 100.0
    assert scored(Tokens(count="output", threshold=1), INPUT).status is Status.ERROR


def test_what_each_invocation_took_is_shown_where_there_are_several():
    assert scored(Latency(threshold=1), {"duration": 3.0}).evidence is None
    assert scored(Latency(threshold=1), {"duration": 3.0}, {"duration": 0.5}).evidence == {
        "by_invocation": [3.0, 0.5]
    }


def test_nothing_is_something_that_was_taken():
    assert scored(ToolCalls(threshold=0), []).status is Status.PASSED
    assert scored(Cost(threshold=0), {"cost_usd": 0.0}).status is Status.PASSED


def test_ten_cents_and_twenty_are_thirty():
    turns = [{"cost_usd": 0.1}, {"cost_usd": 0.2}]

    assert 0.1 + 0.2 > 0.3
    assert scored(Cost(threshold=0.3), *turns).status is Status.PASSED
