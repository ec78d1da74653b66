"""What `examples/ci` hands to ci-eval is what ci-eval takes; tests/container runs it."""

import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest

from ci_eval.cli.action import options
from ci_eval.cli.main import command as command_named
from ci_eval.llm.judge_settings import DEFAULT_CASSETTE
from ci_eval.plugins import points
from ci_eval.run_files.file_names import REPORT_FOLDER
from ci_eval.text.yaml_files import parse_yaml

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples/ci"
GUIDE = (ROOT / "docs/gitlab-and-others.md").read_text(encoding="utf-8")
SCRIPT = (EXAMPLES / "docker-run.sh").read_text(encoding="utf-8")


@pytest.fixture
def job() -> Any:
    text = (EXAMPLES / "gitlab-ci.yml").read_text(encoding="utf-8")
    return parse_yaml(text, shown="the template").value["ci-eval"]


def test_the_job_gives_options_that_there_are(job: Any) -> None:
    (line,) = job["script"]
    program, command, *arguments = shlex.split(line)
    assert Path(program).name == "ci-eval"
    run = command_named(command)
    run.make_context("run", [each.replace("$CI_EVAL_CONFIG", "x.yaml") for each in arguments])
    with pytest.raises(click.UsageError):
        run.make_context("run", [*arguments, "--no-such-option"])


def test_the_job_keeps_what_a_run_writes(job: Any) -> None:
    junit = f"{REPORT_FOLDER}/{points.reporter['junit'].file}"
    assert job["artifacts"]["reports"]["junit"] == junit
    assert job["artifacts"]["paths"] == [f"{REPORT_FOLDER}/"]
    assert job["artifacts"]["when"] == "always"
    assert job["cache"]["paths"] == [f"{Path(DEFAULT_CASSETTE).parent}/"]


def test_the_job_runs_where_a_run_is_compared_or_stored(job: Any) -> None:
    assert [rule["if"] for rule in job["rules"]] == [
        '$CI_PIPELINE_SOURCE == "merge_request_event"',
        "$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH",
    ]


@pytest.mark.parametrize("text", [SCRIPT, GUIDE], ids=["the script", "the guide"])
def test_variables_are_inputs_of_the_action(text: str) -> None:
    known = {f"INPUT_{name.upper()}" for name in options("run") | options("publish")}
    named = set(re.findall(r"INPUT_[A-Z-]+", text))
    assert named
    assert named <= known


def test_the_guide_shows_the_command_of_the_script() -> None:
    for part in ("--volume", "--workdir", "--env GITHUB_WORKSPACE", "--env INPUT_CONFIG", "--rm"):
        assert part in GUIDE
        assert part in SCRIPT.replace('"INPUT', "INPUT")


def test_no_key_is_in_the_words_of_a_command() -> None:
    given = re.findall(r"--env \"?(\w+(?:TOKEN|KEY))(\S?)", SCRIPT)
    assert given
    assert all(after != "=" for _, after in given)
