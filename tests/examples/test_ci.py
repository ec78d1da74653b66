"""What `examples/ci` hands to ci-eval is what ci-eval takes; tests/container runs it."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from support.git_repositories import ENV
from support.git_suites import Suite

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


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    suite = Suite(tmp_path / "shop")
    suite.begin(12)
    return suite


def in_shell(suite: Suite, *lines: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run lines of a script as a job does, with this ci-eval."""
    program = suite.folder.parent / "bin/ci-eval"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m ci_eval "$@"\n')
    program.chmod(0o755)
    given = ENV | {"PATH": f"{program.parent}:{os.environ['PATH']}"} | env
    return subprocess.run(
        ["sh", "-ec", "\n".join(lines)],
        cwd=suite.folder,
        env=given,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_shards_of_gitlab_are_merged(suite: Suite) -> None:
    text = (EXAMPLES / "gitlab-shards.yml").read_text(encoding="utf-8")
    jobs = parse_yaml(text, shown="the template").value
    shards, merge = jobs["ci-eval-shards"], jobs["ci-eval"]
    total = shards["parallel"]
    for number in range(1, total + 1):
        env = {"CI_NODE_INDEX": str(number), "CI_NODE_TOTAL": str(total)}
        done = in_shell(suite, *shards["script"], **env, CI_EVAL_CONFIG="ci-eval.yaml")
        assert done.returncode == 0, done.stderr
    assert (suite.folder / shards["artifacts"]["paths"][0] / f"{total}/shard.json").exists()

    done = in_shell(suite, *merge["script"], CI_EVAL_CONFIG="ci-eval.yaml")

    assert done.returncode == 0, done.stderr
    assert "merging 4 of 4 shards" in done.stderr
    assert (suite.folder / merge["artifacts"]["reports"]["junit"]).exists()


@pytest.mark.slow
def test_the_shards_of_kubernetes_are_merged(suite: Suite) -> None:
    text = (EXAMPLES / "kubernetes-shards.yaml").read_text(encoding="utf-8")
    shards, merge = (parse_yaml(each, shown="Job").value["spec"] for each in text.split("---\n"))
    (container,) = shards["template"]["spec"]["containers"]
    env = {each["name"]: each["value"] for each in container["env"]}
    assert env["CI_EVAL_SHARDS"] == str(shards["completions"])
    for number in range(shards["completions"]):
        # Kubernetes replaces $(NAME) in a command by the variable.
        given = env | {"JOB_COMPLETION_INDEX": str(number)}
        words = [
            word.replace("$(JOB_COMPLETION_INDEX)", str(number)) for word in container["command"]
        ]
        done = in_shell(suite, shlex.join(words), **given)
        assert done.returncode == 0, done.stderr

    (container,) = merge["template"]["spec"]["containers"]
    done = in_shell(suite, shlex.join(container["command"]))

    assert done.returncode == 0, done.stderr
    assert "merging 4 of 4 shards" in done.stderr


def test_no_key_is_in_the_words_of_a_command() -> None:
    given = re.findall(r"--env \"?(\w+(?:TOKEN|KEY))(\S?)", SCRIPT)
    assert given
    assert all(after != "=" for _, after in given)
