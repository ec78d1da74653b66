"""The examples of AgentFlow's page on criteria, one by one, each as an eval config holds it.

What is Python there is written as the JSON that it stands for, under the names of criteria
(`tool_name_match_score`) and, where the page constructs a slot, under the slot's.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from ci_eval.config.eval_config import EvalConfigFile, read_eval_config
from ci_eval.plugins.criterion import AnyCriterion
from ci_eval.plugins.points import Criterion
from ci_eval.records.cases import EvalCase, Status
from ci_eval.records.results import Score
from ci_eval.records.trials import Trace, TrialKey

KEY = TrialKey(agent="a", evalset="e", case="c")


UNREAD = "unused option, ignored"


@pytest.fixture
def read(tmp_path: Path) -> Any:
    """Read an EvalConfig of AgentFlow's."""

    def read(criteria: dict[str, Any], **more: Any) -> EvalConfigFile:
        path = tmp_path / "eval_config.json"
        path.write_text(json.dumps({"criteria": criteria, **more}))
        found = read_eval_config(path, shown="eval_config.json", dialect="agentflow")
        # Written for every criterion, an option that this one does not read is warned of.
        assert {each.message for each in found.problems} <= {UNREAD}
        return found

    return read


@pytest.fixture
def criterion(read: Any) -> Any:
    """Read a config with one criterion, and return it."""

    def one(name: str, **options: Any) -> AnyCriterion:
        (found,) = read({name: options}).criteria.values()
        return found

    return one


def turn(said: str | None = None, calls: Any = None, nodes: Any = None) -> dict[str, Any]:
    """Return a turn: a response, calls by name or with arguments, nodes."""
    pairs = (each if isinstance(each, tuple) else (each, {}) for each in calls or ())
    uses = [{"name": name, "args": args} for name, args in pairs]
    return {
        "user_content": {},
        "final_response": None if said is None else {"parts": [{"text": said}]},
        "intermediate_data": None if calls is None else {"tool_uses": uses},
        "nodes": nodes,
    }


def scored(criterion: AnyCriterion, expected: dict[str, Any], actual: dict[str, Any]) -> Score:
    assert isinstance(criterion, Criterion)
    case = EvalCase.model_validate({"eval_id": "c", "conversation": [expected]})
    assert criterion.lacks(case) == ""
    return criterion.score(case, Trace.model_validate({"key": KEY, "invocations": [actual]}))


# --- Tools ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("actual", "value"),
    [
        (["search", "book"], 1.0),
        (["book", "search"], 1.0),
        (["search", "book", "pay"], 2 / 3),
        (["search"], 0.5),
        (["pay"], 0.0),
        ([], 0.0),
    ],
)
def test_names_of_tools(criterion: Any, actual: list[str], value: float) -> None:
    found = criterion("tool_name_match_score", threshold=1.0)
    score = scored(found, turn(calls=["search", "book"]), turn(calls=actual))

    assert score.value == pytest.approx(value, abs=1e-12)
    assert (score.status is Status.PASSED) == (value == 1.0)


@pytest.mark.parametrize(
    ("match_type", "passing"),
    [
        ("EXACT", [["a", "b"]]),
        ("IN_ORDER", [["a", "b"], ["a", "x", "b"], ["x", "a", "b", "x"]]),
        ("ANY_ORDER", [["a", "b"], ["a", "x", "b"], ["x", "a", "b", "x"], ["b", "a"]]),
    ],
)
def test_the_three_types_of_match(criterion: Any, match_type: str, passing: list[Any]) -> None:
    found = criterion(
        "tool_trajectory_avg_score", threshold=1.0, match_type=match_type, check_args=False
    )
    tried = [["a", "b"], ["a", "x", "b"], ["x", "a", "b", "x"], ["b", "a"], ["a"], ["b"], []]

    expected = turn(calls=["a", "b"])
    assert [each for each in tried if scored(found, expected, turn(calls=each)).value] == passing


def test_arguments_are_compared_when_asked_for(criterion: Any) -> None:
    wanted, given = turn(calls=[("a", {"x": 1, "y": 2})]), turn(calls=[("a", {"y": 2, "x": 1})])
    other = turn(calls=[("a", {"x": 1, "y": 2, "z": 3})])
    options = {"threshold": 1.0, "match_type": "EXACT"}
    loose = criterion("tool_trajectory_avg_score", **options, check_args=False)
    strict = criterion("tool_trajectory_avg_score", **options, check_args=True)

    assert [scored(loose, wanted, each).value for each in (given, other)] == [1.0, 1.0]
    assert [scored(strict, wanted, each).value for each in (given, other)] == [1.0, 0.0]


def test_the_order_of_nodes(criterion: Any) -> None:
    found = criterion("node_order_match_score", threshold=1.0, match_type="EXACT")
    path = ["MAIN", "TOOL", "MAIN", "END"]

    assert scored(found, turn(nodes=path), turn(nodes=["__start__", *path])).value == 1.0
    assert scored(found, turn(nodes=path), turn(nodes=["MAIN", "END"])).value == 0.0


