"""`ci-eval run`: runs the pipeline, shows its report, stores the run and publishes it."""

from pathlib import Path
from typing import Any

import click

from ci_eval.cli import console, load
from ci_eval.cli.adk.adk_eval_result_files import run_and_write
from ci_eval.cli.baseline import baseline_saving
from ci_eval.cli.exit_codes import EXIT_CODES, apart_from_json, naming_files, print_json
from ci_eval.cli.options import (
    config_option,
    json_option,
    open_option,
    out_option,
    record_option,
    repeats_option,
    selection_options,
    show_option,
)
from ci_eval.cli.publish.posting_options import posting_options, tell, tell_none
from ci_eval.cli.run.console_progress import run_watched
from ci_eval.pull_requests import github_runner
from ci_eval.pull_requests.github_runner import publish
from ci_eval.records.errors import CiEvalError, ExitCode
from ci_eval.records.findings import Report
from ci_eval.run.collect import Outputs
from ci_eval.run_files.file_names import PAGE_FILE
from ci_eval.runtime.path_checks import refuse_file, refuse_links_out
from ci_eval.text.templates import counted


@click.command()
@config_option
@selection_options
@repeats_option
@click.option(
    "--failed",
    "--last-failed",
    "failed",
    is_flag=True,
    help="Rerun only cases that did not pass in the run in --out.",
)
@click.option(
    "--maxfail",
    type=click.IntRange(min=1),
    help="Begin no trials after this many did not pass.",
)
@click.option("-x", "maxfail", flag_value=1, type=int, help="The same as --maxfail 1.")
@click.option("--resume", is_flag=True, help="Resume the run in --out.")
@record_option
@click.option(
    "--judge-mode",
    type=click.Choice(["auto", "record", "replay", "off"]),
    help="Use of cached judge responses; replay calls no model.",
)
@click.option("--adk-results", metavar="DIR", help="Write ADK result files for `adk web DIR`.")
@click.option(
    "--baseline-save",
    type=click.Choice(["auto", "always"]),
    is_flag=False,
    flag_value="always",
    help="Store the run in the baseline; auto: only if CI runs merged code.",
)
@click.option("--section", default="", help="Name of the CI job, or its matrix as JSON.")
@posting_options(default="off")
@out_option
@show_option
@open_option
@json_option
def run(config: str, out: str, *, as_json: bool, **options: Any) -> int:
    """Run the agents, score and compare the results, decide, and write the reports."""
    context, folder = load.context_of(Path(config)), Path(out)
    try:
        with naming_files():
            report = _run(config, folder, options, as_json=as_json)
    except CiEvalError as exc:
        publish(None, folder, exc.exit_code, context.env, ())
        # An empty selection says nothing about the change.
        is_news = exc.exit_code is not ExitCode.NOTHING_SELECTED
        with apart_from_json(as_json=as_json):
            tell_none(_why(exc), config, options, is_news=is_news)
        raise
    if report is None:
        publish(None, folder, ExitCode.INTERRUPTED, context.env, ())
        with apart_from_json(as_json=as_json):
            tell_none("the run was interrupted", config, options, is_news=False)
        return ExitCode.INTERRUPTED
    if options["opens"]:
        console.open_page(folder / PAGE_FILE)
    if as_json:
        print_json(report.model_dump(mode="json"))
    return EXIT_CODES[report.verdict.outcome]


def _why(error: CiEvalError) -> str:
    """Return the cause of an error, as the end of a sentence."""
    first, *others = error.problems or (str(error),)
    more = f", and {counted(len(others), 'more problem')}" if others else ""
    return f"{first}{more}{error.hint and f'; {error.hint}'}"


def _run(config: str, folder: Path, options: dict[str, Any], *, as_json: bool) -> Report | None:
    refuse_links_out(str(folder), options["record"], options["adk_results"])
    refuse_file(str(folder))
    again = folder if options["failed"] else None
    plan, context = load.planned(config, options, runs_python=True, again=again)
    configured = plan.config
    if options["baseline_save"] == "always":
        load.require_baseline(configured)

    def publish(report: Report) -> None:
        with apart_from_json(as_json=as_json):
            console.out_report(report, str(folder), most=console.shown_cases(options["show"]))
        if options["baseline_save"] == "auto":
            baseline_saving.save_if_merged(configured, str(folder), context)
        elif options["baseline_save"]:
            baseline_saving.save_after_run(configured, str(folder), context)
        code, reports = EXIT_CODES[report.verdict.outcome], configured.reports
        with apart_from_json(as_json=as_json):
            github_runner.publish(report, folder, code, context.env, tuple(reports))
            tell(report, options, context, reports)

    record = Path(options["record"]).absolute() if options["record"] else None
    outputs = Outputs(
        folder=folder, record=record, resume=options["resume"], max_failures=options["maxfail"]
    )
    if options["adk_results"]:
        report = run_and_write(plan, context, outputs, options["adk_results"], publish)
    else:
        report = run_watched(plan, context, outputs, publish)
    if report is None:
        console.say("run again with --resume to continue from there")
    return report
