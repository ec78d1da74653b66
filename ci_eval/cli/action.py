"""Entry point of the GitHub Action: turns its inputs into a command, usually `ci-eval run`.

A test keeps `INPUTS` and `action.yml` in step.
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from ci_eval.cli import console
from ci_eval.cli import main as cli
from ci_eval.cli.exit_codes import complain, guarded
from ci_eval.pull_requests.github_runner import annotate, publish
from ci_eval.pull_requests.options import MODES, WHENS
from ci_eval.records.errors import ExitCode, Problem, UsageError
from ci_eval.run_files.names import REPORT_FOLDER
from ci_eval.runtime import isolation
from ci_eval.runtime.paths import contained
from ci_eval.text.suggest import did_you_mean
from ci_eval.text.yaml_files import read_text

Kind = Literal["path", "text", "word", "list", "number", "flag"]
MAX_LIST = 1024 * 1024
"""Maximum length of a file of items, in characters."""
COMMANDS = ("run", "publish")
"""Values of the input `command`."""


@dataclass(frozen=True)
class Input:
    """One input; it maps to the option of the same name."""

    name: str
    kind: Kind = "path"
    commands: tuple[str, ...] = ("run",)
    words: tuple[str, ...] = ()
    """Allowed values of a word."""
    is_argument: bool = False
    """Whether its items are arguments of the command, not options."""
    empty: str = ""
    """The action's default, where it differs from the option's."""

    def arguments(self, value: str, folder: Path) -> list[str]:
        """Return the command-line arguments for `value`, which is not empty.

        Values are joined to their option, so that none is parsed as an option.  Files that
        a list names are relative to `folder`.

        Raises:
            ValueError: it is not of the input's kind.
            UsageError: a file cannot be read.

        """
        option = f"--{self.name}"
        match self.kind:
            case "flag":
                return [option] if _flag(value) else []
            case "list" if self.is_argument:
                return list(_items(value, folder))
            case "list":
                return [f"{option}={item}" for item in _items(value, folder)]
            case "number":
                return [f"{option}={_number(value)}"]
            case "word" if value not in self.words:
                expected = f"expected one of {', '.join(self.words)}"
                raise ValueError(f"{expected}, found {value!r}{did_you_mean(value, self.words)}")
        return [f"{option}={value}"]


@dataclass(frozen=True)
class SaveInput(Input):
    """`baseline-save`: a word or a flag."""

    def arguments(self, value: str, folder: Path) -> list[str]:
        """Return the option, or nothing if the run is not stored."""
        del folder
        if value == "auto":
            return [f"--{self.name}=auto"]
        try:
            return [f"--{self.name}=always"] if _flag(value) else []
        except ValueError:
            raise ValueError(f"expected auto, true or false, found {value!r}") from None


_BOTH = ("run", "publish")
INPUTS = (
    Input("config"),
    Input("agent", "list"),
    Input("evalset", "list"),
    Input("case", "list"),
    Input("tag", "list"),
    Input("criterion", "list"),
    Input("repeats", "number"),
    Input("failed", "flag"),
    Input("resume", "flag"),
    Input("record"),
    Input("adk-results"),
    Input("judge-mode", "word", words=("auto", "record", "replay", "off")),
    Input("out"),
    SaveInput("baseline-save", "word", empty="auto"),
    Input("section", "text"),
    Input("comment", "word", _BOTH, MODES, empty="update"),
    Input("comment-on", "word", _BOTH, WHENS),
    Input("pr", "number", _BOTH),
    Input("check-run", "flag", _BOTH),
    Input("reports", "list", ("publish",), is_argument=True),
    Input("artifact", "text", ("publish",)),
)
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
    annotate(command.problems, env)
    console.say_problems(command.problems)
    if any(problem.severity == "error" for problem in command.problems):
        publish(None, command.folder / REPORT_FOLDER, ExitCode.USAGE_ERROR, env, ())
        return ExitCode.USAGE_ERROR
    try:
        _become_owner(env)
    except UsageError as exc:
        return complain(exc, env, as_json=False)
    os.chdir(command.folder)
    return cli.main(command.arguments)


def read_inputs(env: Mapping[str, str]) -> Command:
    """Return the command that the inputs in `env` select.

    An empty input, such as an unset input of a calling workflow, counts as not given.
    """
    defaults = {each.name: each.empty for each in INPUTS}
    given = {
        name: value.strip() or defaults.get(name, "")
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
    arguments, more = [command], list[str]()
    for known in INPUTS:
        if known.name not in given:
            continue
        try:
            found = known.arguments(given.pop(known.name), folder)
        except (ValueError, UsageError) as exc:
            problems.append(_problem(known.name, str(exc)))
            continue
        # Inputs of other commands may have a value too: their default.
        if command in known.commands:
            (more if known.is_argument else arguments).extend(found)
    arguments += ["--", *more] if more else []
    names = (*(known.name for known in INPUTS), COMMAND, WORKING_DIRECTORY, TOKEN)
    for name in sorted(given):
        message = f"the action has no such input{did_you_mean(name, names)}"
        problems.append(Problem(message, where=f"input {name!r}", severity="warning"))
    return Command(arguments, folder, problems)


def _problem(name: str, message: str) -> Problem:
    return Problem(message, where=f"input {name!r}")


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


def _become_owner(env: Mapping[str, str]) -> None:
    """In our image, switch to the owner of the workspace and give them the runner's files."""
    if sys.platform == "win32":
        return
    if isolation.account() is None:
        return
    workspace = Path(env.get("GITHUB_WORKSPACE") or ".")
    owner = workspace.stat()
    for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        if name in env:
            os.chown(env[name], owner.st_uid, owner.st_gid)
    isolation.become_owner(workspace)
