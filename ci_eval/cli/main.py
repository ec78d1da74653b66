"""The entry point: finds the command, runs it, and turns errors into exit codes."""

import functools
import importlib
import os
import re
import sys
from collections.abc import Sequence
from difflib import get_close_matches

import click

from ci_eval.cli import logs
from ci_eval.cli.command_help import add_examples
from ci_eval.cli.exit_codes import complain, guarded, naming_files
from ci_eval.records.errors import CiEvalError, ExitCode, Problem, UsageError

COMMANDS = {
    "adk": ("adk.adk_command:adk", "Evaluate an ADK agent, like `adk eval`."),
    "baseline": (
        "baseline.baseline_command:baseline",
        "Store, show, compare and prune baseline runs.",
    ),
    "compare": ("gate.gate_command:compare", "Compare two runs."),
    "evalset": ("evalset.evalset_commands:evalsets", "List, create, edit and convert evalsets."),
    "explain": ("error_codes:explain", "Explain an error by its code: its cause, and what to do."),
    "gate": (
        "gate.gate_command:gate",
        "Explain verdicts; estimate the drops that can be detected.",
    ),
    "init": ("init.init_command:init", "Write a configuration and a workflow for a repository."),
    "judge": (
        "judge_check.judge_check_command:judge",
        "Measure how well a judge agrees with people.",
    ),
    "list": ("list_command:list_plugins", "List plugins, or show the options of one."),
    "merge": ("run.merge_command:merge", "Combine the reports of shards into one run, and decide."),
    "models": (
        "models.models_command:models",
        "Show, clean and check agents' recorded model calls.",
    ),
    "plan": ("plan_command:plan", "Show what `run` would execute, without executing it."),
    "publish": ("publish.publish_command:publish", "Post stored reports to their pull request."),
    "report": ("report_command:report", "Reevaluate the gate for a stored run; write its reports."),
    "run": ("run.run_command:run", "Run the agents, score, compare, decide, and write reports."),
    "schema": ("list_command:schema", "Print the JSON schema of a configuration, for editors."),
    "show": ("show_command:show", "Show one case of the last run, with all that was observed."),
    "validate": (
        "validate_command:validate",
        "Check configurations, evalsets and ADK eval configs.",
    ),
}
"""Module and function of each command, and its line in `ci-eval --help`."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command `argv` and return its exit code.

    Errors are printed, and annotated in a workflow; with
    `--json` they are printed as JSON on stdout.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    return guarded(lambda: _main(arguments), os.environ)


def _main(arguments: list[str]) -> int:
    as_json = "--json" in arguments
    try:
        with naming_files():
            logs.configure(os.environ)
            ended = cli.main(
                arguments, prog_name="ci-eval", standalone_mode=False, obj=dict(os.environ)
            )
            sys.stdout.flush()  # a full disk is reported here, not by Python at the end
            return int(ended or 0)  # a command that decides nothing returns nothing
    except click.exceptions.Exit as exc:
        return exc.exit_code
    except click.Abort:
        sys.stderr.write("interrupted\n")
        return ExitCode.INTERRUPTED
    except SystemExit as exc:
        # Click may exit with 1, which would be a verdict; shell completion exits with 0.
        return ExitCode.INTERRUPTED if exc.code else ExitCode.PASSED
    except click.ClickException as exc:
        return _refused(exc, as_json=as_json)
    except CiEvalError as exc:
        return complain(exc, os.environ, as_json=as_json)


def _refused(error: click.ClickException, *, as_json: bool) -> ExitCode:
    if type(error).__name__ == "NoArgsIsHelpError":  # click 8.1 lacks it
        click.echo(error.format_message())
        return ExitCode.USAGE_ERROR  # a script whose command is empty has not passed
    return complain(explained(error), os.environ, as_json=as_json)


def explained(error: click.ClickException) -> UsageError:
    """Return click's error with a hint at the probable fix."""
    message, hint = error.format_message(), ""
    if isinstance(error, click.NoSuchOption) and error.ctx:
        options = [name for each in error.ctx.command.params for name in each.opts]
        known = {name.lstrip("-"): name for name in options}  # hyphens make all options similar
        close = get_close_matches(error.option_name.lstrip("-"), known, n=1)
        meant = f". Did you mean {known[close[0]]!r}?" if close else ""
        message = f"no such option {error.option_name!r}{meant}"
        hint = f"`{error.ctx.command_path} --help` lists the options"
    elif isinstance(error, click.UsageError) and error.ctx and (extra := _EXTRA.match(message)):
        given, path = extra[1], error.ctx.command_path
        message = f"unexpected argument {given!r}"
        if any(each.name == "config" for each in error.ctx.command.params):
            hint = f"to name a configuration, use `{path} -c {given.split()[0]}`"
    elif number := _NO_NUMBER.match(message):
        wrong = Problem(f"expected a whole number, found {number[2]}", where=number[1])
        return UsageError(problems=[wrong])
    return UsageError(message, hint=hint)


_NO_NUMBER = re.compile(r"Invalid value for '(.+?)': ('.*') is not a valid integer")
_EXTRA = re.compile(r"Got unexpected extra arguments? \((.+)\)")


@functools.cache
def command(name: str) -> click.Command:
    """Import one of `COMMANDS`."""
    module, function = COMMANDS[name][0].split(":")
    found: click.Command = getattr(importlib.import_module(f"ci_eval.cli.{module}"), function)
    logs.add_options(found)
    add_examples(found, name)
    return found


class _Commands(click.Group):
    """Commands, imported on demand so that `--help` is quick."""

    def get_command(self, _: click.Context, cmd_name: str) -> click.Command | None:
        return command(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(
    cls=_Commands,
    # Names only: click suggests one of them for an unknown command.
    commands={name: click.Command(name) for name in COMMANDS},
    epilog="To complete commands in bash, add this line to ~/.bashrc (for zsh: zsh_source): "
    'eval "$(_CI_EVAL_COMPLETE=bash_source ci-eval)"',
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="ci-eval", message="%(version)s")
def cli() -> None:
    """Evaluate LLM agents, compare with a baseline, and decide whether to merge.

    Exit codes: 0 passed, 1 failed, 2 interrupted, 3 internal error, 4 invalid configuration
    or arguments, 5 nothing selected, 6 no verdict.
    """


logs.add_options(cli)
