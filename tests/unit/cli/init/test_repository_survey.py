"""What a repository has is found by its files, within bounds."""

import json
import os

import pytest
from support.project import CASES, GREETS, REFUNDS

from ci_eval.cli.init import repository_survey
from ci_eval.cli.init.repository_survey import (
    environment_of,
    required_packages,
    survey,
    with_evalset,
)

EVALSET = json.dumps({"eval_set_id": "s", "eval_cases": list(CASES)})
LINE = json.dumps({"eval_id": "greets", "invocations": GREETS["conversation"]}) + "\n"
CONFIG = '{"criteria": {"response_match_score": 0.5}}'


@pytest.fixture
def look(tmp_path):
    """Write files, and look at what there is."""

    def write_and_look(**files: str) -> repository_survey.Survey:
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return survey(tmp_path)

    return write_and_look


def evalsets(found: repository_survey.Survey) -> list[str]:
    return [each.path for each in found.evalsets]


def test_evalsets_are_found_by_their_endings_and_where_evals_are_kept(look):
    files = {
        "a/smoke.evalset.json": EVALSET,
        "b/old.test.json": EVALSET,
        "tests/eval/datasets/c.json": EVALSET,
        "evals/d.yaml": "cases:\n- {prompt: Hi, expected: Hello}\n",
        "evals/e.csv": "prompt,expected\nHi,Hello\n",
        "evals/f.jsonl": '{"prompt": "Hi", "expected": "Hello"}\n',
        "my_eval_data.json": EVALSET,
    }

    found = look(**files)

    assert evalsets(found) == sorted(files, key=lambda each: (each != "my_eval_data.json", each))
    assert found.unreadable == ()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("data/other.json", EVALSET),
        ("evals/notes.yaml", "just: text\n"),
        ("evals/empty.evalset.json", '{"eval_set_id": "s", "eval_cases": []}'),
        ("evals/package.json", "{}"),
        ("evals/broken.json", "{"),
        ("medieval/castles.yaml", "cases: [{prompt: Hi}]\n"),
    ],
)
def test_what_is_no_evalset_is_left(look, name, text):
    found = look(**{name: text})

    assert (evalsets(found), found.unreadable) == ([], ())


def test_a_broken_evalset_is_named_with_its_line(look):
    found = look(**{"a.evalset.json": '{"eval_set_id": "s",\n"eval_cases": [\n{"eval_id": 7}]}'})

    assert evalsets(found) == []
    (problem,) = found.unreadable
    assert (problem.file, problem.line) == ("a.evalset.json", 3)


@pytest.mark.parametrize(
    "folder", [".git", "node_modules", ".venv", "a/__pycache__", "x/site-packages", ".cache"]
)
def test_what_is_fetched_or_made_is_not_searched(look, folder):
    found = look(
        **{f"{folder}/evals/a.evalset.json": EVALSET, f"{folder}/a/agent.py": "root_agent = 1"}
    )

    assert (evalsets(found), found.sources.agents) == ([], ())


def test_an_environment_of_any_name_is_not_searched(look):
    assert evalsets(look(**{"py/pyvenv.cfg": "", "py/evals/a.evalset.json": EVALSET})) == []


def test_links_are_not_followed(look, tmp_path):
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (outside / "a.evalset.json").write_text(EVALSET)
    (tmp_path / "linked").symlink_to(outside)
    (tmp_path / "b.evalset.json").symlink_to(outside / "a.evalset.json")
    (tmp_path / "round").symlink_to(tmp_path)

    assert evalsets(look(**{"c.evalset.json": EVALSET})) == ["c.evalset.json"]


def test_a_name_with_a_line_in_it_is_left(look):
    assert evalsets(look(**{"a\n# b.evalset.json": EVALSET})) == []


def test_depth_and_number_of_files_are_bounded_and_it_is_said(look, monkeypatch):
    monkeypatch.setattr(repository_survey, "MAX_DEPTH", 2)
    deep = look(**{"a/b/x.evalset.json": EVALSET, "a/b/c/y.evalset.json": EVALSET})
    assert (evalsets(deep), deep.cut_off) == (["a/b/x.evalset.json"], True)

    monkeypatch.setattr(repository_survey, "MAX_FILES", 1)
    many = look(**{"a.evalset.json": EVALSET, "b.evalset.json": EVALSET})
    assert (evalsets(many), many.cut_off) == (["a.evalset.json"], True)


def test_a_huge_file_is_not_looked_into(look, monkeypatch):
    monkeypatch.setattr(repository_survey, "MAX_SIZE", 10)

    assert evalsets(look(**{"a.evalset.json": EVALSET})) == []


def test_recordings_are_found_the_newest_first(look, tmp_path):
    result = {"eval_case_results": [{"eval_id": "greets", "eval_metric_result_per_invocation": []}]}
    names = {
        "old.jsonl": LINE,
        "shop/.adk/eval_history/new.evalset_result.json": json.dumps(result),
    }
    look(**names, **{"notes.jsonl": '{"a": 1}\n', "ci-eval-report/traces.jsonl": LINE})
    os.utime(tmp_path / "old.jsonl", (1, 1))

    assert survey(tmp_path).recordings == (
        "shop/.adk/eval_history/new.evalset_result.json",
        "old.jsonl",
    )


def test_an_evalset_is_not_taken_for_a_recording(look):
    found = look(**{"evals/trace.jsonl": '{"prompt": "Hi", "expected": "Hello"}\n'})

    assert (evalsets(found), found.recordings) == (["evals/trace.jsonl"], ())


def test_eval_configs_are_those_that_name_criteria(look):
    found = look(
        **{
            "test_config.json": CONFIG,
            "a/eval_config.json": '{"criteria": {"unheard_of": 1}}',
            "b/test_config.json": '{"database": "sqlite"}',
            "c/test_config.json": "{",
        }
    )

    assert found.eval_configs == ("test_config.json", "a/eval_config.json")
    assert [each.file for each in found.unreadable] == ["c/test_config.json"]


def test_the_interpreter_and_the_requirements_are_found(look, tmp_path):
    look(**{".venv/bin/python": "", "pyproject.toml": ""})
    assert environment_of(tmp_path, "") == ""
    assert required_packages(tmp_path, "") == "-e ."

    (tmp_path / ".venv/bin/python").chmod(0o755)
    assert environment_of(tmp_path, "agents/shop") == ".venv"


def test_an_evalset_that_was_just_written_is_added(look, tmp_path):
    found = look()
    (tmp_path / "s.evalset.json").write_text(
        json.dumps({"eval_set_id": "s", "eval_cases": [REFUNDS]})
    )

    added = with_evalset(found, "s.evalset.json")

    assert [each.opened.facts.cases for each in added.evalsets] == [1]
