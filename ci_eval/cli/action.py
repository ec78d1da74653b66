"""Entry point of the GitHub Action: turns its inputs into a command, usually `ci-eval run`.

Its inputs are the options of the commands; a test keeps `action.yml` in step with them.
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, NoReturn

import click

from ci_eval.cli import console
from ci_eval.cli import main as cli
from ci_eval.cli.exit_codes import complain, guarded
from ci_eval.cli.run.finishing import finished
from ci_eval.pull_requests.github_runner import annotate, publish
from ci_eval.records.errors import CiEvalError, ExitCode, Problem, UsageError
from ci_eval.run.report_assembly import clear
from ci_eval.run_files.file_names import REPORT_FOLDER
from ci_eval.runtime import isolation
from ci_eval.runtime.path_checks import contained
from ci_eval.text.suggest import did_you_mean
from ci_eval.text.yaml_files import read_text

MAX_LIST = 1024 * 1024
"""Maximum length of a file of items, in characters."""
COMMANDS: dict[str, Sequence[str]] = {
    "run": (),
    "publish": (),
    # A plan may do what `run` does in the next job.
    "plan": ("--run-python",),
    "merge": (),
}
"""Values of the input `command`, with the options that each always has."""
DEFAULTS = {"baseline-save": "auto", "comment": "update"}
"""The action's defaults, where they differ from those of the options."""
_NOT_INPUTS = ("json", "verbose", "quiet", "show", "open", "maxfail", "x", "run-python")
"""Options for interactive use; workflows set `RUNNER_DEBUG` to log more."""
COMMAND = "command"
"""The input (not an option) that selects the command."""
WORKING_DIRECTORY = "working-directory"
"""The input (not an option) that sets the working directory."""
TOKEN = "github-token"  # noqa: S105  # the name of one
"""The input (not an option) with the token: read from the environment only, so that it never
appears on a command line."""


class Command(NamedTuple):
    """The command that the inputs select."""

    arguments: Sequence[str]
    folder: Path
    problems: Sequence[Problem]
    """All problems of the inputs; the command runs only if there are no errors."""


def main() -> int:
    """Run the command that the inputs select, and return its exit code."""
    return guarded(lambda: _run(dict(os.environ)), os.environ)


def _run(env: Mapping[str, str]) -> int:
    command = read_inputs(env)
    try:
        _become_owner(env)
    except UsageError as exc:
        return complain(exc, env, as_json=False)
    if any(problem.severity == "error" for problem in command.problems):
        return _refuse(command, UsageError(problems=command.problems), env)
    annotate(command.problems, env)
    console.say_problems(command.problems)
    os.chdir(command.folder)
    return cli.main(command.arguments)


def _refuse(command: Command, error: UsageError, env: Mapping[str, str]) -> int:
    """Report wrong inputs, also where an earlier report would otherwise look current."""
    name, *arguments = command.arguments
    if name in ("run", "merge") and command.folder.is_dir():
        os.chdir(command.folder)
        given = cli.command(name).make_context(name, arguments, resilient_parsing=True).params
        folder = Path(given["out"])

        def refuse(*_: object) -> NoReturn:
            clear(folder)
            raise error

        with suppress(CiEvalError):
            finished(refuse, given["config"], folder, given)
    else:
        publish(None, command.folder / REPORT_FOLDER, ExitCode.USAGE_ERROR, env, ())
    return complain(error, env, as_json=False)


def read_inputs(env: Mapping[str, str]) -> Command:
    """Return the command that the inputs in `env` select.

    An empty input, such as an unset input of a calling workflow, counts as not given.
    """
    given = {
        name: value.strip() or DEFAULTS.get(name, "")
        for variable, value in env.items()
        if (name := variable.removeprefix("INPUT_").lower()) != variable.lower()
    }
    given = {name: value for name, value in given.items() if value}
    folder = Path(env.get("GITHUB_WORKSPACE", ".")) / given.pop(WORKING_DIRECTORY, ".")
    given.pop(TOKEN, None)
    problems = []
    if not folder.is_dir():
        problems.append(_problem(WORKING_DIRECTORY, f"there is no folder {str(folder)!r}"))
    command = given.pop(COMMAND, "run")
    if command not in COMMANDS:
        expected = f"expected one of {', '.join(COMMANDS)}"
        message = f"{expected}, found {command!r}{did_you_mean(command, COMMANDS)}"
        problems.append(_problem(COMMAND, message))
    known = {name: each for other in COMMANDS for name, each in options(other).items()}
    # Inputs of other commands may have a value too: their default.
    used = options(command) if command in COMMANDS else {}
    selected, positional = [command, *COMMANDS.get(command, ())], list[str]()
    for name in [name for name in known if name in given]:
        try:
            found = _arguments(name, known[name], given.pop(name), folder)
        except (ValueError, UsageError) as exc:
            problems.append(_problem(name, str(exc)))
            found = [f"--{name}={DEFAULTS[name]}"] if name in DEFAULTS else []
        if name in used:
            is_argument = isinstance(known[name], click.Argument)
            (positional if is_argument else selected).extend(found)
    if positional:
        selected += ["--", *positional]
    if command in COMMANDS and not problems:
        try:
            cli.command(command).make_context(command, selected[1:])
        except click.UsageError as exc:
            problems += cli.explained(exc).problems
    names = (*known, COMMAND, WORKING_DIRECTORY, TOKEN)
    for name in sorted(given):
        message = f"the action has no such input{did_you_mean(name, names)}"
        problems.append(Problem(message, where=f"input {name!r}", severity="warning"))
    return Command(selected, folder, problems)


