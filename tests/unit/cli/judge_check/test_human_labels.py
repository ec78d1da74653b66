"""Labels are read from what teams have, and all that is wrong is told at once."""

import json
from typing import Any

import pytest

from ci_eval.cli.judge_check import human_labels as module
from ci_eval.cli.judge_check.calibrated_criterion import Chosen
from ci_eval.cli.judge_check.human_labels import Form, Label, Line, label_of, read_labels
from ci_eval.records.errors import NothingSelectedError, UsageError
from ci_eval.records.results import CriterionFacts
from ci_eval.text.file_problems import MAX_PROBLEMS

FACTS = CriterionFacts(criterion="adk/final_response_match_v2", threshold=0.6, interval=(0.0, 1.0))
CHOSEN = Chosen("answers", FACTS)
THING = Form(Line, lambda line, refuse: (line.model_extra or {}).get("thing") or refuse("no thing"))
"""What there is to be judged is any word here."""
EXPECTED = "expected true or false, pass or fail, yes or no, valid or invalid, or a score"


def _facts(**changes: Any) -> CriterionFacts:
    return FACTS.model_copy(update={"threshold": 3, **changes})


@pytest.fixture
def read(tmp_path):
    def work(*rows: Any):
        path = tmp_path / "labels.jsonl"
        path.write_text("".join(f"{r if isinstance(r, str) else json.dumps(r)}\n" for r in rows))
        return read_labels(path, THING, CHOSEN, shown="labels.jsonl")

    return work


def told(read, *rows: Any) -> list[str]:
    with pytest.raises(UsageError) as caught:
        read(*rows)
    return [str(each) for each in caught.value.problems]


@pytest.mark.parametrize("word", [True, "pass", "PASSED", "yes", " valid ", "true", 1, 0.6])
def test_what_means_pass(word):
    assert label_of(word, FACTS).passes is True


@pytest.mark.parametrize("word", [False, "fail", "Failed", "no", "invalid", "false", 0, 0.59])
def test_what_means_fail(word):
    assert label_of(word, FACTS).passes is False


def test_where_lower_is_better_a_low_score_passes():
    assert label_of(2, _facts(better="lower", interval=None)) == Label(passes=True, value=2.0)


@pytest.mark.parametrize("wrong", ["maybe", "", None, {}, [], 1.2, -0.1, "0.8"])
def test_what_is_no_label(wrong):
    with pytest.raises(ValueError, match="found"):
        label_of(wrong, FACTS)


def test_a_score_lies_where_those_of_the_criterion_do():
    assert label_of(4, _facts(interval=(1, 5))).passes
    with pytest.raises(ValueError, match="between 1 and 5, found 0"):
        label_of(0, _facts(interval=(1, 5)))
    with pytest.raises(ValueError, match="a score must be between"):
        label_of(10**400, _facts(interval=None))


def test_a_line_has_a_name_and_a_number(read):
    one, two, three = read(
        {"id": "a", "thing": "x", "label": True},
        "",
        {"thing": "x", "label": 0.5, "rubric_id": "short"},
        {"eval_id": 7, "thing": "y", "label": "no"},
    ).items

    assert (one.name, one.line, one.rubric, one.subject) == ("a", 1, None, "x")
    assert (two.name, two.line, two.rubric, two.value) == ("line 3", 3, "short", 0.5)
    assert (three.name, three.passes, three.value) == ("7", False, None)


def test_the_majority_of_people_counts(read):
    [good, divided] = read(
        {"id": "a", "thing": "x", "label": ["pass", "fail", 1]},
        {"id": "b", "thing": "x", "label": ["pass", "fail"]},
    ).items

    assert (good.passes, good.value, good.pairs) == (True, None, (1, 3))
    assert (divided.passes, divided.pairs) == (None, (0, 1))


