"""Several criteria in one value, with a floor for each."""

from typing import Any

import pytest
from pydantic import ValidationError
from support.case_language import did, expecting

from ci_eval.criteria.ci_weighted import Weighted
from ci_eval.records.cases import Status
from ci_eval.records.results import Score

TEXTS = {"contains": {"text": "Order", "weight": 3}, "says": {"use": "contains", "text": "sorry"}}


def scored(criteria: dict[str, Any], response: str = "Order 7 is refunded.") -> Score:
    case = expecting("Order 7 is refunded.")
    return Weighted(threshold=0.5, criteria=criteria).score(case, did(response))


def test_the_value_is_the_weighted_mean():
    found = scored(TEXTS)

    assert (found.value, found.status) == (0.75, Status.PASSED)


@pytest.mark.parametrize("weights", [[0.1, 0.2, 0.3], [0.3, 0.6], [0.1, 0.1, 0.1]])
def test_parts_at_the_threshold_are_no_less_together(weights: list[float]):
    words = {"use": "agentflow/contains_keywords", "keywords": ["a", "b", "c", "d", "x"]}
    parts = {f"p{n}": {**words, "weight": weight} for n, weight in enumerate(weights)}

    assert scored(parts, "a b c d").value == 0.8


def test_a_number_is_a_weight():
    assert scored({"exact_match": 3, "numeric": {"value": 8}}).value == 0.75


def test_below_a_floor_the_value_is_0():
    found = scored({**TEXTS, "adk/response_match_score": {"floor": 0.9}}, "Order 7.")

    assert (found.value, found.status) == (0.0, Status.FAILED)
    assert found.reason == "adk/response_match_score 0.667 is below its floor 0.9"
    assert found.evidence
    assert [each["weight"] for each in found.evidence["parts"]] == [3.0, 1.0, 1.0]


def test_a_part_that_does_not_apply_is_left_out():
    parts = {"contains": {"text": "Order"}, "final_state": {"weight": 5, "state": {"a": 1}}}
    weighted = Weighted(threshold=0.5, criteria={**parts, "tool_arguments": 9})
    assert weighted.lacks(expecting("x")) == ""

    alone = Weighted(threshold=0.5, criteria={"tool_arguments": 1})
    assert alone.lacks(expecting("x"))
    assert scored({"contains": {"text": "Order"}, "tool_arguments": 9}).value == 1.0


def test_an_error_of_a_part_is_one_of_the_whole():
    trace = did("Order 7 is refunded.")
    (turn,) = trace.invocations
    hidden = trace.model_copy(update={"invocations": (turn.model_copy(update={"unseen": True}),)})

    parts = {"adk/tool_trajectory_avg_score": 1, "contains": {"text": "Order"}}
    found = Weighted(threshold=0.5, criteria=parts).score(expecting("x"), hidden)

    assert found.status is Status.ERROR
    assert found.reason.startswith("adk/tool_trajectory_avg_score: the agent does not report its")


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({}, "at least 1"),
        ({"containz": 1}, "containz: unknown criterion. Did you mean 'contains'?"),
        ({"contains": 1}, "contains: 'text' is missing"),
        ({"contains": "x"}, "criteria.contains"),
        ({"exact_match": 0}, "criteria.exact_match.weight"),
        ({"exact_match": {"weight": "x"}}, "criteria.exact_match.weight"),
        ({"exact_match": {"floor": 2}}, "exact_match: the threshold must lie between 0 and 1"),
        ({"exact_match": {"threshold": 1}}, "not of a part; use 'floor'"),
        ({"exact_match": {"enabled": False}}, "'enabled' is an option of the whole, not of a part"),
        ({"exact_match": {"tier": "warn"}}, "'tier' is an option of the whole, not of a part"),
        ({"latency_s": 1}, "latency_s: cannot be a part: its values must be bounded"),
        ({"adk/final_response_match_v2": 1}, "calls a model, runs your code or combines others"),
        ({"assertions": 1}, "calls a model, runs your code or combines others"),
        ({"weighted": {"criteria": {"exact_match": 1}}}, "combines others, so it cannot be a part"),
    ],
)
def test_parts_must_be_right(parts: dict[str, Any], message: str):
    with pytest.raises(ValidationError) as raised:
        Weighted(threshold=0.5, criteria=parts)
    assert message in str(raised.value)
