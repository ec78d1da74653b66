"""What agents get of our environment, and how their programs are found."""

from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

from ci_eval.runtime.context import RunContext
from ci_eval.runtime.environments import Declared, agent_environment, find_program, refused

JOB = {
    "PATH": "/bin",
    "LC_ALL": "C.UTF-8",
    "https_proxy": "http://proxy",
    "OPENAI_API_KEY": "sk",
    "LANGFUSE_HOST": "h",
    "LANGFUSE_KEY": "k",
    "GITHUB_TOKEN": "ghs",
    "GITHUB_OUTPUT": "/out",
    "GITHUB_SHA": "abc",
    "GH_TOKEN": "gho",
    "ACTIONS_RUNTIME_TOKEN": "t",
    "INPUT_GITHUB-TOKEN": "ghs",
    "RUNNER_TEMP": "/tmp",
}


class Holder(BaseModel):
    env: Declared = {}


def environment(declared: object) -> dict[str, str]:
    context = RunContext(env=JOB, root=Path(), now=lambda: 0.0)
    return agent_environment(context, Holder.model_validate({"env": declared}).env)


USUAL = {"PATH": "/bin", "LC_ALL": "C.UTF-8", "https_proxy": "http://proxy"}


@pytest.mark.parametrize(
    ("declared", "more"),
    [
        ([], {}),
        (["OPENAI_API_KEY", "NOT_SET"], {"OPENAI_API_KEY": "sk"}),
        (["LANGFUSE_*"], {"LANGFUSE_HOST": "h", "LANGFUSE_KEY": "k"}),
        ({"MODEL": "small", "OPENAI_API_KEY": None}, {"MODEL": "small", "OPENAI_API_KEY": "sk"}),
        ({"PATH": "/opt"}, {"PATH": "/opt"}),
        (["G*", "*_TOKEN", "RUNNER_*", "INPUT_*", "ACTIONS_*"], {}),
        (["GITHUB_SHA", "GH_TOKEN"], {"GITHUB_SHA": "abc", "GH_TOKEN": "gho"}),
        (["GITHUB_TOKEN", "GITHUB_OUTPUT", "ACTIONS_RUNTIME_TOKEN", "INPUT_GITHUB-TOKEN"], {}),
    ],
)
def test_an_agent_gets_the_usual_and_what_is_declared_and_never_the_job(
    declared: object, more: dict[str, str]
) -> None:
    assert environment(declared) == {**USUAL, **more}


def test_everything_is_not_all() -> None:
    assert set(environment(["*"])) == {*USUAL, "OPENAI_API_KEY", "LANGFUSE_HOST", "LANGFUSE_KEY"}


@pytest.mark.parametrize(
    "name", ["GITHUB_TOKEN", "github_token", "ACTIONS_X", "INPUT_X", "GITHUB_ENV", "GITHUB_PATH"]
)
def test_asking_for_the_job_is_refused_in_so_many_words(name: str) -> None:
    [message] = refused({name: None})
    assert f"{name!r} is never passed to an agent" in message
    assert list(refused({name: "a value"}))


def test_what_no_environment_can_hold_is_refused() -> None:
    assert len(list(refused({"": None, "A=B": "", "A\0": "", "OK": "a\0", "FINE": "a=b"}))) == 4


@pytest.mark.parametrize("declared", [[1], "OPENAI_API_KEY", {"PORT": 8080}])
def test_a_declaration_is_names_or_names_with_texts(declared: object) -> None:
    with pytest.raises(ValidationError):
        Holder.model_validate({"env": declared})


# --- Programs ---------------------------------------------------------------------------------


def test_a_program_is_a_path_from_the_root_or_a_name_on_the_path(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "agent"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    env = {"PATH": str(program.parent)}
    assert find_program("bin/agent", root=tmp_path, env=env) is None  # nobody may run it
    program.chmod(0o755)
    (tmp_path / "link").symlink_to(program)
    for name, found in (
        ("bin/agent", program),
        ("./bin/../bin/agent", program),
        (str(program), program),
        ("./link", tmp_path / "link"),
        ("agent", program),
    ):
        assert find_program(name, root=tmp_path, env=env) == str(found)
    assert find_program("agent", root=program.parent, env={}) is None
