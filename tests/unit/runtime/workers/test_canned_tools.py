"""Which canned result a call gets, where a case and its evalset both have some."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_eval.records.cases import ToolMocks
from ci_eval.runtime.workers.canned_tools import Canned, Given, equal


def canned(**tools: Any) -> Canned:
    mocks = ToolMocks.model_validate({"tools": tools})
    return of(mocks)


def of(mocks: ToolMocks) -> Canned:
    return Canned(mocks.model_dump(mode="json")["tools"])


def test_a_call_gets_the_first_entry_that_is_meant_by_it():
    found = canned(
        find=[{"args": {"order": 7}, "result": "seven"}, {"result": "any"}],
        refund={"error": "no money"},
    )

    assert found.find("find", {"order": 7, "loud": True}) == Given("seven")
    assert found.find("find", {"order": 8}) == Given("any")
    assert found.find("find", {}) == Given("any")
    assert found.find("refund", {}) == Given(error="no money")


def test_a_call_that_no_entry_means_gets_nothing():
    found = canned(find={"args": {"order": 7}, "result": 1})

    assert found.find("find", {"order": 8}) is None
    assert found.find("find", {}) is None
    assert found.find("lose", {"order": 7}) is None


def test_null_is_a_result():
    assert canned(find={"result": None}).find("find", {}) == Given(None)


def test_results_come_one_after_the_other_and_the_last_from_then_on():
    found = canned(poll={"results": ["waiting", "done"]})

    assert [found.find("poll", {}) for _ in range(4)] == [
        Given("waiting"),
        Given("done"),
        Given("done"),
        Given("done"),
    ]


def test_each_entry_counts_its_own_calls():
    found = canned(poll=[{"args": {"of": 1}, "results": [1, 2]}, {"results": ["a", "b"]}])

    assert [found.find("poll", {"of": of}) for of in (1, 2, 1, 2)] == [
        Given(1),
        Given("a"),
        Given(2),
        Given("b"),
    ]


def test_looking_is_no_call():
    found = canned(poll={"results": [1, 2]})

    assert found.knows("poll", {})
    assert not found.knows("pull", {})
    assert found.find("poll", {}) == Given(1)


CALLS = st.lists(st.tuples(st.sampled_from(["poll", "pull", "none"]), st.integers(1, 2)))


@given(CALLS, CALLS)
def test_a_conversation_goes_on_in_another_process_where_it_was(before, after):
    tools = {
        "poll": [{"args": {"of": 1}, "results": [1, 2, 3]}, {"results": ["a", "b"]}],
        "pull": {"result": "always"},
    }
    whole, first = canned(**tools), canned(**tools)
    expected = [whole.find(name, {"of": of}) for name, of in (*before, *after)]
    found = [first.find(name, {"of": of}) for name, of in before]
    given = ToolMocks.model_validate({"tools": tools}).model_dump(mode="json")["tools"]
    second = Canned(given, json.loads(json.dumps(first.used)))

    assert found + [second.find(name, {"of": of}) for name, of in after] == expected


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        (True, True, True),
        (None, False, False),
        ("1", 1, False),
        ({"a": [1, {"b": 2}]}, {"a": [1.0, {"b": 2}]}, True),
        ({"a": 1}, {"a": 1, "b": None}, False),
        ([1, 2], [2, 1], False),
        ({"a": [True]}, {"a": [1]}, False),
    ],
)
def test_arguments_are_the_same_as_json_values_are(one, other, same):
    assert equal(one, other) is same
    assert equal(other, one) is same


# --- Of the case and of the evalset -----------------------------------------------------------


def mocks(unmatched: str | None = None, **tools: Any) -> ToolMocks:
    said = {} if unmatched is None else {"unmatched": unmatched}
    return ToolMocks.model_validate({"tools": tools, **said})


def test_what_the_case_says_comes_first_and_the_evalset_fills_in():
    case = mocks(find={"args": {"order": 7}, "result": "of the case"})
    evalset = mocks(find={"result": "of the evalset"}, refund={"result": "refunded"})
    both = of(case.before(evalset))

    assert both.find("find", {"order": 7}) == Given("of the case")
    assert both.find("find", {"order": 8}) == Given("of the evalset")
    assert both.find("refund", {}) == Given("refunded")


def test_an_entry_of_the_case_that_means_every_call_leaves_none_to_the_evalset():
    both = of(mocks(find={"error": "down"}).before(mocks(find={"args": {"x": 1}, "result": 1})))

    assert both.find("find", {"x": 1}) == Given(error="down")


@pytest.mark.parametrize(
    ("case", "evalset", "expected"),
    [
        (None, None, "error"),
        (None, "pass", "pass"),
        ("pass", None, "pass"),
        ("error", "pass", "error"),
        ("pass", "error", "pass"),
    ],
)
def test_what_becomes_of_other_calls_the_case_says_and_else_the_evalset(case, evalset, expected):
    assert mocks(case).before(mocks(evalset)).unmatched == expected


NAMES = st.sampled_from(["find", "refund"])
ENTRIES = st.fixed_dictionaries(
    {"result": st.integers()}, optional={"args": st.dictionaries(st.just("x"), st.integers(0, 2))}
)
TOOLS = st.dictionaries(NAMES, st.lists(ENTRIES, max_size=3))


@given(TOOLS, TOOLS, NAMES, st.integers(0, 2))
def test_the_evalset_is_asked_exactly_where_the_case_says_nothing(case, evalset, name, x):
    both = of(mocks(**case).before(mocks(**evalset)))
    alone, other = of(mocks(**case)), of(mocks(**evalset))

    assert both.find(name, {"x": x}) == (alone.find(name, {"x": x}) or other.find(name, {"x": x}))
