"""AgentFlow's judged criteria whose answers have parts: dimensions, rubrics, goals."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from support.case_language import SCENARIO, did, expecting
from support.judged_scores import drawn, judged

from ci_eval.criteria.agentflow_responses import (
    DIMENSIONS,
    AgentFlowRubric,
    RubricBased,
    Safety,
    read_rubrics,
)
from ci_eval.criteria.agentflow_simulation_goals import SimulationGoals
from ci_eval.records.cases import EvalCase, Status
from ci_eval.records.results import Score

HELLO = expecting("Hello!")
SAID = did("Hello!")


def samples(score: Score) -> Any:
    assert score.evidence is not None
    return score.evidence["samples"]


# --- safety_v1 ----------------------------------------------------------------------------------


def safe(**less: float) -> dict[str, Any]:
    dimensions = {**dict.fromkeys(DIMENSIONS, 1), **less}
    return {"reasoning": "Hm.", "dimensions": dimensions}


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_the_least_of_the_five_dimensions_counts(dimension: str) -> None:
    found = judged(Safety(), HELLO, SAID, safe(**{dimension: 0.25})).score

    assert (found.value, found.status) == (0.25, Status.FAILED)


def test_the_least_is_taken_of_each_sample_before_the_mean() -> None:
    answers = drawn(safe(privacy=0), safe(hate_speech=0.5), safe())
    found = judged(Safety(num_samples=3), HELLO, SAID, answers).score

    assert found.value == 0.5  # of the means of each dimension the least would be 2/3
    assert samples(found)[0]["dimensions"]["privacy"] == 0.0
    assert samples(found)[1] == {
        "score": 0.5,
        "rationale": "Hm.",
        "dimensions": {**dict.fromkeys(DIMENSIONS, 1.0), "hate_speech": 0.5},
    }


def test_what_passed_keeps_its_dimensions() -> None:
    found = judged(Safety(), HELLO, SAID, safe()).score

    assert found.status is Status.PASSED
    assert samples(found)[0]["dimensions"] == dict.fromkeys(DIMENSIONS, 1.0)


@pytest.mark.parametrize("wrong", [{"privacy": "high"}, {"privacy": 2}, {"privacy": None}])
def test_a_dimension_that_is_no_score_makes_the_answer_a_bad_one(wrong: Any) -> None:
    found = judged(Safety(), HELLO, SAID, safe(**wrong))

    assert found.score.status is Status.ERROR
    assert "'privacy'" in found.asked[1].remark


def test_a_missing_dimension_makes_the_answer_a_bad_one() -> None:
    answer = safe()
    del answer["dimensions"]["manipulation"]
    found = judged(Safety(), HELLO, SAID, answer).score

    assert found.reason.endswith("it holds no number under 'manipulation'")


def test_as_observed_the_judges_score_counts_whatever_the_dimensions_say() -> None:
    answer = {"score": 0.95, "categories": {"privacy": 0.0}, "issues": ["A name."]}
    found = judged(Safety(semantics="observed"), HELLO, SAID, answer).score

    assert found.value == 0.95
    assert samples(found)[0]["issues"] == ["A name."]


# --- rubric_based -------------------------------------------------------------------------------


def rubrics(*weights: float) -> Any:
    return [
        {"rubric_id": name, "content": f"It is {name}.", "weight": weight}
        for name, weight in zip("abc", weights, strict=False)
    ]


def given_for(*scores: Any) -> dict[str, Any]:
    return {
        "rubrics": [
            {"rubric_id": name, "reasoning": f"of {name}", "score": score}
            for name, score in zip("abc", scores, strict=False)
        ]
    }


def by_rubrics(*weights: float, **more: Any) -> RubricBased:
    return RubricBased.model_validate({"rubrics": rubrics(*weights), **more})


def test_rubrics_count_by_their_weight() -> None:
    found = judged(by_rubrics(1, 0.5), HELLO, SAID, given_for(1, 0.4)).score

    assert found.value == pytest.approx((1 + 0.5 * 0.4) / 1.5)
    assert samples(found)[0]["rubrics"]["b"] == {"score": 0.4, "weight": 0.5, "rationale": "of b"}


def test_the_weighted_mean_is_taken_of_each_sample() -> None:
    answers = drawn(given_for(1, 0), given_for(0, 1))
    found = judged(by_rubrics(3, 1, num_samples=2), HELLO, SAID, answers).score

    assert found.value == 0.5
    assert [each["score"] for each in samples(found)] == [0.75, 0.25]


def test_all_rubrics_are_asked_about_at_once() -> None:
    found = judged(by_rubrics(1, 1), HELLO, SAID, given_for(1, 1))

    assert len(found.asked) == 1
    assert "It is a." in found.asked[0].text
    assert "It is b." in found.asked[0].text


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (given_for(1), "it holds nothing under 'rubrics' for 'b'"),
        (given_for(1, 7), "it holds no 'score' from 0 to 1 for 'b', but 7"),
        (given_for(1, 1, 1), "it names no 'rubric_id' that was given, but 'c'"),
        ({"score": 1}, "it holds nothing under 'rubrics' for 'a'"),
    ],
)
def test_an_answer_that_does_not_score_each_rubric_is_a_bad_one(answer: Any, reason: str) -> None:
    found = judged(by_rubrics(1, 1), HELLO, SAID, answer).score

    assert (found.status, found.reason) == (Status.ERROR, f"no verdict was reached: m1: {reason}")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([], "at least 1 item"),
        (rubrics(0, 0), "all weights are 0"),
        (rubrics(-1), "greater than or equal to 0"),
        (rubrics(1) * 2, "several rubrics have the id 'a'"),
        ([{"rubric_id": "a", "rubric_content": {"text_property": "p"}}], "content"),
    ],
)
def test_rubrics_that_cannot_be_scored_are_refused(wrong: Any, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        RubricBased.model_validate({"rubrics": wrong})


def test_as_observed_one_score_counts_and_no_weight() -> None:
    found = judged(by_rubrics(9, 1, semantics="observed"), HELLO, SAID, {"score": 0.3})

    assert found.score.value == 0.3
    assert "It is b." in found.asked[0].text


@given(
    st.lists(st.tuples(st.floats(0.001, 1000), st.floats(0, 1)), min_size=1, max_size=3),
    st.sampled_from([0.5, 2.0, 8.0]),
)
def test_a_weighted_mean_lies_between_the_scores_and_only_shares_of_the_weight_count(
    pairs: list[tuple[float, float]], factor: float
) -> None:
    weights, scores = zip(*pairs, strict=True)
    answer = str(given_for(*scores)).replace("'", '"')

    def value(factor: float) -> float:
        given = rubrics(*(factor * weight for weight in weights))
        sample = read_rubrics(answer, rubrics=tuple(map(AgentFlowRubric.model_validate, given)))
        assert sample.score is not None
        return sample.score

    assert min(scores) <= value(1) <= max(scores)
    assert value(factor) == value(1)


# --- simulation_goals ---------------------------------------------------------------------------


def wanting(*goals: Any) -> EvalCase:
    return SCENARIO.model_copy(update={"metadata": {"goals": list(goals)}})


def reached(*said: Any) -> dict[str, Any]:
    return {
        "goals": [
            {"number": number, "reasoning": f"of {number}", "reached": each}
            for number, each in enumerate(said, 1)
        ]
    }


def test_the_share_of_goals_that_were_reached_counts() -> None:
    case = wanting("Know the price.", "Buy it.", "Know the price.", "Get a receipt.")
    found = judged(SimulationGoals(), case, SAID, reached(True, True, False)).score

    assert found.value == pytest.approx(2 / 3)
    assert samples(found)[0]["goals"][2] == {
        "goal": "Get a receipt.",
        "reached": False,
        "rationale": "of 3",
    }


def test_the_share_is_taken_of_each_sample() -> None:
    answers = drawn(reached(True, False), reached(True, True))
    found = judged(SimulationGoals(num_samples=2), wanting("a", "b"), SAID, answers).score

    assert found.value == 0.75


def test_the_whole_conversation_is_shown_with_what_was_done_in_it() -> None:
    done = did("Good day!", [("order", {"book": "Emma"})], "It is done.")
    text = judged(SimulationGoals(), wanting("a"), done, reached(True)).asked[0].text

    assert text.index("Good day!") < text.index("Emma") < text.index("It is done.")


def test_without_goals_the_plan_is_the_only_one() -> None:
    found = judged(SimulationGoals(), SCENARIO, SAID, reached(True))

    assert found.score.value == 1.0
    assert "Say bye." in found.asked[0].text


@pytest.mark.parametrize("metadata", [{}, {"goals": []}, {"goals": "a"}, {"goals": ["", 7]}, "x"])
@pytest.mark.parametrize("semantics", ["documented", "observed"])
def test_a_case_without_goals_is_skipped(metadata: Any, semantics: str) -> None:
    found = SimulationGoals.model_validate({"semantics": semantics})

    assert found.lacks(expecting("Hello!", metadata=metadata)).startswith("has no texts under `go")
    # A plan is a goal, but for the package.
    assert bool(found.lacks(SCENARIO)) is (semantics == "observed")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (reached(True), "it holds nothing under 'goals' for 2"),
        (reached(True, "yes"), "it holds neither true nor false under 'reached' for 2"),
        (reached(True, True, True), "it names no 'number' that was given, but 3"),
    ],
)
def test_an_answer_that_does_not_speak_of_each_goal_is_a_bad_one(answer: Any, reason: str) -> None:
    found = judged(SimulationGoals(), wanting("a", "b"), SAID, answer).score

    assert found.reason == f"no verdict was reached: m1: {reason}"


def test_as_observed_the_judge_is_asked_once_for_the_share() -> None:
    criterion = SimulationGoals(semantics="observed", num_samples=5)
    found = judged(criterion, wanting("a", "b"), SAID, {"score": 0.4})

    assert (found.score.value, len(found.asked)) == (0.4, 1)
