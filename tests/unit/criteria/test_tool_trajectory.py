"""Tool calls match as ADK matches them, and what did not match is shown."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ci_eval.criteria.adk_matches import ToolTrajectory
from ci_eval.records.cases import EvalCase, Status
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace, TrialKey

KEY = TrialKey(agent="a", evalset="e", case="c")
NO_ARGS = "no arguments at all"

Calls = list[tuple[str, Any]] | str


def invocation(calls: Calls) -> dict[str, Any]:
    """Return a turn with these calls: a letter each, or names with arguments."""
    named = [(name, {}) for name in calls] if isinstance(calls, str) else calls
    uses = [{"name": name, **({} if args == NO_ARGS else {"args": args})} for name, args in named]
    return {"user_content": {}, "intermediate_data": {"tool_uses": uses}}


def scored(expected: list[Calls], actual: list[Calls], **options: Any) -> Score:
    case = EvalCase.model_validate(
        {"eval_id": "c", "conversation": [invocation(calls) for calls in expected]}
    )
    trace = Trace.model_validate(
        {"key": KEY, "invocations": [invocation(calls) for calls in actual]}
    )
    return ToolTrajectory.model_validate({"threshold": 0.5, **options}).score(case, trace)


def matches(expected: Calls, actual: Calls, **options: Any) -> bool:
    value = scored([expected], [actual], **options).value
    assert value in (0.0, 1.0)
    return value == 1.0


# --- What matches ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "actual", "fitting"),
    [
        ("", "", {"EXACT", "IN_ORDER", "ANY_ORDER"}),
        ("ab", "ab", {"EXACT", "IN_ORDER", "ANY_ORDER"}),
        ("ab", "ba", {"ANY_ORDER"}),
        ("ab", "axb", {"IN_ORDER", "ANY_ORDER"}),
        ("ab", "bxa", {"ANY_ORDER"}),
        ("ab", "a", set()),
        ("a", "b", set()),
        ("", "a", {"IN_ORDER", "ANY_ORDER"}),
        ("a", "", set()),
        ("aa", "a", set()),
        ("aa", "aba", {"IN_ORDER", "ANY_ORDER"}),
        ("aba", "aab", {"ANY_ORDER"}),
        ("ab", "bab", {"IN_ORDER", "ANY_ORDER"}),
    ],
)
def test_calls_match_by_the_type_of_match(expected: str, actual: str, fitting: set[str]) -> None:
    found = {
        match_type
        for match_type in ("EXACT", "IN_ORDER", "ANY_ORDER")
        if matches(expected, actual, match_type=match_type)
    }
    assert found == fitting


@pytest.mark.parametrize(
    ("expected", "actual", "equal"),
    [
        ({"x": 1}, {"x": 1}, True),
        ({"x": 1, "y": 2}, {"y": 2, "x": 1}, True),
        ({"x": 1}, {"x": 1.0}, True),
        ({"x": 1}, {"x": True}, True),  # as Python compares, and so ADK
        ({"x": 1}, {"x": "1"}, False),
        ({"x": [1, {"y": None}]}, {"x": [1, {"y": None}]}, True),
        ({"x": [1, 2]}, {"x": [2, 1]}, False),
        ({"x": 1}, {"x": 1, "y": 2}, False),
        ({}, {"x": 1}, False),
        ({}, {}, True),
        (None, None, True),
    ],
)
def test_arguments_are_equal_as_python_compares_them(
    expected: object, actual: object, *, equal: bool
) -> None:
    assert matches([("t", expected)], [("t", actual)]) is equal
    assert matches([("t", expected)], [("t", actual)], ignore_args=True)
    assert not matches([("t", expected)], [("u", actual)], ignore_args=True)


@pytest.mark.parametrize(
    ("missing_args", "actual", "equal"),
    [
        ("never", {}, False),
        ("never", NO_ARGS, True),
        ("empty", {}, True),
        ("empty", NO_ARGS, True),
        ("empty", {"x": 1}, False),
        ("any", {}, True),
        ("any", {"x": 1}, True),
        ("any", NO_ARGS, True),
    ],
)
def test_an_expected_call_without_arguments_matches_what_one_says(
    missing_args: str, actual: object, *, equal: bool
) -> None:
    assert matches([("t", NO_ARGS)], [("t", actual)], missing_args=missing_args) is equal


@pytest.mark.parametrize("missing_args", ["never", "empty", "any"])
def test_an_actual_call_without_arguments_is_not_what_was_expected(missing_args: str) -> None:
    assert not matches([("t", {})], [("t", NO_ARGS)], missing_args=missing_args)


def test_ids_results_and_texts_are_not_compared() -> None:
    case = EvalCase.model_validate(
        {
            "eval_id": "c",
            "conversation": [
                {
                    "user_content": {"parts": [{"text": "x"}]},
                    "intermediate_data": {"tool_uses": [{"id": "1", "name": "t", "args": {}}]},
                }
            ],
        }
    )
    call = {"function_call": {"id": "2", "name": "t", "args": {}}}
    answer = {"function_response": {"id": "2", "name": "t", "response": {"r": 1}}}
    event = {"author": "a", "content": {"parts": [call, {"text": "…"}, answer]}}
    turn = {"user_content": {}, "intermediate_data": {"invocation_events": [event]}}
    trace = Trace.model_validate({"key": KEY, "invocations": [turn]})
    assert ToolTrajectory(threshold=1).score(case, trace).value == 1.0


calls = st.lists(st.sampled_from("ab"), max_size=4).map("".join)


@given(calls, calls)
def test_an_exact_match_is_one_in_order_and_that_one_in_any_order(
    expected: str, actual: str
) -> None:
    exact, in_order, any_order = (
        matches(expected, actual, match_type=each) for each in ("EXACT", "IN_ORDER", "ANY_ORDER")
    )
    assert exact <= in_order <= any_order
    assert any_order <= (len(expected) <= len(actual))
    assert exact == (expected == actual)


# --- The score ------------------------------------------------------------------------------


def test_the_value_is_the_mean_over_the_turns() -> None:
    found = scored(["a", "b", "c"], ["a", "x", "c"], threshold=0.5)
    assert found.value == 2 / 3
    assert found.status is Status.PASSED
    assert [part.value for part in found.invocations] == [1.0, 0.0, 1.0]
    assert [part.status for part in found.invocations] == ["passed", "failed", "passed"]
    assert scored(["a", "b"], ["a", "x"], threshold=0.6).status is Status.FAILED


def test_what_did_not_match_is_shown_and_nothing_else() -> None:
    found = scored(["a", [("t", {"x": 1})]], ["a", [("t", NO_ARGS)]], threshold=1)
    assert [part.evidence for part in found.invocations] == [
        None,
        {
            "expected_tool_calls": [{"name": "t", "args": {"x": 1}}],
            "actual_tool_calls": [{"name": "t", "args": None}],
        },
    ]


def test_a_score_names_its_criterion_and_threshold() -> None:
    found = scored(["a"], ["a"], threshold=0.25)
    assert (found.criterion, found.name) == ("adk/tool_trajectory_avg_score",) * 2
    assert (found.threshold, found.better, found.informational) == (0.25, "higher", False)


def test_a_conversation_without_turns_measures_nothing() -> None:
    found = scored([], [])
    assert (found.status, found.value) == (Status.SKIPPED, None)
    assert found.reason == "no invocation has anything to measure"


# --- Options --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_as", "meant"),
    [
        ("EXACT", "EXACT"),
        ("in_order", "IN_ORDER"),
        (" in-order ", "IN_ORDER"),
        ("any order", "ANY_ORDER"),
        (0, "EXACT"),
        (1, "IN_ORDER"),
        (2, "ANY_ORDER"),
    ],
)
def test_a_match_type_is_spelled_as_adk_lets_it_be(given_as: object, meant: str) -> None:
    found = ToolTrajectory.model_validate({"threshold": 1, "match_type": given_as})
    assert found.match_type == meant


@pytest.mark.parametrize("odd", ["", "SOME", "1", 3, -1, 1.0, True, None, []])
def test_another_match_type_is_none(odd: object) -> None:
    with pytest.raises(ValidationError):
        ToolTrajectory.model_validate({"threshold": 1, "match_type": odd})


def test_options_that_change_the_value_are_told_from_the_threshold() -> None:
    low, high = ToolTrajectory(threshold=0.1), ToolTrajectory(threshold=1)
    assert low.options() == high.options()
    assert low.options() != ToolTrajectory(threshold=0.1, ignore_args=True).options()
