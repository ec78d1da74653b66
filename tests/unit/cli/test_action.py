"""The inputs of the action, and that `action.yml` says the same as the code."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import pytest

from ci_eval.cli import action, main
from ci_eval.cli.action import (
    COMMAND,
    COMMANDS,
    DEFAULTS,
    TOKEN,
    WORKING_DIRECTORY,
    options,
    read_inputs,
)
from ci_eval.pull_requests.github_runner import outputs
from ci_eval.records.errors import ExitCode, UsageError
from ci_eval.run_files.file_names import CONFIG_FILE, REPORT_FOLDER
from ci_eval.runtime import isolation

ACTION_YML = Path(__file__).parents[3] / "action.yml"


@pytest.fixture
def documented() -> dict[str, Any]:
    """Return the content of `action.yml`."""
    import yaml

    said = yaml.safe_load(ACTION_YML.read_text(encoding="utf-8"))
    assert isinstance(said, dict)
    return said


def command(**inputs: str) -> action.Command:
    return read_inputs({f"INPUT_{name.upper().replace('_', '-')}": inputs[name] for name in inputs})


def arguments(**inputs: str) -> Sequence[str]:
    read = command(**inputs)
    assert not read.problems
    return read.arguments[1:]


def problems(**inputs: str) -> list[str]:
    return [str(problem) for problem in command(**inputs).problems]


# --- action.yml ------------------------------------------------------------------------------


def test_action_yml_lists_the_inputs_that_are_read(documented: dict[str, Any]) -> None:
    assert set(documented["inputs"]) == {
        *(COMMAND, WORKING_DIRECTORY, TOKEN),
        *(name for command in COMMANDS for name in options(command)),
    }


def test_options_for_interactive_use_are_no_inputs() -> None:
    known = {name for command in COMMANDS for name in options(command)}
    assert not {"json", "verbose", "quiet", "run-python"} & known


def test_action_yml_lists_the_outputs_that_are_written(documented: dict[str, Any]) -> None:
    assert list(documented["outputs"]) == [
        *outputs(None, Path(), ExitCode.PASSED, {}),
        *("comment-status", "comment-url", "matrix"),
    ]


def test_the_defaults_in_action_yml_are_those_of_the_command_line(
    documented: dict[str, Any],
) -> None:
    defaults = {
        name: given["default"] for name, given in documented["inputs"].items() if "default" in given
    }
    assert defaults == {
        "config": CONFIG_FILE,
        "working-directory": ".",
        "out": REPORT_FOLDER,
        "failed": "false",
        "resume": "false",
        "baseline-save": "auto",
        COMMAND: "run",
        "section": "${{ toJSON(matrix) }}",
        "comment": "update",
        "comment-on": "always",
        "check-run": "false",
        "artifact": "ci-eval-report*",
        TOKEN: "${{ github.token }}",
    }


def test_the_documented_type_is_the_one_that_is_checked(documented: dict[str, Any]) -> None:
    known = {name: each for command in COMMANDS for name, each in options(command).items()}
    for name, parameter in known.items():
        type_, _, _ = documented["inputs"][name]["description"].partition(".")
        match parameter:
            case click.Argument() | click.Option(multiple=True):
                assert type_.startswith("List"), name
            case click.Option(is_flag=True):
                assert type_ == "`true` or `false`", name
            case click.Option(type=click.IntRange()):
                assert type_.startswith("Whole number"), name
            case click.Option(type=click.Choice(choices=words)):
                assert type_.startswith("Word"), name
                shown = ["auto", "true", "false"] if name == "baseline-save" else words
                assert all(f"`{word}`" in type_ for word in shown), name
            case _:
                assert type_ in ("Path", "Text"), name


# --- Reading the inputs ----------------------------------------------------------------------


def test_the_token_is_no_argument() -> None:
    assert command(github_token="ghs_secret") == command()


def test_nothing_given_is_a_plain_run() -> None:
    assert read_inputs({}) == (["run"], Path(), [])


def test_every_input_becomes_its_option() -> None:
    assert arguments(
        config="a b.yaml",
        agent="one, two",
        evalset="smoke",
        case="greets,\nrefund, again\n\n  --help  \n",
        criterion="ci/c",
        repeats="3",
        resume="true",
        record="traces.jsonl",
        out="-",
        baseline_save="TRUE",
        section='{"model": "small"}',
        comment="recreate",
        comment_on="regression",
        pr="12",
        check_run="true",
        reports="not of run",
    ) == [
        "--config=a b.yaml",
        "--agent=one",
        "--agent=two",
        "--evalset=smoke",
        "--case=greets,",
        "--case=refund, again",
        "--case=--help",
        "--criterion=ci/c",
        "--repeats=3",
        "--resume",
        "--record=traces.jsonl",
        "--baseline-save=always",
        '--section={"model": "small"}',
        "--comment=recreate",
        "--comment-on=regression",
        "--pr=12",
        "--check-run",
        "--out=-",
    ]


def test_publish_has_inputs_of_its_own() -> None:
    read = command(
        command="publish", config="a.yaml", comment="minimize", reports="one\n--two", artifact="r*"
    )
    assert read.problems == []
    assert read.arguments == [
        *("publish", "--comment=minimize", "--artifact=r*", "--", "one", "--two")
    ]


@pytest.mark.parametrize(("word", "found"), [("auto", ["--baseline-save=auto"]), ("false", [])])
def test_a_baseline_is_stored_as_the_word_says(word: str, found: list[str]) -> None:
    assert arguments(baseline_save=word) == found


def in_workspace(folder: Path, **inputs: str) -> action.Command:
    given = {f"INPUT_{name.upper()}": value for name, value in inputs.items()}
    return read_inputs({"GITHUB_WORKSPACE": str(folder), **given})


def test_what_is_too_long_for_a_variable_stands_in_a_file(tmp_path: Path) -> None:
    cases = [f"case {number}" for number in range(20_000)]
    (tmp_path / "cases.txt").write_bytes(("\r\n".join(cases) + "\n\n").encode())
    read = in_workspace(tmp_path, case="greets, @cases.txt", tag="@@home\n@@@cases.txt")
    assert read.problems == []
    assert read.arguments[1:] == [
        "--case=greets",
        *(f"--case={case}" for case in cases),
        *("--tag=@home", "--tag=@@cases.txt"),
    ]


def test_files_of_lists_that_cannot_be_read_are_all_told(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "long.txt").write_text("x" * (action.MAX_LIST + 1))
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9\n")
    (tmp_path / "away").symlink_to("/etc/passwd")
    names = {"agent": "none.txt", "evalset": "folder", "case": "long.txt", "tag": "latin.txt"}
    given = {name: f"@{file}" for name, file in names.items()}
    read = in_workspace(tmp_path, **given, criterion="@away")
    assert [str(problem).partition(" UTF-8")[0] for problem in read.problems] == [
        "input 'agent': none.txt: no such file",
        "input 'evalset': folder: is not a file",
        "input 'case': long.txt: is larger than 1 MiB, the limit for this kind of file",
        "input 'criterion': away: is a symlink out of the repository",
        "input 'tag': latin.txt:1: byte 0xe9 is not",
    ]


def test_empty_inputs_are_not_given() -> None:
    assert arguments(agent="", repeats=" ", resume="", config="\n") == []


def test_an_empty_input_is_what_the_action_does_if_it_is_left_out(
    documented: dict[str, Any],
) -> None:
    for name, parameter in options("run").items():
        said = documented["inputs"][name].get("default", "")
        is_flag = isinstance(parameter, click.Option) and parameter.is_flag
        if said and not is_flag and "${{" not in said:
            assert said == DEFAULTS.get(name, parameter.default)
        else:
            assert name not in DEFAULTS
    assert arguments(comment="", baseline_save=" ") == ["--baseline-save=auto", "--comment=update"]


@pytest.mark.parametrize("word", ["false", "False", "FALSE"])
def test_a_flag_can_be_off(word: str) -> None:
    assert arguments(resume=word) == []


@pytest.mark.parametrize("word", ["yes", "1", "tRUE", "on"])
def test_other_words_are_no_flags(word: str) -> None:
    assert problems(resume=word) == [f"input 'resume': expected true or false, found {word!r}"]


@pytest.mark.parametrize("word", ["three", "-1", "1.0", "1e3", "٣", "9999999999"])
def test_other_words_are_no_numbers(word: str) -> None:
    assert problems(repeats=word) == [f"input 'repeats': expected a whole number, found {word!r}"]


def test_every_problem_is_told_at_once() -> None:
    assert problems(
        command="pubish",
        repeats="x",
        baseline_save="si",
        comment="updated",
        working_directory="no/where",
        confg="a",
    ) == [
        "input 'working-directory': there is no folder 'no/where'",
        (
            "input 'command': expected one of run, publish, plan, merge, found 'pubish'. "
            "Did you mean 'publish'?"
        ),
        "input 'repeats': expected a whole number, found 'x'",
        "input 'baseline-save': expected auto, true or false, found 'si'",
        (
            "input 'comment': expected one of update, recreate, minimize, off, found 'updated'. "
            "Did you mean 'update'?"
        ),
        "input 'confg': the action has no such input. Did you mean 'config'?",
    ]


def test_an_unknown_input_alone_only_warns() -> None:
    (problem,) = command(confg="a").problems
    assert problem.severity == "warning"


def test_the_working_directory_starts_at_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    read = read_inputs({"GITHUB_WORKSPACE": str(tmp_path), "INPUT_WORKING-DIRECTORY": "sub"})
    assert read.folder == tmp_path / "sub"
    assert not read.problems


# --- Running ---------------------------------------------------------------------------------


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a workspace and a GitHub-like environment round it."""
    given = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_WORKSPACE": str(tmp_path / "workspace"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
    }
    monkeypatch.setattr(os, "environ", given)
    monkeypatch.setattr(action, "_become_owner", lambda _: None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "workspace" / "sub").mkdir(parents=True)
    (tmp_path / "output").touch()
    return tmp_path / "workspace"


