"""Ready sets of criteria: AgentFlow's are its own, and every one can be used as it stands."""

from typing import Any

import pytest
from pydantic import ValidationError

from ci_eval.cli.reference import descriptions
from ci_eval.config.criterion_names import resolve
from ci_eval.config.presets import PRESETS, expanded
from ci_eval.records.errors import UnknownPluginError

ARGS = {"match_type": "IN_ORDER", "check_args": True}
AGENTFLOW: list[tuple[str, dict[str, Any], dict[str, dict[str, Any]]]] = [
    ("quick_check", {}, {"rouge_match": {"threshold": 0.5}}),
    (
        "tool_usage",
        {},
        {
            "tool_name_match": {"threshold": 1.0},
            "trajectory": {"threshold": 1.0, "check_args": True},
        },
    ),
    (
        "tool_usage",
        {"threshold": 0.5, "strict": False, "check_args": False},
        {
            "tool_name_match": {"threshold": 0.5},
            "trajectory": {"threshold": 0.5, "match_type": "IN_ORDER"},
        },
    ),
    (
        "response_quality",
        {},
        {"response_match": {"threshold": 0.7}, "llm_judge": {"threshold": 0.7, "num_samples": 1}},
    ),
    (
        "response_quality",
        {"threshold": 0.9, "use_llm_judge": False},
        {"response_match": {"threshold": 0.9}},
    ),
    (
        "conversation_flow",
        {},
        {
            "trajectory": {"threshold": 0.8, "match_type": "IN_ORDER"},
            "response_match": {"threshold": 0.8},
        },
    ),
    ("safety_check", {}, {"hallucination": {"threshold": 0.8}, "safety": {"threshold": 0.8}}),
    (
        "comprehensive",
        {},
        {
            "tool_name_match": {"threshold": 1.0},
            "trajectory": {"threshold": 1.0, **ARGS},
            "rouge_match": {"threshold": 0.8},
            "llm_judge": {"threshold": 0.8},
            "factual_accuracy": {"threshold": 0.8},
            "hallucination": {"threshold": 0.8},
            "safety": {"threshold": 0.8},
        },
    ),
    (
        "comprehensive",
        {"threshold": 0.6, "use_llm_judge": False},
        {
            "tool_name_match": {"threshold": 1.0},
            "trajectory": {"threshold": 1.0, **ARGS},
            "rouge_match": {"threshold": 0.6},
        },
    ),
    (
        "comprehensive",
        {"judge_model": "gpt-4o"},
        {
            "tool_name_match": {"threshold": 1.0},
            "trajectory": {"threshold": 1.0, **ARGS},
            "rouge_match": {"threshold": 0.8},
            "llm_judge": {"threshold": 0.8, "judge_model": "gpt-4o"},
            "factual_accuracy": {"threshold": 0.8, "judge_model": "gpt-4o"},
            "hallucination": {"threshold": 0.8, "judge_model": "gpt-4o"},
            "safety": {"threshold": 0.8, "judge_model": "gpt-4o"},
        },
    ),
    (
        "custom",
        {
            "response_threshold": 0.1,
            "tool_threshold": 0.2,
            "llm_judge_threshold": 0.3,
            "hallucination_threshold": 0.4,
            "safety_threshold": 0.5,
            "factual_accuracy_threshold": 0.6,
        },
        {
            "tool_name_match": {"threshold": 0.2},
            "trajectory": {"threshold": 0.2, **ARGS},
            "response_match": {"threshold": 0.1},
            "llm_judge": {"threshold": 0.3},
            "factual_accuracy": {"threshold": 0.6},
            "hallucination": {"threshold": 0.4},
            "safety": {"threshold": 0.5},
        },
    ),
    (
        "custom",
        {"tool_threshold": 1.0, "tool_match_type": "ANY_ORDER", "check_tool_args": False},
        {
            "tool_name_match": {"threshold": 1.0},
            "trajectory": {"threshold": 1.0, "match_type": "ANY_ORDER"},
        },
    ),
    ("default", {}, {"trajectory": {"threshold": 1.0}, "response_match": {"threshold": 0.8}}),
    (
        "strict",
        {},
        {
            "trajectory": {"threshold": 1.0, "check_args": True},
            "response_match": {"threshold": 0.9},
            "llm_judge": {"threshold": 0.9, "num_samples": 5},
        },
    ),
    (
        "relaxed",
        {},
        {
            "trajectory": {"threshold": 0.8, "match_type": "IN_ORDER"},
            "response_match": {"threshold": 0.6},
        },
    ),
]
"""What `EvalPresets` and `EvalConfig` of 10xscale-agentflow 0.10.1 give: the slots in use, and in
each the threshold and what is not the package's default."""
DEFAULTS = {"match_type": "EXACT", "check_args": False, "num_samples": 3, "judge_model": None}
"""The package's, but for the judge, which is one for the whole configuration here."""
UNSAID = {"semantics": "documented", "api_style": "responses", "enabled": True, "partial": False}


