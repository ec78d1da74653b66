"""What a case asserts of itself is checked with the criteria it names."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.case_language import SCENARIO, did, expecting

from ci_eval.criteria.ci_assertions import Assertions
from ci_eval.records.cases import EvalCase, Status
from ci_eval.records.results import Score


def asserting(*assertions: dict[str, Any], response: str = "Order 7 is refunded.") -> EvalCase:
    return expecting(response, assertions=assertions)


def faults(*assertions: dict[str, Any], case: EvalCase | None = None) -> list[str]:
    made = case or asserting()
    return list(Assertions().faults(made.model_copy(update={"assertions": assertions})))


def scored(*assertions: dict[str, Any], response: str = "Order 7 is refunded.") -> Score:
    return Assertions(threshold=0.5).score(asserting(*assertions), did(response))


@pytest.mark.parametrize(
    ("assertion", "holds"),
    [
        ({"contains": "refunded"}, True),
        ({"contains": ["refunded", "order 9"]}, False),
        ({"contains": {"text": ["refunded", "order 9"], "threshold": 0.5}}, True),
        ({"contains": {"text": "sorry", "absent": True}}, True),
        ({"ci/contains": "refunded"}, True),
        ({"regex": r"Order \d"}, True),
        ({"exact_match": None}, True),
        ({"exact_match": "Order 7 is refunded"}, False),
        ({"numeric": 7}, True),
        ({"numeric": {"value": 8, "tolerance": 0.5}}, False),
        ({"json_schema": True}, False),
        ({"json_schema": {"schema": {"type": "object"}}}, False),
        ({"required_tools": "refund"}, False),
        ({"forbidden_tools": ["refund", "delete_*"]}, True),
        ({"tool_order": ["a", "b"]}, False),
        ({"tool_calls": 0}, True),
        ({"adk/response_match_score": 0.9}, True),
        ({"adk/tool_trajectory_avg_score": {"threshold": 1.0, "match_type": "IN_ORDER"}}, True),
    ],
)
def test_an_assertion_holds_where_the_case_passes_its_criterion(assertion: Any, holds: bool):
    assert faults(assertion) == []
    assert scored(assertion).value == float(holds)


@pytest.mark.parametrize(
    "assertion",
    [
        {"adk/tool_trajectory_avg_score": 1.0},
        {"agentflow/tool_trajectory_avg_score": 1.0},
        {"forbidden_tools": "refund"},
        {"tool_calls": 2},
    ],
)
def test_calls_that_were_not_reported_hold_nothing(assertion: Any):
    trace = did("Order 7 is refunded.")
    (turn,) = trace.invocations
    hidden = trace.model_copy(update={"invocations": (turn.model_copy(update={"unseen": True}),)})

    score = Assertions().score(asserting(assertion), hidden)

    assert score.status is Status.ERROR
    assert "does not report its tool calls" in score.reason


def test_the_value_is_the_share_of_assertions_that_hold():
    score = scored({"contains": "Order"}, {"contains": "9"}, {"numeric": 7}, {"numeric": 8})

    assert (score.value, score.status) == (0.5, Status.PASSED)
    assert score.reason == "2 of 4 assertions hold"


def test_the_assertion_that_failed_is_shown_with_what_it_compared():
    score = Assertions().score(asserting({"contains": "x"}, {"numeric": 7}), did("Order 7."))

    assert score.evidence == {
        "failed_assertion": "contains: x",
        "missing": ["x"],
        "actual": "Order 7.",
    }


def test_several_that_failed_are_shown_one_by_one():
    score = Assertions().score(asserting({"contains": "x"}, {"exact_match": "y"}), did("z"))

    assert score.evidence == {
        "failed_assertion_1": {"assertion": "contains: x", "missing": ["x"], "actual": "z"},
        "failed_assertion_2": {"assertion": "exact_match: y", "expected": "y", "actual": "z"},
    }


def test_an_assertion_that_cannot_be_measured_makes_the_score_an_error():
    score = scored({"contains": "Order"}, {"latency_s": 5}, {"final_state": {"state": {"a": 1}}})

    assert (score.status, score.value) == (Status.ERROR, None)
    assert score.reason == (
        "latency_s: the trace has no duration for each invocation; "
        "final_state: the agent does not report the session's final state"
    )


@pytest.mark.slow
def test_a_pattern_that_would_look_for_ever_is_named():
    score = scored({"regex": "(a+)+$"}, response="a" * 5000 + "b")

    assert score.status is Status.ERROR
    assert score.reason.startswith("regex: the pattern '(a+)+$' did not finish")


def test_an_assertion_without_anything_to_measure_is_left_out():
    alone, beside = scored({"tool_errors": 1}), scored({"tool_errors": 1}, {"contains": "x"})

    assert (alone.status, alone.reason) == (Status.SKIPPED, "no tool was called")
    assert (beside.value, beside.reason) == (0.0, "0 of 1 assertions hold")


def test_a_case_without_assertions_lacks_them():
    assert Assertions().lacks(asserting()) == "has no assertions"
    assert Assertions().lacks(asserting({"contains": "x"})) == ""
    assert Assertions().score(asserting(), did("x")).status is Status.SKIPPED


@pytest.mark.parametrize(
    ("assertion", "fault"),
    [
        ({"contians": "x"}, "'contians'): unknown criterion. Did you mean 'contains'?"),
        (
            {"response_match_score": 1},
            "'response_match_score'): unknown criterion. Did you mean 'adk/response_match_score'?",
        ),
        ({"adk/nothing_like_it": 1}, "'adk/nothing_like_it'): unknown criterion"),
        ({"contains": 7}, "'contains'): text: expected a text or a list of texts, found 7"),
        ({"contains": None}, "'contains'): 'text' is missing"),
        ({"contains": {"txt": "x"}}, "'contains'): txt: unknown key. Did you mean 'text'?"),
        ({"regex": "("}, "'regex'): pattern: is not a regular expression: missing )"),
        ({"tool_errors": 2}, "'tool_errors'): the threshold must lie between 0 and 1"),
        ({"latency_s": None}, "'latency_s'): asserts nothing without a threshold"),
        (
            {"adk/token_usage_v1": None},
            "'adk/token_usage_v1'): asserts nothing without a threshold",
        ),
        ({"contains": {"text": "x", "enabled": False}}, "'contains'): is disabled"),
        ({"assertions": 1}, "'assertions'): an assertion cannot contain other assertions"),
        ({"adk/safety_v1": 0.8}, "'adk/safety_v1'): calls a model, so it cannot be an assertion"),
        ({"required_tools": None}, "'required_tools'): the case expects no tool call"),
        ({}, "''): expected one criterion with its options"),
        ({"contains": "x", "numeric": 1}, "'contains'): expected one criterion with its options"),
    ],
)
def test_what_cannot_be_asserted_is_said_with_its_position(assertion: Any, fault: str):
    [*found] = faults({"contains": "x"}, assertion)

    assert found
    assert found[0].startswith(f"assertion 2 ({fault}")


def test_a_scenario_cannot_assert_what_needs_a_written_conversation():
    name = "adk/response_match_score"
    found = faults({name: 1}, {"contains": "x"}, case=SCENARIO)

    assert found == [
        f"assertion 1 ({name!r}): the case needs a written conversation, not a scenario"
    ]


def test_an_assertion_that_is_wrong_never_passes_even_unchecked():
    case = asserting({"required_tools": None})

    assert (
        Assertions().score(case, did("x")).reason == "required_tools: the case expects no tool call"
    )
    assert scored({"contians": "x"}).reason.startswith("contians: unknown criterion")
    assert scored({"contians": "x"}).status is Status.ERROR


def test_equal_assertions_with_unequal_types_are_not_taken_for_each_other():
    assert scored({"json_schema": True}, response="1").value == 1.0
    assert faults({"json_schema": 1}) == [
        "assertion 1 ('json_schema'): schema: expected a schema, found 1"
    ]


@given(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=6))
def test_asserting_texts_one_by_one_gives_the_share_that_contains_gives(texts: list[str]):
    together = scored({"contains": {"text": texts, "threshold": 0}}, response="ab")
    alone = scored(*({"contains": text} for text in texts), response="ab")

    assert together.value == 1.0
    assert alone.value == pytest.approx(sum(text in "ab" for text in texts) / len(texts))
