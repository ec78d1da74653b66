"""What a drafted configuration asks of models, and what keeps it from being run."""

from dataclasses import replace

import pytest
from support.project import CASES, GREETS

from ci_eval.cli.init.drafted_config_check import AskedModel, Tried, try_out
from ci_eval.judges.gemini_judge import Gemini

SET_UP = {"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "l"}


@pytest.fixture
def tried(repository, context):
    """Try the configuration with some criteria, in an environment."""

    def made(criteria: str, *cases, **env: str) -> Tried:
        evalset = {"eval_set_id": "s", "eval_cases": list(cases or CASES)}
        repository({"s.evalset.json": evalset, "t.jsonl": ""})
        head = "agents: {a: {recorded: t.jsonl}}\nevalsets: {s: s.evalset.json}\n"
        return try_out(f"{head}criteria: {criteria}\n", replace(context, env=env))

    return made


def test_criteria_that_ask_the_same_model_stand_together(tried):
    found = tried(
        "{final_response_match_v2: 0.8, response_match_score: 0.8, hallucinations_v1: 0.8,"
        " o: {use: agentflow/llm_judge, threshold: 0.5, judge_model: gpt-4o}}"
    )

    assert found.errors == ()
    assert {each.name: each.criteria for each in found.asked} == {
        "gemini-2.5-flash": ("final_response_match_v2", "hallucinations_v1"),
        "gpt-4o": ("o",),
    }
    assert {each.name: each.judge.type_name for each in found.asked} == {
        "gemini-2.5-flash": "gemini",
        "gpt-4o": "openai",
    }


def test_where_no_criterion_asks_no_model_is_named(tried):
    assert tried("{response_match_score: 0.8}") == Tried()


def test_an_error_is_told_as_it_would_be_later(tried):
    (error,) = tried("{unheard_of: 1}").errors

    assert str(error).startswith("ci-eval.yaml:3: criteria.unheard_of: unknown criterion")


def test_a_service_that_is_not_set_up_is_an_error_for_its_criterion(tried, monkeypatch):
    monkeypatch.setattr("ci_eval.judges.vertex_judge._module", lambda: "vertexai")

    (error,) = tried("{safety_v1: 0.8, response_match_score: 0.8}", GREETS).errors

    assert error.where == "criteria.safety_v1"
    assert "'vertex', which lacks GOOGLE_CLOUD_PROJECT and" in error.message


def test_a_service_that_is_set_up_is_asked(tried, monkeypatch):
    monkeypatch.setattr("ci_eval.judges.vertex_judge._module", lambda: "vertexai")

    (model,) = tried("{safety_v1: 0.8}", GREETS, **SET_UP).asked

    assert (model.name, model.criteria) == ("vertex", ("safety_v1",))


def test_what_is_needed_is_said_until_it_is_there():
    model = AskedModel("gemini-x", Gemini(), ("a", "b"))

    needed = "It needs GOOGLE_API_KEY or GEMINI_API_KEY."
    assert model.told({}) == f"gemini-x is used by a, b. {needed}"
    assert model.told({"GEMINI_API_KEY": "k"}) == "gemini-x is used by a, b."


def test_of_many_criteria_the_first_are_named():
    model = AskedModel("gemini-x", Gemini(), tuple("abcdefg"))

    assert "a, b, c, d, e and 2 more." in model.told({})
