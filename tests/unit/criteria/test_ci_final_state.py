"""The state that a session ends in holds the expected values."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.case_language import SCENARIO, did, expecting

from ci_eval.criteria.ci_final_state import FinalState
from ci_eval.records.cases import Status

LOST: dict[str, Any] = {"order": {"status": "open"}}


@pytest.mark.parametrize(
    ("expected", "actual", "value"),
    [
        ({"a": 1}, {"a": 1}, 1.0),
        ({"a": 1}, {"a": 1, "b": 2}, 1.0),
        ({"a": 1}, {"a": 1.0}, 1.0),
        ({"a": 1}, {"a": True}, 0.0),
        ({"a": 1}, {}, 0.0),
        ({"a": None}, {"a": None}, 1.0),
        ({"a": None}, {}, 0.0),
        ({"a": 1, "b": 2, "c": {"d": 3, "e": 4}}, {"a": 1, "b": 0, "c": {"d": 3}}, 0.5),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, 1.0),
        ({"a": {"b": 1}}, {"a": [1]}, 0.0),
        ({"a": {}}, {"a": {"b": 1}}, 1.0),
        ({"a": {}}, {"a": 1}, 0.0),
        ({"a": {}}, {}, 0.0),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}, 1.0),
        ({"a": [1]}, {"a": [1, 2]}, 0.0),
        ({"a": [{"b": 1}]}, {"a": [{"b": 1, "c": 2}]}, 0.0),
    ],
)
def test_the_share_of_expected_values_that_are_there(
    expected: dict[str, Any], actual: dict[str, Any], value: float
):
    of_case = FinalState().score(
        expecting("?", final_session_state=expected), did("!", final_state=actual)
    )
    of_option = FinalState(state=expected).score(
        expecting("?", final_session_state=LOST), did("!", final_state=actual)
    )

    assert of_case.value == value
    assert of_option.value == value


def test_what_differs_is_shown_with_its_place():
    expected = {"order": {"status": "refunded", "id": 7}, "user": "ann"}
    score = FinalState().score(
        expecting("?", final_session_state=expected), did("!", final_state={**LOST, "user": "ann"})
    )

    assert score.evidence == {
        "differing_values": [
            {"at": "order.status", "expected": "refunded", "actual": "open"},
            {"at": "order.id", "expected": 7},
        ]
    }


def test_a_state_that_is_not_reported_is_an_error():
    score = FinalState(state=LOST).score(expecting("?"), did("!"))

    assert score.status is Status.ERROR
    assert score.reason == "the agent does not report the session's final state"


@pytest.mark.parametrize("state", [{}, None])
def test_a_case_that_expects_no_state_lacks_one(state: Any):
    case = expecting("?", final_session_state=state)

    assert FinalState().lacks(case) == "expects no final state"
    assert FinalState(state=LOST).lacks(case) == ""
    assert FinalState().lacks(SCENARIO.model_copy(update={"final_session_state": LOST})) == ""


leaves = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.lists(st.integers())
states = st.recursive(
    st.dictionaries(st.text("ab", max_size=2), leaves, min_size=1),
    lambda inner: st.dictionaries(st.text("abc", max_size=2), inner | leaves, min_size=1),
    max_leaves=8,
)


@given(states, states)
def test_a_state_has_all_of_itself_and_a_share_of_any_other(one: Any, other: Any):
    found = FinalState(state=one).score(expecting("?"), did("!", final_state=other)).value

    assert FinalState(state=one).score(expecting("?"), did("!", final_state=one)).value == 1.0
    assert found is not None
    assert 0.0 <= found <= 1.0