@pytest.mark.parametrize(("name", "options", "slots"), AGENTFLOW)
def test_a_preset_of_agentflow_is_what_the_package_gives(
    name: str, options: dict[str, Any], slots: dict[str, dict[str, Any]]
) -> None:
    found = {
        resolve(qualified, "adk"): resolve(qualified, "adk").model_validate(spec)
        for qualified, spec in expanded(name, options).items()
    }
    expected = {resolve(slot, "agentflow"): spec for slot, spec in slots.items()}
    assert found.keys() == expected.keys()
    for model, criterion in found.items():
        whole = criterion.model_dump()
        told = {key: value for key, value in whole.items() if key not in UNSAID}
        if told.get("num_samples", 3) is None:
            told["num_samples"] = DEFAULTS["num_samples"]
        assert told == {key: expected[model].get(key, DEFAULTS.get(key)) for key in told}
        assert expected[model].keys() <= told.keys()
        assert all(whole[key] == value for key, value in UNSAID.items() if key in whole)


def test_ten_presets_are_agentflows() -> None:
    assert {name for name, _, _ in AGENTFLOW} == PRESETS.keys() - {
        "regression",
        "correctness",
        "quality",
        "tool_heavy",
        "high_risk",
    }


RUBRICS = [{"rubric_id": "kind", "rubric_content": {"text_property": "The answer is kind."}}]


@pytest.mark.parametrize(
    ("name", "options", "criteria"),
    [
        ("regression", {}, {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}),
        ("correctness", {}, {"final_response_match_v2": 0.8, "hallucinations_v1": 0.8}),
        (
            "quality",
            {"rubrics": RUBRICS},
            {"rubric_based_final_response_quality_v1": 0.8, "safety_v1": 0.8},
        ),
        (
            "tool_heavy",
            {"rubrics": RUBRICS},
            {"rubric_based_tool_use_quality_v1": 1.0, "tool_trajectory_avg_score": 1.0},
        ),
        ("high_risk", {}, {"hallucinations_v1": 0.8, "safety_v1": 0.8}),
    ],
)
def test_a_preset_for_adk_is_the_combination_that_its_guide_names(
    name: str, options: dict[str, Any], criteria: dict[str, float]
) -> None:
    found = expanded(name, options)
    assert {qualified: spec["threshold"] for qualified, spec in found.items()} == {
        f"adk/{short}": threshold for short, threshold in criteria.items()
    }
    judged = [spec["rubrics"] for spec in found.values() if "rubrics" in spec]
    assert judged == ([RUBRICS] if options else [])


@pytest.mark.parametrize("name", PRESETS)
def test_the_example_of_a_preset_gives_criteria_that_are_sound(name: str) -> None:
    specs = expanded(name, PRESETS[name].example)
    assert specs
    for qualified, spec in specs.items():
        criterion = resolve(qualified, "adk").model_validate(spec)
        assert criterion.type_name == qualified
        assert not criterion.informational


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_and_every_option_of_it_is_described(name: str) -> None:
    model = PRESETS[name]
    assert model.__doc__
    assert [field for field in model.model_fields if not descriptions(model).get(field)] == []


def test_options_are_checked() -> None:
    for name, options in (
        ("quick_check", {"threshold": 1}),
        ("tool_usage", {"threshold": 1.5}),
        ("custom", {"tool_threshold": 1, "tool_match_type": "exact"}),
        ("quality", {}),
        ("tool_heavy", {"rubrics": []}),
    ):
        with pytest.raises(ValidationError):
            expanded(name, options)
    with pytest.raises(UnknownPluginError, match="unknown preset"):
        expanded("regresion", {})
