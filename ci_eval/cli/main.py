"""The command line: it parses and hands on; what is done is in `pipeline` and the stages."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ci_eval.cli.adk.command import adk
from ci_eval.cli.evalset.commands import evalsets
from ci_eval.cli.exit_codes import (
    EXIT_CODES,
    apart_from_json,
    complain,
    guarded,
    naming_files,
    print_json,
)
from ci_eval.cli.gate.baselines import baseline
from ci_eval.cli.gate.command import compare, gate
from ci_eval.cli.init.command import init
from ci_eval.cli.judge_check.command import judge
from ci_eval.cli.publish.command import publish as publish_stored
from ci_eval.cli.publish.options import posting_options, tell, tell_none
from ci_eval.records.errors import CiEvalError, ExitCode, UsageError
from ci_eval.runtime.context import RunContext

if TYPE_CHECKING:
    from ci_eval.plugins.points import Reporter
    from ci_eval.records.findings import Report

DEFAULT_CONFIG = "ci-eval.yaml"
DEFAULT_OUT = "ci-eval-report"
MAX_LINE = 5_000
"""Characters of a line that names all there is."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command `argv` and return its exit code.

    What a user did wrong is printed, and as annotations too where a workflow runs; with
    `--json` it is printed as JSON on stdout.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    return guarded(lambda: _main(arguments), os.environ)


def _main(arguments: list[str]) -> int:
    as_json = "--json" in arguments
    try:
        with naming_files():
            return int(cli.main(arguments, prog_name="ci-eval", standalone_mode=False) or 0)
    except click.exceptions.Exit as exc:
        return exc.exit_code
    except click.Abort:
        sys.stderr.write("interrupted\n")
        return ExitCode.INTERRUPTED
    except SystemExit:
        # click exits where nobody reads what is printed any more, with 1, a verdict of ours.
        return ExitCode.INTERRUPTED
    except click.ClickException as exc:
        return complain(UsageError(exc.format_message()), os.environ, as_json=as_json)
    except CiEvalError as exc:
        return complain(exc, os.environ, as_json=as_json)


Command = Callable[..., Any]


def _config_option(command: Command) -> Command:
    option = click.option(
        "-c",
        "--config",
        default=DEFAULT_CONFIG,
        show_default=True,
        help="The configuration file.",
    )
    return option(command)


def _json_option(command: Command) -> Command:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, and nothing else.")(
        command
    )


def _out_option(command: Command) -> Command:
    return click.option(
        "--out",
        default=DEFAULT_OUT,
        show_default=True,
        help="The folder that receives every document.",
    )(command)


def _selection_options(command: Command) -> Command:
    for name, what in (
        ("tag", "Only cases with this tag; repeated, with all of them."),
        ("criterion", "Only this criterion; may be repeated."),
        ("case", "Only this case, by id or pattern; may be repeated."),
        ("evalset", "Only this evalset; may be repeated."),
        ("agent", "Only this agent; may be repeated."),
    ):
        command = click.option(f"--{name}", multiple=True, help=what)(command)
    return command


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="ci-eval", message="%(version)s")
def cli() -> None:
    """Evaluate LLM agents, compare with a baseline, and decide whether to merge.

    Exit codes: 0 passed, 1 failed, 2 interrupted, 3 a bug here, 4 something given is wrong,
    5 nothing selected, 6 no verdict could be reached.
    """


for command in (adk, baseline, compare, evalsets, gate, init, judge, publish_stored):
    cli.add_command(command)


@cli.command()
@_config_option
@_selection_options
@click.option("--repeats", type=click.IntRange(1, 1000), help="How often each case is tried.")
@click.option("--failed", is_flag=True, help="Only what did not pass in the run that --out holds.")
@click.option("--resume", is_flag=True, help="Try only what --out does not hold yet.")
@click.option("--record", type=click.Path(), help="Write the traces here, for a recorded agent.")
@click.option(
    "--judge-mode",
    type=click.Choice(["auto", "record", "replay", "off"]),
    help="Whether kept answers of judges are used again; replay asks nobody.",
)
@click.option(
    "--adk-results", metavar="DIR", help="Write ADK's result files, which `adk web DIR` shows."
)
@click.option(
    "--baseline-save",
    type=click.Choice(["auto", "always"]),
    is_flag=False,
    flag_value="always",
    help="Store the run in the baseline afterwards; auto: where CI runs what was merged.",
)
@click.option("--section", default="", help="What the job is called, or its matrix as JSON.")
@posting_options(default="off")
@_out_option
@_json_option
def run(config: str, out: str, *, as_json: bool, **options: Any) -> int:
    """Run the agents, score what they did, compare, decide, and write the reports."""
    from ci_eval.pull_requests.github_runner import publish

    env, folder = dict(os.environ), Path(out)
    try:
        with naming_files():
            ended = _run(config, folder, options)
    except CiEvalError as exc:
        publish(None, folder, exc.exit_code, env, ())
        # That nothing was left to run is no news of the change.
        is_news = exc.exit_code is not ExitCode.NOTHING_SELECTED
        with apart_from_json(as_json=as_json):
            tell_none(_why(exc), config, options, is_news=is_news)
        raise
    report = ended.report
    if report is None:
        publish(None, folder, ExitCode.INTERRUPTED, env, ())
        with apart_from_json(as_json=as_json):
            tell_none("the run was interrupted", config, options, is_news=False)
        return ExitCode.INTERRUPTED
    code = EXIT_CODES[report.verdict.outcome]
    with apart_from_json(as_json=as_json):
        publish(report, folder, code, env, tuple(ended.reports))
        tell(report, options, ended.context, ended.reports.get("markdown"))
    if as_json:
        _print_report(report)
    return code


