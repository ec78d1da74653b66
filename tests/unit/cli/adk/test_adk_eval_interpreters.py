"""The Python of an agent of ADK is found where users have it."""

import os
from pathlib import Path

import pytest
from support.git_repositories import git_init

from ci_eval.cli.adk.adk_eval_options import interpreter_of
from ci_eval.runtime.context import RunContext


@pytest.fixture
def agent(tmp_path) -> Path:
    """The folder of an agent in a repository."""
    git_init(tmp_path / "repo")
    folder = tmp_path / "repo/agents/shop"
    folder.mkdir(parents=True)
    return folder


def program(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def found(agent: Path, *path: Path) -> str | None:
    env = {"PATH": os.pathsep.join(map(str, path))}
    return interpreter_of(agent, RunContext(env=env, root=agent, now=lambda: 0.0))


@pytest.mark.parametrize("folder", ["agents/shop", "agents", "."])
def test_the_nearest_environment_above_the_agent_is_its_own(agent, tmp_path, folder):
    own = program(tmp_path / "repo" / folder / ".venv/bin/python")
    program(tmp_path / ".venv/bin/python")
    beside = program(tmp_path / "other/bin/adk")
    program(tmp_path / "other/bin/python")

    assert found(agent, beside.parent) == str(own)


def test_what_lies_outside_of_the_repository_is_not_its_own(agent, tmp_path):
    program(tmp_path / ".venv/bin/python")

    assert found(agent) is None


def test_outside_of_a_repository_the_folder_where_one_stands_is_the_last(tmp_path):
    (tmp_path / "agents/shop").mkdir(parents=True)
    own = program(tmp_path / ".venv/bin/python")
    context = RunContext(env={"PATH": ""}, root=tmp_path, now=lambda: 0.0)

    assert interpreter_of(tmp_path / "agents/shop", context) == str(own)
    assert (
        interpreter_of(tmp_path / "agents/shop", RunContext({}, tmp_path / "agents", time)) is None
    )


def time() -> float:
    return 0.0


def test_a_file_that_cannot_be_run_is_no_interpreter(agent):
    program(agent / ".venv/bin/python").chmod(0o644)

    assert found(agent) is None


def test_else_it_is_the_one_beside_the_command_adk(agent, tmp_path):
    command = program(tmp_path / "tools/bin/adk")
    beside = program(tmp_path / "tools/bin/python")
    (tmp_path / "links").mkdir()
    (tmp_path / "links/adk").symlink_to(command)

    assert found(agent, tmp_path / "tools/bin") == str(beside)
    assert found(agent, tmp_path / "links") == str(beside)


def test_or_the_one_that_the_command_adk_names(agent, tmp_path):
    named = program(tmp_path / "python3.12")
    program(tmp_path / "user/bin/adk", f"#!{named}\nimport sys\n")

    assert found(agent, tmp_path / "user/bin") == str(named)


@pytest.mark.parametrize(
    "text", ["", "#!/bin/sh\n", "#!/nowhere/python3\n", "#!/usr/bin/env python3\n", "\0" * 2000]
)
def test_a_command_that_names_no_python_tells_nothing(agent, tmp_path, text):
    program(tmp_path / "user/bin/adk", text)

    assert found(agent, tmp_path / "user/bin") is None
