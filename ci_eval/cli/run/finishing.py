"""The end of a run: its report on the console, in the baseline, on the runner and posted."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ci_eval.cli import command_inputs, console
from ci_eval.cli.baseline import baseline_saving
from ci_eval.cli.exit_codes import EXIT_CODES, apart_from_json, naming_files
from ci_eval.cli.output_paths import only_writer
from ci_eval.cli.publish.posting_options import posting_options, tell, tell_none
from ci_eval.cli.shared_options import combined, report_options
from ci_eval.pull_requests import github_runner
from ci_eval.records.errors import CiEvalError, ExitCode
from ci_eval.records.findings import Report
from ci_eval.run.plan import Plan
from ci_eval.runtime.context import RunContext
from ci_eval.text.templates import counted

finishing_options = combined(
    click.option(
        "--baseline-save",
        type=click.Choice(["auto", "always"]),
        is_flag=False,
        flag_value="always",
        help="Store the run: with auto, only if CI runs merged code; with always, or without a "
        "value, unless CI runs unmerged code.",
    ),
    click.option("--section", default="", help="Name of the CI job, or its matrix as JSON."),
    posting_options(default="off"),
    report_options,
)


Work = Callable[[str, Path, dict[str, Any]], int | None]
"""Runs a configuration; returns its exit code, or `None` if it was interrupted."""


def finished(work: Work, config: str, folder: Path, options: dict[str, Any]) -> int:
    """Do the work of a run and return its exit code; if there is no report, publish the reason."""
    env = command_inputs.context_of(Path(config)).env
    try:
        with naming_files(), only_writer(folder):
            code = work(config, folder, options)
    except CiEvalError as exc:
        github_runner.publish(None, folder, exc.exit_code, env, ())
        # An empty selection says nothing about the change.
        is_news = exc.exit_code is not ExitCode.NOTHING_SELECTED
        with apart_from_json(as_json=options["as_json"]):
            tell_none(_why(exc), config, options, is_news=is_news)
        raise
    if code is None:
        github_runner.publish(None, folder, ExitCode.INTERRUPTED, env, ())
        with apart_from_json(as_json=options["as_json"]):
            tell_none("the run was interrupted", config, options, is_news=False)
        return ExitCode.INTERRUPTED
    return code


def _why(error: CiEvalError) -> str:
    """Return the cause of an error, as the end of a sentence."""
    first, *others = error.problems
    more = f", and {counted(len(others), 'more problem')}" if others else ""
    return f"{first}{more}{error.hint and f'; {error.hint}'}"


def publication(
    plan: Plan, context: RunContext, folder: Path, options: dict[str, Any]
) -> Callable[[Report], None]:
    """Return the function that publishes a report as the options request.

    Raises:
        ConfigError: the run is to be stored, but no baseline is configured.

    """
    configured = plan.config
    if options["baseline_save"] == "always":
        command_inputs.require_baseline(configured)

    def publish(report: Report) -> None:
        with apart_from_json(as_json=options["as_json"]):
            console.out_report(report, str(folder), most=console.shown_cases(options["show"]))
        if how := options["baseline_save"]:
            auto = how == "auto"
            baseline_saving.save_after_run(configured, str(folder), context, auto=auto)
        code, reports = EXIT_CODES[report.verdict.outcome], configured.reports
        with apart_from_json(as_json=options["as_json"]):
            github_runner.publish(report, folder, code, context.env, tuple(reports))
            tell(report, options, context, reports)

    return publish
