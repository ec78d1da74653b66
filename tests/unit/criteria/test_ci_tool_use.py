"""Which tools were called, which should not have been, and in which order."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from support.case_language import SCENARIO, did, expecting, value_of

from ci_eval.criteria.ci_tool_use import ForbiddenTools, RequiredTools, ToolOrder
from ci_eval.plugins.points import Criterion
from ci_eval.records.cases import Status

UNSEEN: dict[str, Any] = {"final_response": {"parts": [{"text": "x"}]}}
names = st.sampled_from(["find", "get_a", "get_b", "pay"])
calls = st.lists(names, max_size=6)


@pytest.mark.parametrize(
    "criterion", [RequiredTools(tools="a"), ForbiddenTools(tools="a"), ToolOrder(order=["a", "b"])]
)
def test_tools_that_nobody_looked_for_are_an_error(criterion: Criterion):
    score = criterion.score(expecting("x", "x"), did(UNSEEN, UNSEEN))

    assert (score.status, score.value) == (Status.ERROR, None)
    assert score.reason.startswith("the trace has no record of tool calls")
    assert criterion.score(expecting("x", "x"), did(UNSEEN, ["a"])).value is not None


# --- Required -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tools", "called", "value"),
    [
        ("a", ["a"], 1.0),
        ("a", ["A"], 0.0),
        ("a", [], 0.0),
        (["a", "b", "c", "d"], ["c", "x", "a", "a"], 0.5),
        (["get_*"], ["get_weather"], 1.0),
        (["get_*", "set_?"], ["get_", "set_xy"], 0.5),
        (["a", "a", "b"], ["a"], 0.5),
    ],
)
def test_the_share_of_required_tools_that_were_called(tools: Any, called: Any, value: float):
    assert value_of(RequiredTools(tools=tools), expecting("?"), called) == value


def test_without_a_list_the_tools_that_the_case_expects_are_required():
    case = expecting(["a", ("b", {"x": 1})], ["a"])

    assert value_of(RequiredTools(), case, [], ["b", "a"]) == 1.0
    assert value_of(RequiredTools(), case, ["b"], []) == 0.5
    assert RequiredTools().lacks(expecting("x")) == "expects no tool call"
    assert RequiredTools().lacks(SCENARIO) == "expects no tool call"
    assert RequiredTools(tools="a").lacks(SCENARIO) == ""


def test_the_tools_that_are_missing_are_named():
    score = RequiredTools(tools=["b", "a"]).score(expecting("?"), did(["a", "c"]))

    assert score.evidence == {"missing_tools": ["b"], "called": ["a", "c"]}


@given(st.lists(names, min_size=1), calls, names)
def test_one_more_call_never_lowers_what_is_required(tools: Any, called: Any, more: str):
    criterion, case = RequiredTools(tools=tools), expecting("?")

    assert value_of(criterion, case, called) <= value_of(criterion, case, [*called, more])


# --- Forbidden ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tools", "called", "value"),
    [
        ("delete", [], 1.0),
        ("delete", ["find"], 1.0),
        ("delete", ["find", "delete"], 0.0),
        ("delete_*", ["delete_order"], 0.0),
        (["delete", "send"], ["send", "send"], 0.5),
        (["delete", "delete"], ["delete"], 0.0),
    ],
)
def test_the_share_of_forbidden_tools_that_were_left_alone(tools: Any, called: Any, value: float):
    assert value_of(ForbiddenTools(tools=tools), expecting("?"), called) == value


def test_the_forbidden_calls_are_shown():
    done = did(["a", ("b", {"x": 1})], ["b"])
    score = ForbiddenTools(tools=["b", "c"]).score(expecting("?", "?"), done)

    assert score.evidence == {
        "forbidden_calls": [{"name": "b", "args": {"x": 1}}, {"name": "b", "args": {}}]
    }


@given(st.lists(names, min_size=1), calls)
def test_required_and_forbidden_are_opposites(tools: Any, called: Any):
    required, forbidden = RequiredTools(tools=tools), ForbiddenTools(tools=tools)
    case = expecting("?")

    assert value_of(required, case, called) + value_of(forbidden, case, called) == pytest.approx(1)


# --- In order -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("order", "called", "value", "if_called"),
    [
        ("ab", "ab", 1.0, 1.0),
        ("ab", "axb", 1.0, 1.0),
        ("ab", "aabb", 1.0, 1.0),
        ("ab", "aba", 1.0, 1.0),
        ("ab", "ba", 0.0, 0.0),
        ("ab", "bab", 0.0, 0.0),
        ("ab", "b", 0.0, 0.0),
        ("ab", "a", 0.0, None),
        ("ab", "", 0.0, None),
        ("abc", "abc", 1.0, 1.0),
        ("abc", "acb", 0.5, 0.5),
        ("abc", "ab", 0.5, 1.0),
        ("abc", "ac", 0.0, 0.0),
        ("abc", "cba", 0.0, 0.0),
        (["ab", "ac"], "acb", 1.0, 1.0),
        (["ab", "ac"], "cab", 0.5, 0.5),
        (["ab", "ac"], "ab", 0.5, 1.0),
        (["abc", "bc"], "ab", 0.5, 1.0),
    ],
)
def test_the_share_of_steps_in_the_right_order(
    order: Any, called: str, value: float, if_called: float | None
):
    chains = [list(chain) for chain in order] if isinstance(order, list) else list(order)
    strict, lenient = ToolOrder(order=chains), ToolOrder(order=chains, if_called=True)
    case, done = expecting("?"), did(list(called))

    assert strict.score(case, done).value == value
    assert lenient.score(case, done).value == if_called


def test_the_order_holds_across_invocations():
    case = expecting("?", "?")

    assert value_of(ToolOrder(order=["a", "b"]), case, ["a"], ["b"]) == 1.0
    assert value_of(ToolOrder(order=["a", "b"]), case, ["b"], ["a"]) == 0.0


def test_an_order_without_anything_to_compare_is_skipped():
    score = ToolOrder(order=["a", "b"], if_called=True).score(expecting("?"), did(["a"]))

    assert score.status is Status.SKIPPED
    assert score.reason == "no tool with a predecessor was called"


def test_the_steps_that_were_taken_wrongly_are_named():
    score = ToolOrder(order=["a", "b", "c"]).score(expecting("?"), did(["a", "c", "b"]))

    assert score.evidence == {"broken_steps": ["b > c"], "called": ["a", "c", "b"]}


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ([], "at least 1 item"),
        (["a"], "needs at least two tools"),
        ([["a", "b"], ["c"]], "needs at least two tools"),
        (["a", "a"], "is a circular order: a > a"),
        ([["a", "b"], ["b", "a"]], "is a circular order: "),
        ("ab", "valid tuple"),
        (["a", ""], "at least 1 character"),
    ],
)
def test_what_is_no_order_is_refused(order: Any, message: str):
    with pytest.raises(ValidationError, match=message):
        ToolOrder(order=order)


@given(st.permutations(["a", "b", "c", "d"]), st.lists(names, max_size=4), st.data())
def test_calling_in_order_holds_whatever_else_is_called(
    order: list[str], others: list[str], data: st.DataObject
):
    called = list(order)
    for other in others:
        called.insert(data.draw(st.integers(0, len(called))), other)

    assert value_of(ToolOrder(order=order), expecting("?"), called) == 1.0
    assert value_of(ToolOrder(order=order[::-1]), expecting("?"), called) == 0.0
