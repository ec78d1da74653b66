"""What responses say: equal texts, texts within them, patterns."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from support.case_language import SCENARIO, did, expecting, on_response, value_on

from ci_eval.criteria.ci_text import Contains, ExactMatch, Regex
from ci_eval.plugins.points import Criterion
from ci_eval.records.cases import Status
from ci_eval.records.errors import TrialError
from ci_eval.text import patterns

SILENT: dict[str, Any] = {"intermediate_data": {}}
THOUGHT = {"final_response": {"parts": [{"text": "Hm.", "thought": True}, {"text": "Yes."}]}}

# --- Equal ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "actual", "options", "value"),
    [
        ("Yes.", "Yes.", {}, 1.0),
        ("Yes.", " Yes.\n", {}, 1.0),
        ("Yes.", " Yes.\n", {"strip": False}, 0.0),
        ("Yes.", "yes.", {}, 0.0),
        ("STRASSE", "straße", {"ignore_case": True}, 1.0),
        ("Yes.", "Yes. Sure.", {}, 0.0),
        ("Yes.", "", {}, 0.0),
        ("", "", {}, 1.0),
    ],
)
def test_a_response_is_the_expected_one_or_not(
    expected: str, actual: str, options: dict[str, Any], value: float
):
    criterion = ExactMatch.model_validate(options)

    assert criterion.score(expecting(expected), did(actual)).value == value
    fixed = criterion.model_copy(update={"expected": expected})
    assert fixed.score(expecting("else"), did("before", actual)).value == value


def test_the_value_is_the_mean_over_the_turns_that_expect_a_response():
    score = ExactMatch(threshold=0.5).score(expecting("a", SILENT, "c"), did("a", "b", "x"))

    assert score.value == 0.5
    assert [part.value for part in score.invocations] == [1.0, None, 0.0]
    assert score.invocations[2].evidence == {"expected": "c", "actual": "x"}


def test_thoughts_are_no_part_of_a_response():
    assert ExactMatch().score(expecting("Yes."), did(THOUGHT)).value == 1.0
    assert Contains(text="Hm").score(expecting("?"), did(THOUGHT)).value == 0.0


def test_a_case_that_expects_no_response_lacks_one():
    assert ExactMatch().lacks(expecting(SILENT)) == "expects no response"
    assert ExactMatch().lacks(SCENARIO) == "expects no response"
    assert ExactMatch(expected="").lacks(SCENARIO) == ""
    assert ExactMatch().lacks(expecting(SILENT, "x")) == ""


# --- Contained ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "responses", "value"),
    [
        ({"text": "order 7"}, ["Your order 7 is on its way."], 1.0),
        ({"text": "Order 7"}, ["Your order 7 is on its way."], 0.0),
        ({"text": "Order 7", "ignore_case": True}, ["Your order 7 is on its way."], 1.0),
        ({"text": ["a", "b", "x", "y"]}, ["abc"], 0.5),
        ({"text": ["a", "x"], "any": True}, ["abc"], 1.0),
        ({"text": ["x", "y"], "any": True}, ["abc"], 0.0),
        ({"text": "a"}, ["a", "b"], 0.0),
        ({"text": "a", "responses": "all"}, ["a", "b"], 1.0),
        ({"text": ["a", "b"], "responses": "all"}, ["a", "b"], 1.0),
        ({"text": "a", "absent": True}, ["a", "b"], 0.0),
        ({"text": "a", "absent": True, "responses": "last"}, ["a", "b"], 1.0),
        ({"text": ["a", "x"], "absent": True}, ["a", "b"], 0.5),
        ({"text": "a", "absent": True}, [""], 1.0),
        ({"text": "ab", "responses": "all"}, ["a", "b"], 0.0),
    ],
)
def test_the_share_of_texts_that_are_there(
    options: dict[str, Any], responses: list[str], value: float
):
    assert on_response(Contains.model_validate(options), *responses).value == value


def test_what_is_missing_and_what_should_not_be_there_is_named():
    missing = on_response(Contains(text=["a", "x"]), "abc")
    found = on_response(Contains(text=["a", "x"], absent=True), "abc", "d")

    assert missing.evidence == {"missing": ["x"], "actual": "abc"}
    assert found.evidence == {"found": ["a"], "actual": "abc\n\nd"}


@pytest.mark.parametrize(
    "criterion", [Contains(text="x", absent=True), Regex(pattern="x", absent=True)]
)
def test_nothing_is_absent_from_no_response_at_all(criterion: Criterion):
    score = criterion.score(expecting("?"), did(SILENT))

    assert (score.status, score.value) == (Status.ERROR, None)
    assert score.reason == "there is no response to search"


@pytest.mark.parametrize(
    "criterion",
    [
        Contains(text="x"),
        Regex(pattern="x"),
        Regex(pattern="^(?!.*error)"),
        Regex(pattern=".*", full=True),
        ExactMatch(expected=""),
    ],
)
def test_an_agent_that_did_not_respond_did_not_say_it(criterion: Criterion):
    score = criterion.score(expecting("?"), did(SILENT))

    assert (score.status, score.value) == (Status.FAILED, 0.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "Field required"),
        ({"text": []}, "at least 1 item"),
        ({"text": [""]}, "at least 1 character"),
        ({"text": 7}, "expected a text or a list of texts, found 7"),
        ({"text": "a", "any": True, "absent": True}, "'any' and 'absent' cannot be combined"),
    ],
)
def test_contains_refuses_what_says_nothing(options: dict[str, Any], message: str):
    with pytest.raises(ValidationError, match=message):
        Contains.model_validate(options)


texts = st.text("ab C", min_size=1, max_size=3)


@given(st.lists(texts, min_size=1), st.lists(texts, min_size=1), st.booleans())
def test_what_is_there_and_what_is_absent_make_one(
    wanted: list[str], responses: list[str], ignore_case: bool
):
    there = Contains(text=tuple(wanted), responses="all", ignore_case=ignore_case)
    absent = there.model_copy(update={"absent": True})

    assert value_on(there, *responses) + value_on(absent, *responses) == pytest.approx(1)


@given(st.lists(texts, min_size=1), texts, texts)
def test_saying_more_never_lowers_what_is_there(wanted: list[str], said: str, more: str):
    criterion = Contains(text=tuple(wanted))

    assert value_on(criterion, said) <= value_on(criterion, said + more)


# --- Matching -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "responses", "value"),
    [
        ({"pattern": r"order \d+"}, ["Your order 7."], 1.0),
        ({"pattern": r"^order \d+"}, ["Your order 7."], 0.0),
        ({"pattern": r"ORDER", "ignore_case": True}, ["Your order 7."], 1.0),
        ({"pattern": r"order \d+", "full": True}, ["order 7!"], 0.0),
        ({"pattern": r"order \d+", "full": True}, ["order 7"], 1.0),
        ({"pattern": r"a.c"}, ["a\nc"], 0.0),
        ({"pattern": r"(?s)a.c"}, ["a\nc"], 1.0),
        ({"pattern": r"^(?!.*sorry)"}, ["sorry"], 0.0),
        ({"pattern": r"\d{16}", "absent": True}, ["1" * 16, "ok"], 0.0),
        ({"pattern": r"\d{16}", "absent": True}, ["1" * 15, "ok"], 1.0),
        ({"pattern": "a"}, ["a", "b"], 0.0),
        ({"pattern": "a", "responses": "all"}, ["a", "b"], 1.0),
    ],
)
def test_a_response_matches_or_not(options: dict[str, Any], responses: list[str], value: float):
    assert on_response(Regex.model_validate(options), *responses).value == value


def test_the_pattern_and_the_responses_that_matched_it_are_shown():
    missing = on_response(Regex(pattern=r"\d"), "none")
    unwanted = on_response(Regex(pattern=r"\d", absent=True), "a", "7")

    assert missing.evidence == {"pattern": r"\d", "actual": "none"}
    assert unwanted.evidence == {"unwanted_pattern": r"\d", "actual": "7"}


@pytest.mark.parametrize("pattern", ["(", "[a", "*", "a{2,1}", ""])
def test_a_pattern_that_is_none_is_refused_when_it_is_read(pattern: str):
    with pytest.raises(ValidationError, match=r"is not a regular expression|at least 1 character"):
        Regex(pattern=pattern)


def test_a_pattern_that_would_look_for_ever_ends_as_an_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(patterns, "MAX_SECONDS", 0.1)
    endless = Regex(pattern=r"(a+)+$")
    began = time.process_time()  # what `regex` counts, too: work, however long it has to wait
    said = r"did not finish within 0.1 s on a text of 5,001 characters"
    with pytest.raises(TrialError, match=said):
        on_response(endless, "a" * 5000 + "b")

    assert time.process_time() - began < 20 * 0.1


@given(st.text(max_size=20))
def test_a_pattern_is_either_there_or_absent(response: str):
    there, absent = Regex(pattern=r"\w\s"), Regex(pattern=r"\w\s", absent=True)

    assert {value_on(there, response), value_on(absent, response)} == {0.0, 1.0}
