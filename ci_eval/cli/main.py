"""The top-level commands; the work is done in `pipeline` and the stages."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ci_eval.cli import logs
from ci_eval.cli.adk.command import adk
from ci_eval.cli.baseline.command import baseline
from ci_eval.cli.evalset.commands import evalsets
from ci_eval.cli.exit_codes import (
    EXIT_CODES,
    complain,
    guarded,
    naming_files,
    print_json,
)
from ci_eval.cli.gate.command import compare, gate
from ci_eval.cli.init.command import init
from ci_eval.cli.judge_check.command import judge
from ci_eval.cli.options import (
    config_option,
    json_option,
    out_option,
    repeats_option,
    selection_options,
)
from ci_eval.cli.publish.command import publish
from ci_eval.cli.run.command import run
from ci_eval.records.errors import CiEvalError, ExitCode, UsageError
from ci_eval.run_files.names import CONFIG_FILE, REPORT_FOLDER

if TYPE_CHECKING:
    pass

MAX_LINE = 5_000
"""Maximum length of a line of names, in characters."""


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
            return int(ended or 0)
    except click.exceptions.Exit as exc:
        return exc.exit_code
    except click.Abort:
        sys.stderr.write("interrupted\n")
        return ExitCode.INTERRUPTED
    except SystemExit:
        # On a closed pipe click exits with 1, which is one of our verdicts.
        return ExitCode.INTERRUPTED
    except click.ClickException as exc:
        return complain(UsageError(exc.format_message()), os.environ, as_json=as_json)
    except CiEvalError as exc:
        return complain(exc, os.environ, as_json=as_json)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="ci-eval", message="%(version)s")
def cli() -> None:
    """Evaluate LLM agents, compare with a baseline, and decide whether to merge.

    Exit codes: 0 passed, 1 failed, 2 interrupted, 3 internal error, 4 invalid configuration
    or arguments, 5 nothing selected, 6 no verdict.
    """


for command in (adk, baseline, compare, evalsets, gate, init, judge, publish, run):
    cli.add_command(command)


@cli.command()
@config_option
@selection_options
@repeats_option
@json_option
def plan(config: str, *, as_json: bool, **options: Any) -> int:
    """Show what `run` would execute, without executing it."""
    from ci_eval.cli import console, load
    from ci_eval.run.cost_estimate import estimate
    from ci_eval.text.templates import counted, terminal

    planned, _ = load.planned(config, options)
    console.say_problems(planned.warnings)
    asked = estimate(planned)
    if as_json:
        print_json(
            {
                "suite": planned.config.suite,
                "trials": planned.count,
                "pairs": [
                    {
                        "agent": agent,
                        "evalset": evalset,
                        "cases": planned.evalsets[evalset].count,
                        "repeats": planned.repeats,
                        "criteria": list(criteria),
                    }
                    for (agent, evalset), criteria in planned.pairs.items()
                ],
                "judging": [each.model_dump(mode="json") for each in asked],
            }
        )
        return ExitCode.PASSED
    for (agent, evalset), criteria in planned.pairs.items():
        cases = counted(planned.evalsets[evalset].count, "case")
        times = counted(planned.repeats, "time")
        line = f"{agent} on {evalset}: {cases}, {times}: {', '.join(criteria)}"
        click.echo(terminal(line, MAX_LINE))
    click.echo(counted(planned.count, "trial"))
    for each in asked:
        click.echo(terminal(console.describe_estimate(each), MAX_LINE))
    return ExitCode.PASSED


@cli.command()
@click.argument("files", nargs=-1, type=click.Path())
@json_option
def validate(files: tuple[str, ...], *, as_json: bool) -> int:
    """Check configurations, evalsets and ADK eval configs; errors name file and line."""
    from ci_eval.cli import console, load
    from ci_eval.cli.validate import check
    from ci_eval.text.templates import terminal

    found = [check(name, load.context_of) for name in files or (CONFIG_FILE,)]
    if as_json:
        print_json([each.as_json() for each in found])
    else:
        for each in found:
            console.say_problems(each.problems)
            click.echo(terminal(each.summary(), MAX_LINE))
    wrong = any(p.severity == "error" for each in found for p in each.problems)
    return ExitCode.USAGE_ERROR if wrong else ExitCode.PASSED


@cli.command(name="list")
@click.argument("kind", required=False)
@click.argument("name", required=False)
@json_option
def list_plugins(kind: str | None, name: str | None, *, as_json: bool) -> int:
    """List plugins, or show the options of one: `list criteria ci/regex`.

    KIND is one of agents, evalsets, recordings, criteria, judges, simulators, baselines and
    reporters.
    """
    from ci_eval.cli.reference import catalogue, table

    if kind and name and not as_json:
        from ci_eval.cli.reference_pages import page

        click.echo(page(kind, name), nl=False)
        return ExitCode.PASSED
    found = catalogue(kind, options=as_json)
    if as_json:
        print_json(
            {of: [e for e in each if name in (None, e["name"])] for of, each in found.items()}
        )
    else:
        click.echo(table(found), nl=False)
    return ExitCode.PASSED


@cli.command()
def schema() -> int:
    """Print the JSON schema of a configuration, for editors."""
    from ci_eval.cli.reference import json_schema

    print_json(json_schema())
    return ExitCode.PASSED


@cli.command()
@click.argument("run", default=REPORT_FOLDER, type=click.Path())
@click.option("-c", "--config", help="Configuration whose gate and baseline to use.")
@out_option
@json_option
def report(run: str, config: str | None, out: str, *, as_json: bool) -> int:
    """Reevaluate the gate for a stored run and write its reports.

    RUN is a run.json, or the folder that it is in.
    """
    from ci_eval.cli import console, load
    from ci_eval.config.schema import GateOptions
    from ci_eval.run.pipeline import compare_and_decide
    from ci_eval.run.report import write_report
    from ci_eval.runtime.paths import refuse_links_out

    refuse_links_out(out)
    collected = load.stored_run(run)
    if config or Path(CONFIG_FILE).exists():
        found, loaded, context = load.judge_again(collected, config or CONFIG_FILE)
        reports = loaded.reports
    else:
        found, reports = compare_and_decide(collected, GateOptions(), None), {}
        context = load.context_of(Path(CONFIG_FILE))
    write_report(found, collected.run, Path(out), reports, context.secrets)
    console.say_report(found, out)
    if as_json:
        print_json(found.model_dump(mode="json"))
    return EXIT_CODES[found.verdict.outcome]


logs.add_options(cli)
