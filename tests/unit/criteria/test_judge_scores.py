"""Scores in the answers of judges."""

import json
from typing import Any

import pytest

from ci_eval.criteria._judge_scores import each_in, read_score, share_in, texts_in
from ci_eval.llm.model_answers import NUMBER, TEXT, strict
from ci_eval.records.questions import UnreadableError


def test_a_schema_is_one_that_openai_takes_as_strict() -> None:
    assert strict(reasoning=TEXT, score=NUMBER) == {
        "type": "object",
        "properties": {"reasoning": {"type": "string"}, "score": {"type": "number"}},
        "required": ["reasoning", "score"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize("value", [0, 0.0, 0.25, 1, 1.0])
def test_a_number_from_0_to_1_is_a_score(value: float) -> None:
    found = share_in({"score": value}, "score")

    assert found == value
    assert type(found) is float


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        ({}, "it holds no number under 'score' for 'tone'"),
        ({"score": "0.8"}, "it holds no number under 'score' for 'tone'"),
        ({"score": True}, "it holds no number under 'score' for 'tone'"),
        ({"score": None}, "it holds no number under 'score' for 'tone'"),
        ({"score": [0.8]}, "it holds no number under 'score' for 'tone'"),
        ({"score": 1.01}, "it holds no 'score' from 0 to 1 for 'tone', but 1.01"),
        ({"score": -1}, "it holds no 'score' from 0 to 1 for 'tone', but -1"),
    ],
)
def test_what_is_no_score_says_so(found: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnreadableError) as caught:
        share_in(found, "score", of="'tone'")
    assert str(caught.value) == reason


def test_an_answer_with_one_score_is_read_with_its_lists() -> None:
    answer = {"reasoning": "Well.", "errors": ["It is 7.", 7, "x" * 3_000], "score": 0.5}
    found = read_score(f"```json\n{json.dumps(answer)}\n```", listed="errors")

    assert (found.score, found.rationale) == (0.5, "Well.")
    assert found.details == {"errors": ["It is 7.", "x" * 2_000 + "…"]}


@pytest.mark.parametrize(
    "text", ["", "0.8", "[]", "I give it 0.8.", '{"score": NaN}', '{"score": 0, "score": 1}']
)
def test_an_answer_without_an_object_is_not_read(text: str) -> None:
    with pytest.raises(UnreadableError, match="it holds no JSON object"):
        read_score(text)


def test_no_more_than_some_texts_are_kept() -> None:
    assert len(texts_in({"errors": ["a"] * 99}, "errors")) == 50
    assert texts_in({"errors": "a"}, "errors") == []


def test_each_that_was_asked_for_is_found_in_the_order_that_was_asked() -> None:
    entries = [{"id": "b", "score": 1}, {"id": "a", "score": 0}]
    found = each_in({"all": entries}, "all", "id", ["a", "b"])

    assert list(found) == ["a", "b"]
    assert found["b"]["score"] == 1


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ([{"id": "a"}], "it holds nothing under 'all' for 'b'"),
        ("a", "it holds nothing under 'all' for 'a'"),
        ([{"id": "a"}, {"id": "a"}], "it holds the 'id' 'a' twice"),
        ([{"id": "c"}], "it names no 'id' that was given, but 'c'"),
        ([{"id": ["a"]}], "it names no 'id' that was given, but ['a']"),
        (["a", "b"], "it names no 'id' that was given, but None"),
    ],
)
def test_none_may_be_missing_or_twice_or_new(entries: Any, reason: str) -> None:
    with pytest.raises(UnreadableError) as caught:
        each_in({"all": entries}, "all", "id", ["a", "b"])
    assert str(caught.value) == reason


def test_a_switch_is_no_number() -> None:
    with pytest.raises(UnreadableError):
        each_in({"all": [{"n": True}]}, "all", "n", range(1, 2))
