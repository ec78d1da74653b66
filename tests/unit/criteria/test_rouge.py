"""ROUGE-1 counts shared words as ADK 2.13 and ADK 2.3 count them."""

import json
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_eval.criteria import _rouge

VECTORS: Final = Path(__file__).parents[2] / "vectors"

BOTH_RULES: Final[tuple[_rouge.Rules, ...]] = ("adk", "adk@2.3")

# Pieces that meet each rule: ASCII, accents (composed and not), full-width and ligature forms,
# each script without spaces, marks, punctuation in their blocks, emoji, and odd spaces.
PIECES: Final = (
    *("running", "runs", "The", "a1", "_", " ", "\n", "-", "'", "9"),
    *("café", "e\u0301", "\uff21\uff22", "\ufb01", "\u212a", "\u0130", "ß", "½", "\u2460"),
    *("東", "京", "の", "\u30fb", "한", "ก", "\u0e37", "\u0e3f", "ລ", "ក", "\u1040", "မ"),
    *("\U0001f44d", "\u200b", "\u3000", "हि", "\u0915\u093f", "Ж", "ع"),
)

texts = st.lists(st.sampled_from(PIECES), max_size=12).map("".join) | st.text(max_size=20)


def recorded(name: str) -> list[tuple[str, str, str, float]]:
    """Read what a version of ADK answered: id, candidate, reference, F1."""
    lines = (VECTORS / name).read_text(encoding="utf-8").splitlines()
    return [
        (row["id"], row["candidate"], row["reference"], row["fmeasure"])
        for row in map(json.loads, lines)
    ]


@pytest.mark.parametrize(
    ("name", "rules"), [("adk-2.13.0.rouge.jsonl", "adk"), ("adk-2.3.0.rouge.jsonl", "adk@2.3")]
)
def test_every_recorded_answer_of_adk_is_given_again_to_the_last_bit(
    name: str, rules: _rouge.Rules
) -> None:
    differing = [
        (key, score)
        for key, candidate, reference, score in recorded(name)
        if _rouge.rouge1_f(candidate, reference, rules=rules) != score
    ]
    assert differing == []


@cache
def reference_scorer() -> Any:
    from rouge_score import rouge_scorer  # slow to import, and every process collects this file

    return rouge_scorer.RougeScorer(["rouge1"], use_stemmer=True)


@given(texts, texts)
def test_adk_2_3_scores_as_the_rouge_score_package_does(candidate: str, reference: str) -> None:
    expected = reference_scorer().score(reference, candidate)["rouge1"].fmeasure
    assert _rouge.rouge1_f(candidate, reference, rules="adk@2.3") == expected


@given(st.text(st.characters(max_codepoint=127), max_size=40))
def test_ascii_text_has_the_same_words_by_the_short_cut_as_by_the_long_way(text: str) -> None:
    by_the_long_way = Counter(_rouge.words(f"{text} é", rules="adk"))
    assert Counter(_rouge.words(text, rules="adk")) + Counter(["é"]) == by_the_long_way


@given(st.text(st.characters(max_codepoint=127), max_size=40), st.text(max_size=20))
def test_the_rules_agree_on_ascii_text(candidate: str, reference: str) -> None:
    reference = reference.encode("ascii", "replace").decode()
    scores = {_rouge.rouge1_f(candidate, reference, rules=rules) for rules in BOTH_RULES}
    assert len(scores) == 1


@given(texts, texts, st.sampled_from(BOTH_RULES))
def test_a_score_is_between_zero_and_one_whichever_text_is_the_reference(
    one: str, other: str, rules: _rouge.Rules
) -> None:
    score = _rouge.rouge1_f(one, other, rules=rules)
    assert 0.0 <= score <= 1.0
    assert score == _rouge.rouge1_f(other, one, rules=rules)


@pytest.mark.parametrize("rules", BOTH_RULES)
def test_words_are_counted_as_often_as_both_texts_have_them(rules: _rouge.Rules) -> None:
    # 2 shared of 3 and of 4 words: 2 * (2/3 * 2/4) / (2/3 + 2/4).
    assert _rouge.rouge1_f("so so good", "so so so bad", rules=rules) == pytest.approx(4 / 7)


@pytest.mark.parametrize("rules", BOTH_RULES)
def test_order_case_and_english_inflection_do_not_matter(rules: _rouge.Rules) -> None:
    assert _rouge.rouge1_f("Refunds issued!", "issuing a REFUND", rules=rules) == 0.8


@pytest.mark.parametrize("rules", BOTH_RULES)
def test_words_of_up_to_three_letters_are_not_stemmed(rules: _rouge.Rules) -> None:
    assert _rouge.rouge1_f("cats", "cat", rules=rules) == 1.0
    assert _rouge.rouge1_f("ads", "ad", rules=rules) == 0.0


@pytest.mark.parametrize("rules", BOTH_RULES)
@pytest.mark.parametrize("text", ["", "  ", "?!", "\U0001f44d"])
def test_texts_without_words_score_zero_even_against_themselves(
    text: str, rules: _rouge.Rules
) -> None:
    assert _rouge.rouge1_f(text, text, rules=rules) == 0.0


@pytest.mark.parametrize("text", ["東京", "สวัสดี", "Привет", "한국어"])
def test_other_scripts_have_words_under_adk_and_none_under_adk_2_3(text: str) -> None:
    assert _rouge.rouge1_f(text, text, rules="adk") == 1.0
    assert _rouge.rouge1_f(text, text, rules="adk@2.3") == 0.0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("東京タワー", ["東", "京", "タ", "ワ", "ー"]),
        ("한국a어", ["한", "국", "a", "어"]),
        ("กินข้าว", ["กิ", "น", "ข้", "า", "ว"]),
        ("กok", ["กok"]),
        ("naïve cafés", ["naïve", "cafés"]),
        ("e\u0301te\u0301", ["été"]),
        ("\uff32\uff35\uff2e", ["run"]),
        ("हिन्दी", ["हिन्दी"]),
        ("très_bien", ["très", "bien"]),
        ("l\u2019eau", ["eau", "l"]),
    ],
)
def test_adk_cuts_each_script_by_its_own_rule(text: str, words: list[str]) -> None:
    assert sorted(_rouge.words(text, rules="adk")) == sorted(words)


@pytest.mark.parametrize(
    ("candidate", "reference", "score"),
    [
        ("running", "runs", 0.0),
        ("Running!", "running", 1.0),
        ("a a b", "a b", 0.8),  # of 3 words and 2, 2 are shared: counted, not as sets
        ("東京", "東北", 0.5),
        ("naïve cafés", "naïve café", 0.5),
        ("", "", 0.0),
    ],
)
def test_agentflow_has_the_words_of_adk_unstemmed(
    candidate: str, reference: str, score: float
) -> None:
    assert _rouge.rouge1_f(candidate, reference, rules="agentflow") == pytest.approx(score)


def test_scoring_imports_neither_nltk_nor_numpy_nor_abseil() -> None:
    program = (
        "import sys; from ci_eval.criteria import _rouge; "
        "_rouge.rouge1_f('running', 'café', rules='adk'); "
        "print(sorted({'nltk', 'numpy', 'absl'} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
