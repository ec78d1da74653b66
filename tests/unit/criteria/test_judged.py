"""Criteria that ask a model: what they declare and take, so that files of others are understood."""

from typing import Any

import pytest
from pydantic import ValidationError

from ci_eval.criteria import adk_final_response_match_v2, adk_rubric_based, agentflow_responses
from ci_eval.plugins import points
from ci_eval.plugins.points import JudgedCriterion

YES, NO = True, False  # does it need a reference, rubrics; may a simulated user lead?
ADK = {
    "final_response_match_v2": (YES, NO, NO),
    "rubric_based_final_response_quality_v1": (NO, YES, YES),
    "rubric_based_tool_use_quality_v1": (NO, YES, YES),
    "rubric_based_multi_turn_trajectory_quality_v1": (NO, YES, YES),
    "hallucinations_v1": (NO, NO, YES),
    "safety_v1": (NO, NO, YES),
    "per_turn_user_simulator_quality_v1": (NO, NO, YES),
    "response_evaluation_score": (YES, NO, NO),
    "multi_turn_task_success_v1": (NO, NO, YES),
    "multi_turn_trajectory_quality_v1": (NO, NO, YES),
    "multi_turn_tool_use_quality_v1": (NO, NO, YES),
}
AGENTFLOW = {
    "response_match_score": (YES, NO, NO),
    "llm_judge": (NO, NO, YES),
    "factual_accuracy_v1": (NO, NO, YES),
    "hallucinations_v1": (NO, NO, YES),
    "safety_v1": (NO, NO, YES),
    "rubric_based": (NO, YES, YES),
    "simulation_goals": (NO, NO, YES),
}


@pytest.mark.parametrize(
    ("name", "declared"),
    [(f"adk/{name}", each) for name, each in ADK.items()]
    + [(f"agentflow/{name}", each) for name, each in AGENTFLOW.items()],
)
def test_each_declares_what_it_needs(name: str, declared: tuple[bool, bool, bool]) -> None:
    model = points.criterion[name]
    assert issubclass(model, JudgedCriterion)
    assert model.judged
    assert (model.needs_reference, model.needs_rubrics, model.supports_scenario) == declared
    assert model.interval == ((1.0, 5.0) if name == "adk/response_evaluation_score" else (0.0, 1.0))
    assert (model.better, model.takes_threshold) == ("higher", "always")


def test_there_are_no_others() -> None:
    judged = {name for name in points.criterion if points.criterion[name].judged}
    assert judged == {f"adk/{name}" for name in ADK} | {f"agentflow/{name}" for name in AGENTFLOW}


# --- ADK's ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        {"judge_model_options": {"judge_model": "m", "num_samples": 7}},
        {"judgeModelOptions": {"judgeModel": "m", "numSamples": 7}},
        {"judge_model_options": {"judgeModel": "m", "num_samples": 7}},
    ],
)
def test_options_of_adk_are_read_in_both_spellings(given: dict[str, Any]) -> None:
    found = adk_final_response_match_v2.FinalResponseMatch.model_validate(
        {"threshold": 0.8, **given}
    )
    assert found.judge_model_options.judge_model == "m"
    assert found.judge_model_options.num_samples == 7


def test_what_is_not_said_is_left_to_the_configuration() -> None:
    options = adk_final_response_match_v2.FinalResponseMatch(threshold=0.8).judge_model_options
    assert (options.judge_model, options.judge_model_config, options.num_samples) == (
        None,
        None,
        None,
    )


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"threshold": 1.5},
        {"threshold": 1, "judge_model_options": {"num_samples": 0}},
        {"threshold": 1, "judge_model_options": {"num_samples": 1001}},
        {"threshold": 1, "judge_model_options": {"judge": "m"}},
        {"threshold": 1, "judge_model": "m"},
    ],
)
def test_options_of_adk_that_make_no_sense_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        adk_final_response_match_v2.FinalResponseMatch.model_validate(given)


def test_rubrics_of_adk_have_a_text_and_those_of_agentflow_a_weight() -> None:
    of_adk = {"rubricId": "r", "rubricContent": {"textProperty": "p"}, "type": "TONE"}
    found = adk_rubric_based.RubricResponse.model_validate({"threshold": 1, "rubrics": [of_adk]})
    assert found.rubrics[0].rubric_content.text_property == "p"
    of_agentflow = {"rubric_id": "r", "content": "p"}
    [rubric] = agentflow_responses.RubricBased.model_validate({"rubrics": [of_agentflow]}).rubrics
    assert (rubric.content, rubric.weight) == ("p", 1.0)
    for model, rubric_of_the_other in (
        (adk_rubric_based.RubricResponse, of_agentflow),
        (agentflow_responses.RubricBased, of_adk),
    ):
        with pytest.raises(ValidationError):
            model.model_validate({"threshold": 1, "rubrics": [rubric_of_the_other]})


def test_rubrics_of_adk_may_come_with_the_cases() -> None:
    assert adk_rubric_based.RubricToolUse(threshold=1.0).rubrics == ()
