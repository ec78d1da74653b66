"""The host variant of the action: it says what `action.yml` says, and hands inputs over whole."""

import json
import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
TWIN = ROOT / "host" / "action.yml"


def part(text: str, key: str) -> str:
    """Return a top-level key of a YAML file with all that belongs to it, comments included."""
    found = re.search(rf"^{key}:\n(?:(?:[ #].*)?\n)*", text, re.MULTILINE)
    assert found is not None, key
    return found[0].rstrip("\n") + "\n"


def with_values(outputs: str) -> str:
    """Return the outputs of a container action as those of a composite one, whose step is `run`."""
    value = r"    value: ${{ steps.run.outputs.\1 }}\n"
    return re.sub(r"^  ([\w-]+):\n", rf"  \1:\n{value}", outputs, flags=re.MULTILINE)


def written_anew(twin: str) -> str:
    """Return the twin with what has to follow from `action.yml`."""
    original = (ROOT / "action.yml").read_text(encoding="utf-8")
    anew = {"inputs": part(original, "inputs"), "outputs": with_values(part(original, "outputs"))}
    for key, text in anew.items():
        twin = twin.replace(part(twin, key), text)
    return twin


def test_the_twin_has_the_inputs_and_the_outputs_of_the_container_action(
    request: pytest.FixtureRequest,
) -> None:
    said = TWIN.read_text(encoding="utf-8")
    if request.config.getoption("--refresh-golden"):
        TWIN.write_text(written_anew(said), encoding="utf-8", newline="\n")
    assert TWIN.read_text(encoding="utf-8") == written_anew(said), "see --refresh-golden"


@pytest.fixture
def twin() -> dict[str, Any]:
    import yaml

    said = yaml.safe_load(TWIN.read_text(encoding="utf-8"))
    assert isinstance(said, dict)
    return said


def test_no_input_gets_into_a_script(twin: dict[str, Any]) -> None:
    scripts = [step["run"] for step in twin["runs"]["steps"] if "run" in step]
    assert scripts
    assert not [script for script in scripts if "${{" in script]
    assert {"CI_EVAL_INPUTS": "${{ toJSON(inputs) }}"} in [
        step.get("env") for step in twin["runs"]["steps"]
    ]


def test_what_is_used_is_pinned_by_its_commit(twin: dict[str, Any]) -> None:
    used = [step["uses"] for step in twin["runs"]["steps"] if "uses" in step]
    assert used
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", each) for each in used)


@pytest.fixture
def prepare() -> Callable[[dict[str, str]], None]:
    prepared: Callable[[dict[str, str]], None] = runpy.run_path(str(ROOT / "host/main.py"))[
        "prepare"
    ]
    return prepared


def test_inputs_are_handed_over_as_the_runner_names_them(
    prepare: Callable[[dict[str, str]], None],
) -> None:
    hard = "a: 'b' \"c\" $(d) `e` %f%\n\\ ::error::g ☂"
    env = {"CI_EVAL_INPUTS": json.dumps({"baseline-save": "auto", "case": hard}), "PATH": ""}
    prepare(env)
    assert env == {"INPUT_BASELINE-SAVE": "auto", "INPUT_CASE": hard, "PATH": ""}


@pytest.mark.parametrize("names", [("python", "python3"), ("python3",)])
def test_agents_get_the_python_of_the_job(
    prepare: Callable[[dict[str, str]], None], tmp_path: Path, names: tuple[str, ...]
) -> None:
    for name in names:
        (tmp_path / name).touch(0o755)
    env = {"CI_EVAL_INPUTS": "{}", "PATH": str(tmp_path)}
    prepare(env)
    assert env["CI_EVAL_INTERPRETER"] == str(tmp_path / names[0])


def test_an_interpreter_that_the_job_names_stays(
    prepare: Callable[[dict[str, str]], None], tmp_path: Path
) -> None:
    (tmp_path / "python").touch(0o755)
    env = {"CI_EVAL_INPUTS": "{}", "PATH": str(tmp_path), "CI_EVAL_INTERPRETER": "/opt/own"}
    prepare(env)
    assert env["CI_EVAL_INTERPRETER"] == "/opt/own"