# --- Texts ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "value"), [("paris is the capital", 1.0), ("paris is in france", 0.5), ("berlin", 0.0)]
)
def test_words_in_common(criterion: Any, said: str, value: float) -> None:
    found = criterion("rouge_match", threshold=0.5)
    score = scored(found, turn("Paris is the capital"), turn(said))

    assert score.value == pytest.approx(value, abs=1e-12)
    assert (score.status is Status.PASSED) == (value >= 0.5)


def test_keywords_that_must_be_there(criterion: Any) -> None:
    found = criterion("contains_keywords", keywords=["refund", "7 days", "policy"], threshold=1.0)
    said = "Our refund policy: money back within 7 days."

    assert scored(found, turn(), turn(said)).value == 1.0
    assert scored(found, turn(), turn("Our refund policy.")).value == pytest.approx(2 / 3)


def test_a_share_of_the_keywords_may_do(criterion: Any) -> None:
    found = criterion("contains_keywords", keywords=list("abcde"), threshold=0.8)

    assert scored(found, turn(), turn("a b c d")).status is Status.PASSED
    assert scored(found, turn(), turn("a b c")).status is Status.FAILED


def test_keywords_are_added_to_a_config_by_hand(criterion: Any) -> None:
    found = criterion("contains_keywords", keywords=["refund", "policy"], threshold=1.0)

    assert scored(found, turn(), turn("Refund Policy")).value == 1.0


# --- Judged: what they are read as ------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "qualified"),
    [
        ("response_match_score", "agentflow/response_match_score"),
        ("llm_judge", "agentflow/llm_judge"),
        ("factual_accuracy_v1", "agentflow/factual_accuracy_v1"),
        ("hallucinations_v1", "agentflow/hallucinations_v1"),
        ("safety_v1", "agentflow/safety_v1"),
    ],
)
def test_what_a_model_judges(criterion: Any, name: str, qualified: str) -> None:
    found = criterion(name, threshold=0.8, judge_model="gemini-2.5-flash", num_samples=3)

    assert (found.type_name, found.threshold) == (qualified, 0.8)
    assert (found.judge_model, found.num_samples) == ("gemini-2.5-flash", 3)


def test_rubrics_with_weights(criterion: Any) -> None:
    rubrics = [
        {"rubric_id": "concise", "content": "It is short.", "weight": 1.0},
        {"rubric_id": "empathetic", "content": "It says sorry first.", "weight": 0.5},
    ]
    found = criterion(
        "rubric_based", rubrics=rubrics, threshold=0.8, judge_model="gemini-2.5-flash"
    )

    assert found.type_name == "agentflow/rubric_based"
    assert [(each.rubric_id, each.weight) for each in found.rubrics] == [
        ("concise", 1.0),
        ("empathetic", 0.5),
    ]


# --- Configs ----------------------------------------------------------------------------------


def test_a_config_with_every_field_written_out(criterion: Any) -> None:
    found = criterion(
        "trajectory",
        threshold=0.8,
        match_type="IN_ORDER",
        judge_model="gpt-4o",
        num_samples=3,
        rubrics=[],
        keywords=[],
        check_args=False,
        enabled=True,
    )

    assert found.type_name == "agentflow/tool_trajectory_avg_score"
    assert (found.threshold, found.match_type, found.check_args) == (0.8, "IN_ORDER", False)


def test_the_defaults_of_a_config(criterion: Any) -> None:
    found = criterion("trajectory", enabled=True)

    assert (found.threshold, found.match_type) == (0.8, "EXACT")
    assert (found.check_args, found.enabled) == (False, True)


def test_several_criteria_in_one_config(read: Any) -> None:
    found = read(
        {
            "tool_trajectory_avg_score": {"threshold": 1.0, "match_type": "EXACT"},
            "rouge_match": {"threshold": 0.5},
            "hallucinations_v1": {"threshold": 0.8},
        },
        parallel=True,
        max_concurrency=4,
        timeout=120.0,
    )

    assert {name: (each.type_name, each.threshold) for name, each in found.criteria.items()} == {
        "tool_trajectory_avg_score": ("agentflow/tool_trajectory_avg_score", 1.0),
        "rouge_match": ("agentflow/rouge_match", 0.5),
        "hallucinations_v1": ("agentflow/hallucinations_v1", 0.8),
    }
    assert found.run == {"concurrency": 4, "timeout_s": 120.0}
    assert not found.mock


def test_a_criterion_that_is_switched_off_and_on_again(criterion: Any) -> None:
    assert not criterion("rouge_match", threshold=0.5, enabled=False).enabled
    again = criterion("rouge_match", threshold=0.4, enabled=True)
    assert (again.enabled, again.threshold) == (True, 0.4)
