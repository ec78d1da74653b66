"""What the configuration says can be run, whatever the repository has."""

import json
import sys
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.project import CASES, GREETS, case, turn

from ci_eval.cli.init.config_text import Draft, config_text
from ci_eval.cli.init.drafted_config_check import try_out
from ci_eval.cli.init.first_agent import Candidate, candidates
from ci_eval.cli.init.first_config import decide
from ci_eval.cli.init.first_criteria import QUESTIONS, Wanted, usual, wanted
from ci_eval.cli.init.repository_survey import survey
from ci_eval.config.load_config import load
from ci_eval.records.errors import UsageError
from ci_eval.run.plan import plan


def evalset(*cases):
    return {"eval_set_id": "s", "eval_cases": list(cases)}


@pytest.fixture
def decided(repository, context):
    """Decide on the first agent that is offered."""

    def draft(files, given: Wanted | None = None) -> Draft:
        found = repository(files)
        return decide(found, next(candidates(found, context)), given, context)

    return draft


def test_evalsets_become_patterns_that_read_new_ones(decided):
    files = {f"{name}.test.json": evalset(GREETS) for name in ("evals/a", "evals/b", "shop/c")}
    files |= {"evals/d.evalset.json": evalset(GREETS), "evals/e.json": evalset(GREETS)}
    files["evals/f.csv"] = "prompt,expected\nHi,Hello\n"

    assert decided(files).evalsets == {
        "evals": "evals/*.evalset.json",
        "evals-2": "evals/*.test.json",
        "evals-3": "evals/*.csv",
        "shop": "shop/*.test.json",
        "e": "evals/e.json",
    }


def test_no_pattern_takes_an_evalset_along_that_cannot_be_read(decided):
    files = {f"evals/{name}.test.json": evalset(GREETS) for name in "abc"}

    draft = decided({**files, "evals/broken.test.json": "{"})

    assert sorted(draft.evalsets.values()) == sorted(files)
    assert draft.evalset_notes[0].startswith("Cannot be read: evals/broken.test.json:1:")


def test_a_file_that_is_called_like_a_pattern_keeps_its_folder_from_becoming_one(decided):
    files = {f"evals/{name}.test.json": evalset(GREETS) for name in "*ab"}

    assert sorted(decided(files).evalsets.values()) == sorted(files)


def test_a_recording_is_replayed_on_files_by_name(decided):
    files = {f"{name}.test.json": evalset(GREETS) for name in "abc"}
    files["t.jsonl"] = '{"eval_id": "greets", "invocations": []}\n'

    assert list(decided(files).evalsets) == ["a", "b", "c"]


def test_a_pattern_takes_no_name_of_another_evalset(decided):
    files = {f"evals/{name}.test.json": evalset(GREETS) for name in "abc"}

    draft = decided({**files, "evals.json": evalset(GREETS)})

    assert draft.evalsets == {"evals-2": "evals/*.test.json", "evals": "evals.json"}


def test_the_eval_config_nearest_to_the_evalsets_is_used(decided):
    files = {
        "a/test_config.json": {"criteria": {"response_match_score": 0.1}},
        "b/eval/test_config.json": {"criteria": {"response_match_score": 0.2}},
        "b/eval/sets/s.evalset.json": evalset(GREETS),
    }

    draft = decided(files)

    assert draft.scoring.criteria == {"from": "b/eval/test_config.json"}
    assert draft.scoring.notes == ["Another eval config, not used: a/test_config.json."]


def test_what_is_wanted_goes_before_an_eval_config(decided):
    files = {
        "test_config.json": {"criteria": {"response_match_score": 0.1}},
        "s.evalset.json": evalset(*CASES),
    }

    assert decided(files, usual()).scoring.criteria["response_match_score"] == 0.8