def _why(error: CiEvalError) -> str:
    """Return what is wrong as the end of a sentence."""
    from ci_eval.text.templates import counted

    first, *others = error.problems or (str(error),)
    more = f", and {counted(len(others), 'more problem')}" if others else ""
    return f"{first}{more}{error.hint and f'; {error.hint}'}"


class _Ended(NamedTuple):
    """What a run came to."""

    report: "Report | None"
    """None where it was interrupted."""
    reports: "Mapping[str, Reporter]"
    """What of it is published, and how that is written."""
    context: RunContext


def _run(config: str, folder: Path, options: dict[str, Any]) -> _Ended:
    from ci_eval.cli import console, load
    from ci_eval.run import collect
    from ci_eval.runtime.paths import refuse_links_out
    from ci_eval.text.redact import Secrets

    refuse_links_out(str(folder), options["record"], options["adk_results"])
    context, plan = load.plan(config, options, again=folder if options["failed"] else None)
    reports = plan.config.reports
    if options["baseline_save"] == "always":
        load.require_baseline(plan.config)
    outputs = collect.Outputs(
        folder=folder,
        secrets=Secrets(context.env),
        record=Path(options["record"]).absolute() if options["record"] else None,
        resume=options["resume"],
        taken_over=console.say_taken_over,
    )
    if options["adk_results"]:
        from ci_eval.cli.adk.results import run_and_write

        report = run_and_write(plan, context, outputs, options["adk_results"])
    else:
        report = load.run(plan, context, outputs)
    if report is None:
        console.say("run again with --resume, and it goes on from there")
        return _Ended(None, reports, context)
    console.say_report(report, str(folder))
    if options["baseline_save"] == "auto":
        load.save_of_itself(plan.config, str(folder), context)
    elif options["baseline_save"]:
        load.save_after_run(plan.config, str(folder), context)
    return _Ended(report, reports, context)


@cli.command()
@_config_option
@_selection_options
@click.option("--repeats", type=click.IntRange(1, 1000), help="How often each case is tried.")
@_json_option
def plan(config: str, *, as_json: bool, **options: Any) -> int:
    """Show what `run` would try, without running anything."""
    from ci_eval.cli import console, load
    from ci_eval.run.cost_estimate import estimate
    from ci_eval.text.templates import counted, terminal

    _, planned = load.plan(config, options)
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
        click.echo(terminal(console.told(each), MAX_LINE))
    return ExitCode.PASSED


@cli.command()
@click.argument("files", nargs=-1, type=click.Path())
@_json_option
def validate(files: tuple[str, ...], *, as_json: bool) -> int:
    """Check configurations, evalsets and ADK's eval configs: all problems, with their lines."""
    from ci_eval.cli import console, load
    from ci_eval.cli.validate import check
    from ci_eval.text.templates import terminal

    found = [check(name, load.context_of) for name in files or (DEFAULT_CONFIG,)]
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
@_json_option
def list_plugins(kind: str | None, name: str | None, *, as_json: bool) -> int:
    """List what a configuration can name, or tell all about one: `list criteria ci/regex`.

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
@click.argument("run", default=DEFAULT_OUT, type=click.Path())
@click.option("-c", "--config", help="Judge by this configuration and its baseline.")
@_out_option
@_json_option
def report(run: str, config: str | None, out: str, *, as_json: bool) -> int:
    """Judge a stored run again, and write its reports.

    RUN is a run.json, or the folder that it is in.
    """
    from ci_eval.cli import console, load
    from ci_eval.config.schema import GateOptions
    from ci_eval.run import pipeline
    from ci_eval.runtime.paths import refuse_links_out
    from ci_eval.text.redact import Secrets

    refuse_links_out(out)
    observed = load.recall(run)
    if config or Path(DEFAULT_CONFIG).exists():
        found, loaded = load.judge_again(observed, config or DEFAULT_CONFIG)
        reports = loaded.reports
    else:
        found, reports = pipeline.judge(observed, GateOptions(), None), {}
    pipeline.write_report(found, observed.run, Path(out), reports, Secrets(os.environ))
    console.say_report(found, out)
    if as_json:
        _print_report(found)
    return EXIT_CODES[found.verdict.outcome]


def _print_report(report: "Report") -> None:
    print_json(report.model_dump(mode="json"))
