"""The texts that `init` writes are read back as they are meant."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_eval.cli.init.config_text import Draft, config_text, recording_text
from ci_eval.cli.init.drafted_config_check import AskedModel
from ci_eval.cli.init.first_criteria import Scoring
from ci_eval.judges.gemini_judge import Gemini
from ci_eval.llm.judge_settings import JudgeOptions
from ci_eval.records.cases import Content, Invocation
from ci_eval.records.trials import Recording
from ci_eval.text.templates import source
from ci_eval.text.yaml_files import parse_yaml

ANY = st.text(max_size=30)


def read(text: str):
    return parse_yaml(text, shown="draft").value


@given(name=ANY.filter(bool), path=ANY, note=ANY, key=ANY.filter(bool))
def test_any_name_path_and_note_leaves_the_rest_of_the_configuration_alone(name, path, note, key):
    draft = Draft(
        suite=name,
        agent_name=key,
        agent={"recorded": path},
        agent_notes=(note, f"x\n{note}"),
        evalsets={key: path},
        evalset_notes=(note,),
        scoring=Scoring({key: {"threshold": 1.0}}, [note], "agentflow"),
    )

    text = config_text(draft)

    assert read(text) == {
        "version": 1,
        "name": name,
        "dialect": "agentflow",
        "agents": {key: {"recorded": path}},
        "evalsets": {key: path},
        "criteria": {key: {"threshold": 1.0}},
        "run": {"repeats": 1},
        "baseline": {"store": "file", "path": ".ci-eval/baseline.json"},
        "gate": {"mode": "regression"},
    }


def test_notes_stand_above_what_they_are_about_and_their_number_is_bounded():
    notes = [f"Note {number}." for number in range(30)]
    draft = Draft("s", "a", {"recorded": "t"}, (), {"e": "e.json"}, (), Scoring({"c": 1}, notes))

    lines = config_text(draft).splitlines()

    at = lines.index("criteria:")
    assert lines[at + 1] == "  # Note 0."
    assert lines[at + 21 : at + 23] == ["  # … and 10 more.", "  c: 1"]


def test_where_a_model_is_asked_that_is_said_first_with_what_it_needs():
    notes = [f"Note {number}." for number in range(30)]
    asked = (AskedModel("gemini-x", Gemini(), ("c",)),)
    scoring = Scoring({"c": 1}, notes)

    text = config_text(Draft("s", "a", {"recorded": "t"}, (), {"e": "e.json"}, (), scoring, asked))

    lines = text.splitlines()
    at = lines.index("criteria:")
    needed = "  # gemini-x is used by c. It needs GOOGLE_API_KEY or GEMINI_API_KEY."
    assert lines[at + 1] == needed
    assert "`ci-eval plan` estimates the cost" in lines[at + 2]
    assert "`.ci-eval/cache/judge.jsonl`" in text


def test_the_options_of_judges_are_offered_only_where_one_is_asked_and_can_be_taken():
    asked = (AskedModel("gemini-x", Gemini(), ("c",)),)
    without = Draft("s", "a", {"recorded": "t"}, (), {"e": "e.json"}, (), Scoring({"c": 1}))
    text = config_text(replace(without, asked=asked))
    at = text.index("# judge:")

    offered = read(text[at : text.index("\n\n", at)].replace("# ", "", 1).replace("\n# ", "\n"))

    assert "judge:" not in config_text(without)
    assert JudgeOptions.model_validate(offered["judge"]).max_calls == 500


def test_what_the_user_fills_in_refuses_to_answer_until_then():
    namespace: dict = {}
    exec(compile(source("init/any_agent.py.in"), "ci_eval_agent.py", "exec"), namespace)

    with pytest.raises(NotImplementedError, match="call your agent"):
        namespace["answer"]("Hi", [], {})


def test_the_example_has_one_case():
    assert [each["id"] for each in read(source("init/smoke.yaml.in"))["cases"]] == [
        "says-what-it-does"
    ]


def test_a_recording_is_one_conversation_a_line():
    hello = Content.of_text("Hello", role="user")
    two = [Recording(eval_id=name, invocations=(Invocation(user_content=hello),)) for name in "ab"]

    lines = [json.loads(line) for line in recording_text(two).splitlines()]

    assert [each["eval_id"] for each in lines] == ["a", "b"]
    said = [{"user_content": {"role": "user", "parts": [{"text": "Hello"}]}}]
    assert lines[0]["invocations"] == said
