"""Arguments of tool calls against the expected ones, in the best pairing."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from support.case_language import SCENARIO, did, expecting, value_of

from ci_eval.criteria._best_assignment import best_total
from ci_eval.criteria.ci_tool_arguments import ToolArguments, within
from ci_eval.records.cases import Status
from ci_eval.records.errors import TrialError
from ci_eval.runtime.workers.canned_tools import equal

Args = dict[str, Any]
WITHOUT_ARGS: Args = {"intermediate_data": {"tool_uses": [{"name": "t"}]}}


def value(expected: list[Args], actual: list[Args], **options: Any) -> float:
    """Return the score of calls of one tool with these arguments."""
    criterion = ToolArguments.model_validate(options)
    case = expecting([("t", args) for args in expected])
    return value_of(criterion, case, [("t", args) for args in actual])


# --- One call -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "actual", "worth"),
    [
        ({}, {}, 1.0),
        ({"a": 1}, {"a": 1}, 1.0),
        ({"a": 1}, {"a": 1.0}, 1.0),
        ({"a": 1}, {"a": True}, 0.0),
        ({"a": 1}, {"a": "1"}, 0.0),
        ({"a": 1, "b": 2, "c": 3, "d": 4}, {"a": 1, "b": 2, "c": 3, "d": 0}, 0.75),
        ({"a": 1, "b": 2}, {"a": 1}, 0.5),
        ({"a": 1}, {"a": 1, "b": 2}, 0.5),
        ({}, {"a": 1}, 0.0),
        ({"a": None}, {}, 0.0),
        ({"a": [1, 2]}, {"a": [2, 1]}, 0.0),
        ({"a": {"b": [1]}}, {"a": {"b": [1]}}, 1.0),
    ],
)
def test_a_call_is_worth_the_share_of_arguments_that_fit(
    expected: Args, actual: Args, worth: float
):
    assert value([expected], [actual]) == worth


def test_calls_at_the_threshold_are_no_less_together():
    expected = dict.fromkeys("abcdefghij", 1)
    found = {**expected, **dict.fromkeys("abc", 2)}

    assert value([expected] * 3, [found] * 3) == 0.7


def test_arguments_that_were_not_expected_may_be_allowed():
    assert value([{"a": 1}], [{"a": 1, "b": 2}], allow_extra=True) == 1.0
    assert value([{}], [{"b": 2}], allow_extra=True) == 1.0
    assert value([{"a": 1}], [{"b": 2}], allow_extra=True) == 0.0


def test_an_expected_call_without_arguments_asks_for_none_in_particular():
    case = expecting(WITHOUT_ARGS)

    assert value_of(ToolArguments(), case, [("t", {"a": 1})]) == 1.0
    assert value_of(ToolArguments(), case, [("u", {"a": 1})]) == 0.0
    assert value_of(ToolArguments(), expecting(["t"]), WITHOUT_ARGS) == 1.0


@pytest.mark.parametrize(
    ("rule", "expected", "actual", "worth"),
    [
        ("exact", "Oslo", "oslo", 0.0),
        ("ignore", "Oslo", "Rome", 1.0),
        ({"match": "ignore"}, "Oslo", "Rome", 1.0),
        ("subset", {"a": 1}, {"a": 1, "b": 2}, 1.0),
        ("subset", {"a": 1, "b": 2}, {"a": 1}, 0.0),
        ("subset", ["a", "b"], ["c", "b", "a"], 1.0),
        ("subset", ["a", "b"], ["a"], 0.0),
        ({"regex": "^(?i)oslo"}, "whatever", "OSLO, Norway", 1.0),
        ({"regex": "^oslo$"}, "oslo", "Oslo", 0.0),
        ({"regex": "1"}, 1, 1, 0.0),
        ({"tolerance": 0.01}, 59.91, 59.92, 1.0),
        ({"tolerance": 0.01}, 59.91, 59.921, 0.0),
        ({"relative": 0.1}, -10, -11, 1.0),
        ({"relative": 0.1}, -10, -11.1, 0.0),
        ({"tolerance": 1}, 1, "1", 0.0),
        ({"tolerance": 1}, 1, True, 0.0),
        ({"tolerance": 1}, "1", 1, 0.0),
    ],
)
def test_a_rule_says_how_an_argument_is_compared(
    rule: Any, expected: Any, actual: Any, worth: float
):
    assert value([{"a": expected}], [{"a": actual}], args={"t": {"a": rule}}) == worth


@pytest.mark.parametrize(
    ("args", "worth"),
    [
        ({}, 0.0),
        ({"t": {"a": "ignore"}}, 0.0),
        ({"t": {"a": "ignore", "b": "ignore"}}, 1.0),
        ({"t": {"*": "ignore"}}, 1.0),
        ({"*": {"a": "ignore"}, "t": {"b": "ignore"}}, 1.0),
        ({"*": {"*": "ignore"}}, 1.0),
        ({"*": {"*": "ignore"}, "t": {"a": "exact"}}, 0.0),
        ({"*": {"a": "exact", "*": "ignore"}}, 0.0),
        ({"t": {"*": "exact"}, "*": {"a": "ignore", "b": "ignore"}}, 0.0),
        ({"u": {"*": "ignore"}}, 0.0),
    ],
)
def test_the_rule_that_names_more_counts(args: Any, worth: float):
    assert value([{"a": 1}], [{"a": 2, "b": 3}], args=args) == worth


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("igore", "Input should be 'exact', 'ignore' or 'subset'"),
        ({}, "needs one of 'match', 'regex', 'tolerance' and 'relative'"),
        ({"tolerance": 1, "relative": 1}, "needs one of"),
        ({"match": None}, "needs one of"),
        ({"tolerance": -1}, "greater than or equal to 0"),
        ({"regex": "("}, "is not a regular expression"),
    ],
)
def test_what_is_no_rule_is_refused(rule: Any, message: str):
    with pytest.raises(ValidationError, match=message):
        ToolArguments.model_validate({"args": {"t": {"a": rule}}})


# --- Several calls --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "actual", "worth"),
    [
        ([{"a": 1}, {"a": 2}], [{"a": 2}, {"a": 1}], 1.0),
        ([{"a": 1}, {"a": 1}], [{"a": 1}], 0.5),
        ([{"a": 1}], [{"a": 2}, {"a": 1}, {"a": 3}], 1.0),
        ([{"a": 1}, {"a": 2}], [], 0.0),
        # Taking the first best would pair the first of each, and leave nothing for the second.
        ([{"a": 1, "b": 1}, {"a": 1, "b": 2}], [{"a": 1, "b": 3}, {"a": 9, "b": 1}], 0.5),
        ([{"a": 1, "b": 1}, {"a": 1, "b": 2}], [{"a": 1, "b": 1}, {"a": 9, "b": 1}], 0.5),
    ],
)
def test_calls_of_a_tool_are_paired_for_the_most_credit(
    expected: list[Args], actual: list[Args], worth: float
):
    assert value(expected, actual) == worth


def test_calls_of_other_tools_are_no_partners():
    case = expecting([("find", {"id": 1}), ("pay", {"id": 1})])

    assert value_of(ToolArguments(), case, [("find", {"id": 1}), ("refund", {"id": 1})]) == 0.5


def test_each_invocation_is_compared_with_its_own():
    case = expecting([("t", {"a": 1})], "nothing to call", [("t", {"a": 2}), ("u", {})])
    score = ToolArguments(threshold=0.5).score(
        case, did([("t", {"a": 1})], [("t", {"a": 2})], [("x", {}), ("t", {"a": 0})])
    )

    assert [part.value for part in score.invocations] == [1.0, None, 0.0]
    assert score.value == 0.5
    assert score.invocations[2].evidence == {
        "expected_tool_calls": [{"name": "t", "args": {"a": 2}}, {"name": "u", "args": {}}],
        "actual_tool_calls": [{"name": "t", "args": {"a": 0}}],
    }


def test_what_cannot_be_compared_says_so():
    unseen = ToolArguments().score(expecting(["t"]), did({"final_response": {"parts": []}}))

    assert unseen.status is Status.ERROR
    assert unseen.reason.startswith("the trace has no record of tool calls")
    assert ToolArguments().lacks(expecting("x")) == "expects no tool call"
    assert not ToolArguments.supports_scenario
    assert ToolArguments().lacks(SCENARIO) == "expects no tool call"


def test_more_calls_than_can_be_paired_are_an_error():
    assert value([{"a": at} for at in range(100)], [{"a": at} for at in range(99, -1, -1)]) == 1.0
    with pytest.raises(TrialError, match="too many calls of 't' to compare"):
        value([{}, {}], [{}] * 5001)


arguments = st.dictionaries(st.sampled_from("ab"), st.integers(0, 2))
several = st.lists(arguments, min_size=1, max_size=4)


@given(several, several)
def test_the_value_is_a_share_and_all_of_it_for_the_expected_calls(
    expected: list[Args], actual: list[Args]
):
    assert 0.0 <= value(expected, actual) <= 1.0
    assert value(expected, expected[::-1] + actual) == 1.0


@given(several, several, arguments)
def test_one_more_call_never_lowers_the_value(expected: list[Args], actual: list[Args], more: Args):
    assert value(expected, actual) <= value(expected, [*actual, more])


# --- Pairs, and values ----------------------------------------------------------------------


@given(st.integers(1, 4), st.integers(1, 5), st.data())
def test_no_pairing_adds_up_to_more(rows: int, columns: int, data: st.DataObject):
    worth = data.draw(
        st.lists(
            st.lists(st.sampled_from([0, 0.25, 0.5, 1]), min_size=columns, max_size=columns),
            min_size=rows,
            max_size=rows,
        )
    )
    wide = worth if rows <= columns else list(zip(*worth, strict=True))
    most = max(
        sum(row[at] for row, at in zip(wide, chosen, strict=True))
        for chosen in itertools.permutations(range(max(rows, columns)), min(rows, columns))
    )

    assert best_total(worth) == most


class Counted(list[float]):
    """Counts how often one looks into it."""

    looks = 0

    def __getitem__(self, at: Any) -> Any:
        self.looks += 1
        return super().__getitem__(at)


def test_pairing_takes_no_more_than_the_cube_of_how_many_there_are():
    # The dearest: all want the same one, and then the same other.
    worth = [Counted(row * column / 900 for column in range(30)) for row in range(30)]

    assert best_total(worth) == pytest.approx(sum(at * at for at in range(30)) / 900)
    assert 30**2 <= sum(row.looks for row in worth) <= 30**3


def test_nobody_is_paired_with_nobody():
    assert best_total([]) == 0.0
    assert best_total([[], []]) == 0.0


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, 1.0, "", "1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=6,
)


@given(json_values, json_values)
def test_values_are_equal_where_each_is_within_itself_and_the_other_way_round(one: Any, other: Any):
    assert equal(one, one)
    assert within(one, one)
    assert equal(one, other) == equal(other, one)
    assert within(one, other) or not equal(one, other)
    assert one == other or not equal(one, other)


@given(json_values, json_values, json_values)
def test_what_is_within_a_part_is_within_the_whole(one: Any, other: Any, third: Any):
    assert within(one, third) or not (within(one, other) and within(other, third))


@pytest.mark.parametrize(
    ("one", "other"), [(True, 1), (False, 0), ([True], [1]), ({"a": 0}, {"a": False})]
)
def test_true_is_not_one(one: Any, other: Any):
    assert one == other
    assert not equal(one, other)
    assert not within(one, other)