def test_people_may_have_a_line_each(read):
    [item] = read(
        {"id": "a", "thing": "x", "label": 1, "by": "ann"},
        {"id": "a", "thing": "x", "label": 0.5, "by": "bob"},
    ).items

    assert (item.passes, item.value, item.pairs, item.line) == (None, 0.75, (0, 1), 1)


def test_each_rubric_of_one_response_has_its_label(read):
    found = read(
        {"id": "a", "thing": "x", "label": True, "rubric_id": "short"},
        {"id": "a", "thing": "x", "label": False, "rubric_id": "polite"},
    ).items

    assert [(each.rubric, each.passes) for each in found] == [("short", True), ("polite", False)]


def test_labels_on_other_criteria_are_counted(read):
    found = read(
        {"thing": "x", "label": True, "criterion": "safety_v1"},
        {"thing": "x", "label": True, "criterion": "answers"},
        {"thing": "x", "label": True, "criterion": "final_response_match_v2"},
        {"thing": "x", "label": True, "criterion": "adk/final_response_match_v2"},
    )

    assert ([each.line for each in found.items], found.others) == ([2, 3, 4], 1)


def test_everything_that_is_wrong_is_told_with_its_line(read):
    assert told(
        read,
        "nonsense",
        [1],
        {"thing": "x"},
        {"label": "maybe"},
        {"thing": "x", "label": []},
        {"thing": "x", "label": True, "by": 3},
        {"thing": "x", "label": [True, False], "by": "ann"},
        {"thing": "x", "label": True, "id": {}},
    ) == [
        "labels.jsonl:1: is not JSON: expecting value",
        "labels.jsonl:2: expected an object, found a list",
        "labels.jsonl:3: 'label' is missing",
        f"labels.jsonl:4: label: {EXPECTED}; found 'maybe'",
        "labels.jsonl:4: no thing",
        "labels.jsonl:5: label: must not be empty",
        "labels.jsonl:6: by: expected text, found 3",
        "labels.jsonl:7: by: names one person, but there are several labels",
        "labels.jsonl:8: id: expected text, found an object",
    ]


@pytest.mark.parametrize("by", [({}, {}), ({"by": "ann"}, {}), ({"by": "ann"}, {"by": "ann"})])
def test_who_labels_twice_must_be_told_apart(read, by):
    first, second = ({"id": "a", "thing": "x", "label": True, **who} for who in by)

    [message] = told(read, first, second)
    assert "labels.jsonl:2: id: labels the same response as line 1" in message


def test_an_id_means_one_thing(read):
    [message] = told(
        read,
        {"id": "a", "thing": "x", "label": True, "rubric_id": "short"},
        {"id": "a", "thing": "y", "label": True, "rubric_id": "polite"},
    )

    assert message == "labels.jsonl:2: id: differs from line 1, which has the same id"


def test_a_misspelt_key_is_told_once_and_others_never(read):
    found = read(
        {"thing": "x", "label": True, "rubric": "short", "annotator": "ann"},
        {"thing": "x", "label": True, "rubric": "short"},
    )

    assert [str(each) for each in found.warnings] == [
        "labels.jsonl:1: rubric: unknown key, ignored. Did you mean 'rubric_id'?"
    ]


def test_no_label_is_nothing_to_do(read):
    with pytest.raises(NothingSelectedError, match=r"^labels.jsonl contains no label$"):
        read("")
    with pytest.raises(NothingSelectedError, match="contains no label on answers"):
        read({"thing": "x", "label": True, "criterion": "other"})


def test_a_file_of_too_many_labels_is_refused(read, monkeypatch):
    monkeypatch.setattr(module, "MAX_LABELS", 2)
    row = {"thing": "x", "label": True}

    assert len(read(row, row).items) == 2
    assert told(read, row, row, row) == ["labels.jsonl:3: holds more than 2 labels, the maximum"]


def test_a_file_of_another_kind_has_a_bounded_number_of_problems(read):
    assert len(told(read, *["nonsense"] * 500)) == MAX_PROBLEMS
