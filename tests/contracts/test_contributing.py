"""Contributors run what CI runs: one list of commands, and one list of versions."""

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import jsonschema_rs  # noqa: TID253  # no command starts with this
import pytest

from ci_eval.text.yaml_files import parse_yaml

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
RUN = (ROOT / ".ci/run").read_text(encoding="utf-8")
TARGETS = dict(re.findall(r"^([a-z]+): ## .+\n\t(.+)$", MAKEFILE, re.MULTILINE))
PARTS = re.findall(r"^    ([a-z]+)\) ", RUN.partition("run_part() {")[2], re.MULTILINE)
CONTAINER = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text(encoding="utf-8"))


def yaml(name: str):
    return parse_yaml((ROOT / name).read_text(encoding="utf-8"), shown=name).value


def test_each_target_is_the_part_of_the_same_name() -> None:
    assert TARGETS.keys() == {"help", "ci", *PARTS}
    assert TARGETS["ci"] == ".ci/run"
    assert {name: TARGETS[name] for name in PARTS} == {name: f".ci/run {name}" for name in PARTS}


def test_the_parts_are_named_where_the_script_says_how_it_is_used() -> None:
    named = RUN.partition("as the Makefile does:\n#")[2].partition("\n#\n")[0]

    assert named.strip().split(", ") == PARTS


def test_the_guide_shows_every_target() -> None:
    guide = (ROOT / ".github/CONTRIBUTING.md").read_text(encoding="utf-8")

    assert re.findall(r"^make (\w+) ", guide, re.MULTILINE) == [
        each for each in TARGETS if each != "help"
    ]


@pytest.mark.skipif(not shutil.which("make"), reason="there is no make")
def test_make_alone_lists_the_targets() -> None:
    done = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True)

    assert [line.split()[0] for line in done.stdout.splitlines()] == list(TARGETS)


def test_a_part_that_there_is_not_is_a_failure() -> None:
    done = subprocess.run(
        [ROOT / ".ci/run", "tset"], capture_output=True, text=True, cwd=ROOT.parent
    )

    assert done.returncode == 1
    assert "FAILED: tset" in done.stdout


def test_ci_leaves_no_test_out() -> None:
    """What is slow is run by CI alone, every time that it runs tests."""
    whole = RUN.partition("run_part() {")
    calls = [
        line
        for text in (whole[0], whole[2].partition("run_everything() {")[2])
        for line in text.splitlines()
        if re.search(r"(bin/pytest|container/run\.sh)\S* ", line) and not line.startswith("#")
    ]
    workflow = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    calls += [line for line in workflow.splitlines() if "bin/pytest" in line]

    assert len(calls) == 5
    assert [line for line in calls if "--slow" not in line] == []


# --- Hooks ----------------------------------------------------------------------------------


def test_the_hooks_run_the_tools_of_the_environment_as_ci_does() -> None:
    """So their versions are those of the environment: no hook has one of its own."""
    repos = yaml(".pre-commit-config.yaml")["repos"]
    hooks = [hook for repo in repos for hook in repo["hooks"]]
    entries = {hook["entry"].replace(" --force-exclude", "") for hook in hooks}

    assert [repo["repo"] for repo in repos] == ["local"]
    assert {hook["language"] for hook in hooks} == {"system"}
    checks = RUN.partition("check_style() {")[2].partition("check_workflows() {")[0]
    checks += RUN.partition("check_all_style() {")[2].partition("\n}")[0]
    ran = re.findall(r"\.venv/bin/(?:ruff \w+(?: --check)?|[\w-]+)", checks)
    assert entries == set(ran)


def test_what_the_project_excludes_the_hooks_leave_alone() -> None:
    hooks = yaml(".pre-commit-config.yaml")["repos"][0]["hooks"]

    given_files = [hook["entry"] for hook in hooks if hook.get("pass_filenames", True)]
    assert all("--force-exclude" in entry for entry in given_files)


# --- The development container ----------------------------------------------------------------


def test_the_development_container_fits_its_published_schema() -> None:
    schema = json.loads((ROOT / "tests/schemas/devContainer.base.schema.json").read_text())

    assert [str(each) for each in jsonschema_rs.iter_errors(schema, CONTAINER)] == []


def test_the_development_container_has_the_versions_of_ci() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    steps = yaml(".github/workflows/ci.yml")["jobs"]["all"]["steps"]
    given = {key: value for step in steps for key, value in step.get("with", {}).items()}
    (node,) = [each for name, each in CONTAINER["features"].items() if "/node:" in name]

    assert f"python:1-{given['python-version']}-" in CONTAINER["image"]
    assert project["requires-python"] == f">={given['python-version']}"
    assert node["version"] == given["node-version"]
    assert CONTAINER["postCreateCommand"] == "make setup"