def test_the_command_runs_in_the_working_directory(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def run(arguments: Sequence[str]) -> int:
        seen.append((arguments, Path.cwd()))
        return 1

    monkeypatch.setattr(main, "main", run)
    monkeypatch.setenv("INPUT_WORKING-DIRECTORY", "sub")
    monkeypatch.setenv("INPUT_BASELINE-SAVE", "true")
    assert action.main() == 1
    assert seen == [(["run", "--baseline-save=always"], workspace / "sub")]


def test_nothing_runs_when_an_input_is_wrong(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(main, "main", lambda _: pytest.fail("it ran"))
    monkeypatch.setenv("INPUT_REPEATS", "many")
    assert action.main() == ExitCode.USAGE_ERROR
    printed = capsys.readouterr()
    message = "input 'repeats': expected a whole number, found 'many'"
    assert printed.err.startswith(f"{message}\nCE")
    assert printed.out == f"::error title=ci-eval::{message}\n"
    assert "usage-error" in (workspace.parent / "output").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("raised", "code"),
    [(KeyboardInterrupt(), ExitCode.INTERRUPTED), (ZeroDivisionError(), ExitCode.INTERNAL_ERROR)],
)
@pytest.mark.usefixtures("workspace")
def test_what_breaks_is_never_a_verdict(
    raised: BaseException, code: ExitCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(_: Sequence[str]) -> int:
        raise raised

    monkeypatch.setattr(main, "main", run)
    assert action.main() == code


# --- Whose files -----------------------------------------------------------------------------


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    """Return the calls that would change whose files are whose, and who we are."""
    made: list[tuple[object, ...]] = []
    monkeypatch.setattr(os, "chown", lambda *given: made.append(("chown", *given)))
    monkeypatch.setattr(isolation, "become_owner", lambda folder: made.append(("become", folder)))
    return made


def workspace_of(owner: int, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    place = os.stat_result((0o755, 0, 0, 0, owner, owner + 1, 0, 0, 0, 0))
    monkeypatch.setattr(Path, "stat", lambda _: place)
    return {
        "GITHUB_WORKSPACE": "workspace",
        "GITHUB_OUTPUT": "output",
        "GITHUB_STEP_SUMMARY": "",  # some runners have none
    }


def test_root_goes_on_as_the_owner_of_the_workspace(
    calls: list[tuple[object, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolation, "account", lambda: isolation.Account(58734, 58734, "/home/a"))
    action._become_owner(workspace_of(1001, monkeypatch))
    assert calls == [("chown", "output", 1001, 1002), ("become", Path("workspace"))]


def test_elsewhere_the_user_stays(
    calls: list[tuple[object, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)  # as in a job of `container:`
    action._become_owner(workspace_of(1001, monkeypatch))
    action._become_owner({})
    assert calls == []


@pytest.mark.usefixtures("workspace")
def test_a_container_that_cannot_keep_agents_apart_runs_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_: object) -> None:
        raise UsageError("agents cannot be kept apart", hint="give it its capabilities")

    monkeypatch.setattr(main, "main", lambda _: pytest.fail("it ran"))
    monkeypatch.setattr(action, "_become_owner", refuse)
    assert action.main() == ExitCode.USAGE_ERROR
    printed = capsys.readouterr().err
    assert "agents cannot be kept apart\ngive it its capabilities\n" in printed