def test_criteria_that_ask_a_model_are_kept_and_the_model_is_known(decided):
    criteria = {"final_response_match_v2": 0.8, "response_match_score": 0.5}
    files = {"test_config.json": {"criteria": criteria}, "s.evalset.json": evalset(*CASES)}

    draft = decided(files)

    assert draft.scoring.criteria == {"from": "test_config.json"}
    (model,) = draft.asked
    assert (model.name, model.criteria) == ("gemini-2.5-flash", ("final_response_match_v2",))


def test_a_criterion_of_a_service_that_is_not_set_up_is_left_out_and_the_others_are_kept(decided):
    options = {"threshold": 0.8, "judgeModelOptions": {"judgeModel": "gpt-4o", "numSamples": 3}}
    criteria = {"safety_v1": 0.8, "response_match_score": 0.5, "final_response_match_v2": options}
    files = {"test_config.json": {"criteria": criteria}, "s.evalset.json": evalset(*CASES)}

    draft = decided(files)

    assert draft.scoring.criteria == {
        "response_match_score": 0.5,
        "final_response_match_v2": {
            "threshold": 0.8,
            "judge_model_options": {"judge_model": "gpt-4o", "num_samples": 3},
        },
    }
    assert any(
        each.startswith("Left out: safety_v1: needs the service 'vertex', which lacks ")
        for each in draft.scoring.notes
    )
    assert [each.name for each in draft.asked] == ["gpt-4o"]


def test_a_model_that_nobody_is_known_to_have_is_left_out_with_the_way_to_name_one(decided):
    options = {"threshold": 0.8, "judge_model_options": {"judge_model": "claude-x"}}
    criteria = {"final_response_match_v2": options, "response_match_score": 0.5}
    files = {"test_config.json": {"criteria": criteria}, "s.evalset.json": evalset(*CASES)}

    draft = decided(files)

    assert list(draft.scoring.criteria) == ["response_match_score"]
    (why,) = [each for each in draft.scoring.notes if "Left out" in each]
    assert "cannot infer the provider of model 'claude-x'; set `judge: {provider: …}`" in why


def test_where_nothing_of_what_is_wanted_is_left_the_cases_decide(decided):
    files = {
        "test_config.json": {"criteria": {"safety_v1": 0.8}},
        "s.evalset.json": evalset(*CASES),
    }

    scoring = decided(files).scoring

    assert list(scoring.criteria) == ["tool_trajectory_avg_score", "response_match_score"]
    assert sum("Left out" in each for each in scoring.notes) == 1


def test_what_needs_a_model_is_kept(decided):
    questions = [*QUESTIONS]
    given = wanted([questions[3], questions[6]])
    draft = decided({"s.evalset.json": evalset(*CASES)}, given)

    assert draft.scoring.criteria == {"final_response_match_v2": 0.8, "hallucinations_v1": 0.8}
    assert [each.criteria for each in draft.asked] == [
        ("final_response_match_v2", "hallucinations_v1")
    ]


def test_where_cases_expect_nothing_only_an_answer_is_asked_for(decided):
    scoring = decided({"evals/a.csv": "prompt\nHello\n"}).scoring

    assert scoring.criteria["says_something"]["use"] == "ci/regex"


def test_an_evalset_that_the_planner_refuses_is_left_out_with_the_reason(decided):
    files = {
        "evals/good.yaml": "cases: [{prompt: Hi, expected: Hello}]",
        "evals/odd.yaml": "cases: [{prompt: Hi, assert: [{regexp: x}]}]",
    }

    draft = decided(files)

    assert draft.evalsets == {"good": "evals/good.yaml"}
    (why,) = draft.evalset_notes
    assert why.startswith("Left out: evals/odd.yaml:1:")


def test_what_cannot_be_mended_is_an_error(repository, context):
    found = repository({"s.evalset.json": evalset(GREETS)})
    gone = Candidate("a recording", ("s.evalset.json",), recording="gone.jsonl")

    with pytest.raises(UsageError, match=r"gone\.jsonl"):
        decide(found, gone, None, context)