def _problem(name: str, message: str) -> Problem:
    return Problem(message, where=f"input {name!r}")


def options(command: str) -> dict[str, click.Parameter]:
    """Return the parameters of `command` that are inputs of the action, by name."""
    found = {_name(each.opts): each for each in cli.command(command).params}
    return {name: each for name, each in found.items() if name not in _NOT_INPUTS}


def _name(names: Sequence[str]) -> str:
    """Return the first name of a parameter that has more than one letter."""
    bare = [name.lstrip("-") for name in names]
    return next((name for name in bare if len(name) > 1), bare[0])


def _arguments(name: str, parameter: click.Parameter, value: str, folder: Path) -> list[str]:
    """Return the command-line arguments for an input's `value`, which is not empty.

    Values are joined to their option, so that no value is parsed as an option.
    Files named in a list are relative to `folder`.

    Raises:
        ValueError: the value is not of the parameter's type.
        UsageError: a file cannot be read.

    """
    match parameter:
        case click.Argument():
            return list(_items(value, folder))
        case click.Option(multiple=True):
            return [f"--{name}={item}" for item in _items(value, folder)]
        case click.Option(is_flag=True):
            return [f"--{name}"] if _flag(value) else []
        case click.Option(name="baseline_save"):
            mode = _baseline_save(value)
            return [f"--{name}={mode}"] if mode else []
        case click.Option(type=click.IntRange()):
            return [f"--{name}={_number(value)}"]
        case click.Option(type=click.Choice(choices=words)) if value not in words:
            expected = f"expected one of {', '.join(words)}"
            raise ValueError(f"{expected}, found {value!r}{did_you_mean(value, words)}")
    return [f"--{name}={value}"]


def _items(value: str, folder: Path) -> Iterator[str]:
    """Yield the items of `value`, separated by newlines, or by commas if it is a single line.

    `@file` reads items from a file, for lists too long for an environment variable;
    `@@item` is a literal `@item`.
    """
    for item in _stripped(value.split("\n" if "\n" in value else ",")):
        if item.startswith("@") and not item.startswith("@@"):
            name = item[1:]
            text = read_text(contained(folder, name), shown=name, most=MAX_LIST)
            yield from _stripped(text.split("\n"))
        else:
            yield item.removeprefix("@")


def _stripped(items: Iterable[str]) -> Iterator[str]:
    return filter(None, map(str.strip, items))


def _number(value: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", value):
        raise ValueError(f"expected a whole number, found {value!r}")
    return int(value)


def _flag(value: str) -> bool:
    if value in ("true", "True", "TRUE"):
        return True
    if value in ("false", "False", "FALSE"):
        return False
    raise ValueError(f"expected true or false, found {value!r}")


def _baseline_save(value: str) -> str:
    """Return the value of the option; empty if the run is not stored."""
    if value == "auto":
        return value
    try:
        return "always" if _flag(value) else ""
    except ValueError:
        raise ValueError(f"expected auto, true or false, found {value!r}") from None


def _become_owner(env: Mapping[str, str]) -> None:
    """In our image, switch to the owner of the workspace and give them the runner's files."""
    if sys.platform == "win32":
        return
    if isolation.account() is None:
        return
    workspace = Path(env.get("GITHUB_WORKSPACE") or ".")
    owner = workspace.stat()
    for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        if path := env.get(name):
            os.chown(path, owner.st_uid, owner.st_gid)
    isolation.become_owner(workspace)
