"""Responses are compared word by word, as ADK does; `test_rouge` has the words themselves."""

from typing import Any

import pytest
from support.case_language import SCENARIO

from ci_eval.criteria.adk_matches import ResponseMatch, ResponseMatch23
from ci_eval.records.cases import EvalCase, Status
from ci_eval.records.evalset_facts import CaseFacts
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace, TrialKey

KEY = TrialKey(agent="a", evalset="e", case="c")


def invocation(response: str | list[dict[str, Any]] | None) -> dict[str, Any]:
    parts = [{"text": response}] if isinstance(response, str) else response
    final = {} if parts is None else {"final_response": {"parts": parts}}
    return {"user_content": {"parts": [{"text": "x"}]}, **final}


def of_adk(*expected: Any, of_adk: bool = True) -> EvalCase:
    """Return a case of ADK's own files."""
    turns = [invocation(each) for each in expected]
    return EvalCase.model_validate({"eval_id": "c", "conversation": turns, "of_adk": of_adk})


def scored(expected: list[Any], actual: list[Any], criterion: ResponseMatch | None = None) -> Score:
    case = of_adk(*expected)
    trace = Trace.model_validate({"key": KEY, "invocations": [invocation(each) for each in actual]})
    return (criterion or ResponseMatch(threshold=0.5)).score(case, trace)


@pytest.mark.parametrize(
    ("expected", "actual", "value"),
    [
        ("The order is sent.", "the ORDER is sent", 1.0),
        ("one two three four", "one two", 2 / 3),
        ("one two", "three four", 0.0),
        ("", "", 0.0),
        ("one", "", 0.0),
        ("", "one", 0.0),
        (None, "one", 0.0),
        ("one", None, 0.0),
        (None, None, 0.0),
    ],
)
def test_a_response_scores_the_words_it_shares(
    expected: str | None, actual: str | None, value: float
) -> None:
    assert scored([expected], [actual]).value == pytest.approx(value, abs=1e-15)


def test_in_files_that_are_not_adks_a_response_that_is_not_stated_is_left_out() -> None:
    criterion = ResponseMatch(threshold=0.5)
    for nothing in (None, ""):
        assert criterion.skip_reason(of_adk(nothing, of_adk=False)) == "expects no response"
        assert criterion.skip_reason(of_adk(nothing)) == ""
    actual = [invocation("one"), invocation("two")]
    trace = Trace.model_validate({"key": KEY, "invocations": actual})
    found = criterion.score(of_adk("one", None, of_adk=False), trace)
    assert (found.value, [part.value for part in found.invocations]) == (1.0, [1.0, None])
    assert criterion.score(of_adk("one", None), trace).value == 0.5


def test_every_text_of_a_response_counts_thoughts_too() -> None:
    parts = [{"text": "one"}, {"inline_data": {}}, {"text": "two", "thought": True}]
    assert scored(["one two"], [parts]).value == 1.0


def test_the_value_is_the_mean_over_the_turns() -> None:
    found = scored(["one", "two"], ["one", "three"])
    assert (found.value, found.status) == (0.5, Status.PASSED)
    assert [part.value for part in found.invocations] == [1.0, 0.0]


def test_texts_are_shown_where_they_differ_too_much() -> None:
    found = scored(["one two", "one two", None], ["one two", "three", "four"])
    assert [part.evidence for part in found.invocations] == [
        None,
        {"expected": "one two", "actual": "three"},
        {"expected": "", "actual": "four"},
    ]


def test_a_threshold_of_zero_is_reached_by_anything() -> None:
    assert scored([None], ["x"], ResponseMatch(threshold=0)).status is Status.PASSED


def test_a_conversation_without_turns_measures_nothing() -> None:
    assert scored([], []).status is Status.SKIPPED


def test_the_older_adk_saw_no_words_in_other_scripts() -> None:
    assert scored(["東京 タワー"], ["東京 タワー"]).value == 1.0
    old = ResponseMatch23(threshold=0.5)
    assert scored(["東京 タワー"], ["東京 タワー"], old).value == 0.0
    assert scored(["Tokyo"], ["Tokyo"], old).value == 1.0
    assert scored(["x"], ["x"], old).criterion == "adk@2.3/response_match_score"


@pytest.mark.parametrize(
    ("cases", "all_of_them"),
    [
        ([of_adk("a"), of_adk(None, "b")], True),
        ([of_adk("a"), of_adk(" ")], False),
        ([of_adk("a"), of_adk()], False),
        ([of_adk("a"), SCENARIO], False),
    ],
)
def test_it_is_sure_to_score_the_cases_that_expect_a_response(
    cases: list[EvalCase], all_of_them: bool
) -> None:
    facts = CaseFacts()
    for case in cases:
        facts.add(case)
    criterion = ResponseMatch(threshold=0.5)
    assert criterion.scores_all(facts) == all_of_them
    assert not all_of_them or not any(map(criterion.skip_reason, cases))
