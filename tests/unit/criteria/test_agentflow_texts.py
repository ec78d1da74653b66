"""AgentFlow's criteria of the response: shared words, and keywords."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ci_eval.criteria._agentflow_criterion import AgentFlowCriterion
from ci_eval.criteria.agentflow_texts import ContainsKeywords, RougeMatch
from ci_eval.records.cases import EvalCase, Status
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace, TrialKey

KEY = TrialKey(agent="a", evalset="e", case="c")


def turns(*texts: str | None) -> list[dict[str, Any]]:
    return [
        {"user_content": {}}
        if text is None
        else {"user_content": {}, "final_response": {"parts": [{"text": text}]}}
        for text in texts
    ]


def case_of(*texts: str | None) -> EvalCase:
    return EvalCase.model_validate({"eval_id": "c", "conversation": turns(*texts)})


def traced(*texts: str | None) -> Trace:
    return Trace.model_validate({"key": KEY, "invocations": turns(*texts)})


def rouge(expected: list[str | None], actual: list[str | None], **options: Any) -> float | None:
    criterion = RougeMatch.model_validate(options)
    assert criterion.lacks(case_of(*expected)) == ""
    return criterion.score(case_of(*expected), traced(*actual)).value


def keywords(response: str, *words: str, **options: Any) -> Score:
    criterion = ContainsKeywords.model_validate({"keywords": words, **options})
    return criterion.score(case_of(None), traced(response))


# --- ROUGE ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "actual", "documented", "observed"),
    [
        ("The sky is blue", "the sky, is BLUE!", 1.0, 1.0),
        ("one two three four", "one two five six", 0.5, 0.5),  # half the words overlap
        ("the cat runs", "the cat running", 2 / 3, 2 / 3),  # nothing is stemmed
        ("no no no yes", "no yes yes yes", 0.5, 1.0),  # counted; sets in the package
        ("snake_case", "snake case", 1.0, 0.0),
        ("東京タワー", "東京 タワー", 1.0, 0.0),
        ("a b", "", 0.0, 0.0),
    ],
)
def test_words_are_shared_as_documented_and_as_observed(
    expected: str, actual: str, documented: float, observed: float
) -> None:
    assert rouge([expected], [actual]) == pytest.approx(documented)
    assert rouge([expected], [actual], semantics="observed") == pytest.approx(observed)


def test_a_score_of_one_half_passes_at_its_documented_threshold() -> None:
    criterion = RougeMatch(threshold=0.5)
    score = criterion.score(case_of("one two three four"), traced("one two five six"))

    assert score.status is Status.PASSED
    assert RougeMatch().threshold == 0.8


def test_the_last_expected_response_is_compared_with_the_last_one() -> None:
    assert rouge(["one", "two", None], ["one", "one", "two"]) == 1.0
    assert rouge(["one", "two", None], ["two", "two", "one"]) == 0.0


@pytest.mark.parametrize(
    ("expected", "reason"),
    [
        ((), "has no invocation"),
        ((None, ""), "expects no response"),
        (("?!",), "expects a response without words"),
    ],
)
def test_a_case_that_expects_no_words_is_skipped(
    expected: tuple[str | None, ...], reason: str
) -> None:
    assert RougeMatch().lacks(case_of(*expected)) == reason


@pytest.mark.parametrize(
    ("expected", "actual", "value"),
    [(["said", None], "said", 1.0), (["?!"], "...", 1.0), (["?!"], "word", 0.0)],
)
def test_the_package_scores_what_expects_no_words(
    expected: list[str | None], actual: str, value: float
) -> None:
    others: list[str | None] = ["x"] * (len(expected) - 1)

    assert rouge(expected, [*others, actual], semantics="observed") == value


@pytest.mark.parametrize("expected", [(None,), ("",), ("said", "")])
def test_what_the_package_scores_unseen_is_skipped(expected: tuple[str | None, ...]) -> None:
    observed = RougeMatch(semantics="observed")

    assert observed.skip_reason(case_of(*expected)) == "expects no response"


def test_both_texts_are_kept_where_they_did_not_pass() -> None:
    score = RougeMatch().score(case_of("one"), traced("two"))

    assert score.evidence == {"expected": "one", "actual": "two"}


# --- Keywords -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("threshold", "status"), [(1.0, Status.FAILED), (0.81, Status.FAILED), (0.8, Status.PASSED)]
)
def test_the_threshold_is_the_share_of_keywords_that_must_be_there(
    threshold: float, status: Status
) -> None:
    words = "refund", "7 days", "policy", "order", "mail"
    score = keywords("Our POLICY: a refund of your order in 7 days.", *words, threshold=threshold)

    assert (score.value, score.status) == (0.8, status)


@pytest.mark.parametrize(
    ("response", "word", "substring", "whole_word", "observed"),
    [
        ("A party.", "art", 1.0, 0.0, 1.0),
        ("Modern ART!", "art", 1.0, 1.0, 1.0),
        ("Hauptstraße", "STRASSE", 1.0, 0.0, 0.0),  # folded, not only lowered
        ("ｆｕｌｌ", "full", 1.0, 1.0, 0.0),  # noqa: RUF001  # wide letters are the case
        ("7\u00a0days", "7 days", 1.0, 1.0, 0.0),
        ("It costs US$5", "$5", 1.0, 1.0, 1.0),
        ("It costs $50", "$5", 1.0, 0.0, 1.0),
        ("C++ or C?", "c++", 1.0, 1.0, 1.0),
        ("abc", "a.c", 0.0, 0.0, 0.0),  # a keyword is no pattern
        ("e\u0301te\u0301", "été", 1.0, 1.0, 0.0),
        ("aΣb", "aΣ", 1.0, 0.0, 0.0),  # at the end of a word it is lowered to another letter
    ],
)
def test_keywords_are_found(
    response: str, word: str, substring: float, whole_word: float, observed: float
) -> None:
    assert keywords(response, word).value == substring
    assert keywords(response, word, whole_word=True).value == whole_word
    assert keywords(response, word, semantics="observed").value == observed


# A capital sigma is lowered to another letter at the end of a word than within it.
@given(
    st.text(st.characters(codec="utf-8", exclude_characters="Σ"), min_size=1), st.text(), st.text()
)
def test_a_keyword_is_found_in_whatever_holds_it(word: str, before: str, after: str) -> None:
    assert keywords(f"{before}{word}{after}", word, semantics="observed").value == 1.0


@given(st.lists(st.text("ab c", min_size=1).filter(str.strip), min_size=1), st.text("ab cd"))
def test_whole_words_are_never_found_more_often(words: list[str], response: str) -> None:
    loose, strict = keywords(response, *words), keywords(response, *words, whole_word=True)

    assert loose.value is not None
    assert strict.value is not None
    assert 0.0 <= strict.value <= loose.value <= 1.0


def test_only_the_last_response_counts() -> None:
    criterion = ContainsKeywords(keywords=("refund",))

    assert criterion.score(case_of(None, None), traced("refund", "no")).value == 0.0
    assert criterion.score(case_of(None, None), traced("no", "refund")).value == 1.0


def test_what_is_missing_is_kept_where_it_did_not_pass() -> None:
    score = keywords("We refund.", "refund", "Policy")

    assert score.evidence == {"missing_keywords": ["Policy"], "response": "We refund."}
    assert keywords("We refund.", "refund").evidence is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "Field required"),
        ({"keywords": []}, "needs keywords; without any, every response would pass"),
        ({"keywords": ["a", " "]}, "an empty keyword matches every response"),
        ({"keywords": ["a"], "semantics": "observed", "whole_word": True}, "no option"),
    ],
)
def test_keywords_that_check_nothing_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        ContainsKeywords.model_validate(options)


def test_the_package_passes_what_names_no_keywords() -> None:
    assert keywords("any", semantics="observed").value == 1.0
    assert keywords("any", "", "other", semantics="observed").value == 0.5


@pytest.mark.parametrize("criterion", [RougeMatch(), ContainsKeywords(keywords=("a",))])
def test_nothing_observed_is_an_error(criterion: AgentFlowCriterion) -> None:
    score = criterion.score(case_of("one"), traced())

    assert (score.status, score.value) == (Status.ERROR, None)
