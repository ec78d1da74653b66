"""The criteria that cases can be scored by, and why the others are left out."""

import pytest
from support.project import GREETS, REFUNDS, case, turn

from ci_eval.cli.init.first_criteria import (
    QUESTIONS,
    Scoring,
    Wanted,
    of_eval_config,
    suited,
    usual,
    wanted,
    without_refused,
    written_out,
)
from ci_eval.records.errors import Problem

SILENT = case("silent", {"user_content": {"parts": [{"text": "Hi"}]}})


def evalset(*cases):
    return {"eval_set_id": "s", "eval_cases": list(cases)}


@pytest.fixture
def scored(repository):
    def scoring(*cases, given: Wanted | None = None) -> Scoring:
        found = repository({"a.evalset.json": evalset(*cases)})
        return suited(given or usual(), found.evalsets, None)

    return scoring


def test_criteria_are_written_out_with_thresholds_to_change(scored):
    found = scored(GREETS, REFUNDS)

    assert found.criteria == {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}
    assert found.notes == []


def test_tools_are_scored_only_where_some_case_expects_a_call(scored):
    found = scored(GREETS)

    assert found.criteria == {"response_match_score": 0.8}
    assert found.notes == ["Left out: tool_trajectory_avg_score: no case expects a tool call."]


def test_responses_are_scored_only_where_some_case_expects_one(scored):
    found = scored(SILENT)

    assert found.criteria == {}
    assert found.notes[1] == "Left out: response_match_score: no case expects a response."


def test_where_some_cases_expect_no_response_these_are_left_out_and_not_given_0(scored):
    found = scored(GREETS, SILENT)

    assert found.criteria == {"rouge_match": 0.8}
    assert "skips cases that expect none" in found.notes[1]


def test_a_call_that_is_expected_by_name_may_have_any_arguments(repository):
    found = repository(
        {"evals/a.yaml": "cases: [{prompt: Hi, expected: Yo, expected_tools: [look]}]"}
    )

    scoring = suited(usual(), found.evalsets, None)

    expected = {"threshold": 1.0, "missing_args": "any"}
    assert scoring.criteria["tool_trajectory_avg_score"] == expected


def test_what_cases_assert_and_the_nodes_they_expect_are_scored(repository):
    text = "cases: [{prompt: Hi, expected_nodes: [a], assert: [{contains: x}]}]"
    found = repository({"evals/a.yaml": text})

    scoring = suited(usual(), found.evalsets, None)

    assert scoring.criteria == {"node_order_match_score": 1.0, "ci/assertions": 1.0}


def test_a_criterion_with_rubrics_gets_one_to_change(scored):
    found = scored(REFUNDS, given=wanted([*QUESTIONS][4:6]))

    assert found.criteria["rubric_based_final_response_quality_v1"]["threshold"] == 0.8
    assert found.criteria["rubric_based_tool_use_quality_v1"]["rubrics"]
    assert found.notes == ["The rubrics are examples: replace them with your own."]


def test_a_criterion_of_agentflow_keeps_its_prefix_where_adk_means_something_else(scored):
    found = scored(REFUNDS, given=wanted([], ["tool_usage"]))

    assert found.criteria["tool_name_match_score"] == 1.0
    assert "agentflow/tool_trajectory_avg_score" in found.criteria


def of_file(repository, text, *, dialect=None):
    found = repository({"eval_config.json": text})
    return found.root, of_eval_config(found.root, "eval_config.json", dialect)


def test_an_eval_config_is_used_as_a_whole_where_it_can_be(repository):
    _, found = of_file(repository, {"criteria": {"response_match_score": 0.5}})

    assert (found.criteria, found.dialect) == ({"from": "eval_config.json"}, None)


def test_an_eval_config_that_may_be_of_two_tools_gets_a_dialect(repository):
    text = {"criteria": {"tool_trajectory_avg_score": {"threshold": 1, "match_type": "EXACT"}}}

    assert of_file(repository, text)[1].dialect == "adk"
    assert of_file(repository, text, dialect="agentflow")[1].dialect == "agentflow"


def test_what_an_eval_config_says_and_nothing_reads_is_said(repository):
    _, found = of_file(repository, {"criteria": {"unheard_of": 1, "response_match_score": 0.5}})

    assert found.criteria == {"response_match_score": 0.5}
    assert found.notes[0] == "From eval_config.json, as far as applicable."
    assert found.notes[1].startswith("Left out: unheard_of: unknown criterion")


def test_options_are_written_out_as_the_eval_config_has_them(repository):
    options = {"threshold": 0.9, "matchType": "IN_ORDER", "ignoreArgs": True}
    root, _ = of_file(repository, {"criteria": {"tool_trajectory_avg_score": options}})

    found = written_out(root, "eval_config.json", None)

    expected = {"threshold": 0.9, "match_type": "IN_ORDER", "ignore_args": True}
    assert found.criteria == {"tool_trajectory_avg_score": expected}


def test_what_the_planner_refuses_is_left_out_and_said():
    scoring = Scoring({"a": 1, "ab": 2, "c": 3}, ["First."])
    errors = [
        Problem("asks a model", where="criteria.a"),
        Problem("too high", where="criteria.c.threshold"),
    ]

    found = without_refused(scoring, errors)

    assert found == Scoring(
        {"ab": 2}, ["First.", "Left out: a: asks a model.", "Left out: c: too high."]
    )


def test_errors_about_something_else_are_not_mended():
    assert without_refused(Scoring({"a": 1}), [Problem("gone", where="agents.a")]) is None


def test_turns_without_words_count_as_no_response(scored):
    half = case("half", turn("Hi", "Hello"), turn("Bye", ""))

    assert list(scored(half).criteria) == ["rouge_match"]


def test_metrics_of_the_users_own_code_keep_their_names_when_they_are_written_out(repository):
    entries = {name: {"code_config": {"name": f"shop.{name}"}} for name in ("kind", "brief")}
    config = {
        "criteria": {"kind": {"threshold": 0.5, "words": ["dear"]}, "brief": 1, "unheard_of": 1},
        "custom_metrics": entries,
    }
    found = repository({"test_config.json": config})

    scoring = written_out(found.root, "test_config.json", None)

    assert scoring.criteria == {
        "kind": {
            "use": "adk/custom_metric",
            "threshold": 0.5,
            "code": "shop.kind",
            "criterion": {"words": ["dear"]},
            "metric_name": "kind",
        },
        "brief": {
            "use": "adk/custom_metric",
            "threshold": 1.0,
            "code": "shop.brief",
            "metric_name": "brief",
        },
    }
    assert scoring.notes[1].startswith("Left out: unheard_of: unknown criterion")