@pytest.mark.parametrize("code", ["shop/agent.py", "bot.py", "other.py"])
def test_an_agent_gets_the_interpreter_of_the_repository(decided, tmp_path, code):
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/python").symlink_to(sys.executable)
    text = "root_agent = 1\ndef answer(message): ..."

    draft = decided({"s.evalset.json": evalset(GREETS), code: text})

    assert draft.agent["interpreter"] == ".venv/bin/python"


def test_an_agent_of_adk_is_named_by_its_folder_and_gets_its_keys(decided):
    draft = decided({"s.evalset.json": evalset(GREETS), "shop/agent.py": "root_agent = 1"})

    assert draft.agent_name == "shop"
    assert draft.agent["adk"] == "shop"
    assert "GOOGLE_API_KEY" in draft.agent["env"]
    assert draft.agent_notes[0].startswith("This is the ADK agent in shop. It gets ")


@pytest.mark.parametrize(
    ("kind", "code", "keys"),
    [
        ("openai_agents", "from agents import Agent\nagent = Agent(name='x')", 1),
        ("pydantic_ai", "from pydantic_ai import Agent\nagent = Agent('test')", 4),
        ("langgraph", "import langgraph\nagent = builder.compile()", 4),
    ],
)
def test_an_agent_of_another_framework_is_named_by_its_object(decided, kind, code, keys):
    draft = decided({"s.evalset.json": evalset(GREETS), "desk.py": code})

    assert (draft.agent_name, draft.agent[kind]) == ("desk", "desk:agent")
    assert len(draft.agent["env"]) == keys


def test_a_function_is_called_as_it_is(decided):
    files = {"s.evalset.json": evalset(GREETS), "bot.py": "def ask(question): ..."}

    draft = decided(files)

    assert (draft.agent_name, draft.agent) == ("bot", {"python": "bot:ask"})


def test_other_agents_and_frameworks_are_named(decided):
    files = {
        "s.evalset.json": evalset(GREETS),
        "a/agent.py": "root_agent = 1",
        "b/agent.py": "import crewai\nroot_agent = 1",
    }

    notes = decided(files).agent_notes

    assert "Also found: the ADK agent in b." in notes
    assert "Found CrewAI in b/agent.py: ci_eval_agent.py can call it." in notes


TEXTS = st.text(st.characters(exclude_categories=["C"]), max_size=8)
CASE = st.builds(
    lambda number, asked, answered, calls: case(
        f"c{number}", turn(asked or "?", answered, *((name, {}) for name in calls))
    ),
    st.integers(0, 10**6),
    TEXTS,
    TEXTS,
    st.lists(st.sampled_from(["look", "book"]), max_size=2),
)
NAMES = st.text(st.sampled_from("aé'\"[]*?#:{}&!%@ -.\\"), min_size=1, max_size=8).filter(
    lambda name: name.strip(". ") and not name.startswith(".")
)


@pytest.mark.slow
@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    sets=st.dictionaries(
        NAMES,
        st.lists(CASE, min_size=1, max_size=3, unique_by=lambda c: c["eval_id"]),
        min_size=1,
        max_size=4,
    ),
    questions=st.none() | st.sets(st.sampled_from([*QUESTIONS]), min_size=1),
)
def test_whatever_files_are_called_and_cases_expect_the_configuration_can_be_planned(
    sets, questions, tmp_path_factory, context
):
    root = tmp_path_factory.mktemp("repository")
    for name, cases in sets.items():
        (root / f"{name}.evalset.json").write_text(json.dumps(evalset(*cases)))
    context = replace(context, root=root)
    found = survey(root)

    given = None if questions is None else wanted(questions)
    draft = decide(found, next(candidates(found, context)), given, context)

    (root / "ci-eval.yaml").write_text(config_text(draft))
    planned = plan(load(root / "ci-eval.yaml", shown="ci-eval.yaml", context=context), context)
    assert planned.count == sum(map(len, sets.values()))
    assert try_out(config_text(draft), context) == ((), draft.asked)
