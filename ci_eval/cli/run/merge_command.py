"""`ci-eval merge`: combines the reports of shards into one run, and decides."""

import glob
import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from ci_eval.cli import command_inputs, console
from ci_eval.cli.exit_codes import print_json
from ci_eval.cli.output_paths import refuse_plan
from ci_eval.cli.plan_command import shards_json
from ci_eval.cli.run.console_progress import run_watched
from ci_eval.cli.run.finishing import finished, finishing_options, publication
from ci_eval.cli.shared_options import mode_options, not_empty, planning_options
from ci_eval.pull_requests import github_runner
from ci_eval.records.errors import ExitCode, UsageError
from ci_eval.run import shards
from ci_eval.run.arms import base_folder
from ci_eval.run.collect import Outputs
from ci_eval.run.merged_shards import InDoubtError, gathered
from ci_eval.run.rerun import why_none
from ci_eval.run_files.shard_files import Chosen, ShardPlan
from ci_eval.run_files.stored_document import write_record
from ci_eval.runtime.context import RunContext
from ci_eval.text.templates import counted


@click.command()
@click.argument("reports", nargs=-1, required=True, metavar="REPORT...", type=click.Path())
@planning_options
@mode_options
@click.option(
    "--redraw-plan",
    metavar="FILE",
    callback=not_empty,
    help="If the verdict is in doubt, write a plan of more trials instead of running them.",
)
@finishing_options
def merge(reports: tuple[str, ...], config: str, out: str, **options: Any) -> int:
    """Merge the reports of shards, decide, and write the reports of the suite.

    REPORT is the output directory of `ci-eval run --shard I/N`, or a pattern that matches several.
    If the verdict is in doubt, more trials are run: by this command or, with --redraw-plan, in
    shards whose reports you then merge with the others. Pass the same options that select cases as
    for the shards.
    """
    return finished(partial(_merge, reports), config, Path(out), options)


def _folders(given: str) -> list[Path]:
    """Return the named folder, or all folders that match a pattern."""
    found = sorted(glob.glob(given)) if glob.has_magic(given) else []  # noqa: PTH207  # Path.glob refuses absolute ones
    return [Path(each) for each in found or [given]]


def _merge(
    reports: tuple[str, ...], config: str, folder: Path, options: dict[str, Any]
) -> int | None:
    file = options["redraw_plan"]
    refuse_plan(file)
    plan, context = command_inputs.planned(config, options, runs_agents=not file)
    if file and (why := why_none(plan)):
        message = f"--redraw-plan has nothing to plan: {why}"
        raise UsageError(message, hint="leave it out")
    folders = [folder for each in reports for folder in _folders(each)]
    written = {folder.resolve(), base_folder(folder).resolve()}
    if written & {each.resolve() for each in folders}:
        raise UsageError(f"--out {folder} is one of the reports", hint="name another directory")
    if file:
        Path(file).unlink(missing_ok=True)
    found = gathered(folders, shards.manifest_of(plan, context))
    console.say_problems(found.warnings)
    for each in (found.planned, *found.redraws):
        context.say(each.summary)
    publish = publication(plan, context, folder, options)
    found = replace(found, leaves_doubt=bool(file))
    try:
        report = run_watched(plan, context, Outputs(folder=folder), publish, found)
    except InDoubtError as exc:
        return _leave_doubt(exc.plan, folder, context, options)
    return None if report is None else console.shown(report, folder, options)


def _leave_doubt(
    plan: ShardPlan, folder: Path, context: RunContext, options: dict[str, Any]
) -> int:
    """Write the plan of the trials that would settle the verdict, and report no verdict."""
    file = options["redraw_plan"]
    write_record(plan.model_copy(update={"chosen": Chosen.by(options)}), Path(file))
    shown = shards_json(plan)
    if options["as_json"]:
        print_json({"redraw": plan.redraw and plan.redraw.number, **shown})
    else:
        total = len(plan.shards)
        trials = counted(sum(each.trials for each in plan.shards), "more trial")
        console.out(f"INCOMPLETE: the verdict is in doubt, and {trials} may settle it")
        how = context.command("run", "--shard", f"I/{total}", "--plan", file)
        console.out(f"run `{how}`, then merge all reports")
    github_runner.append_outputs({"matrix": json.dumps(shown["matrix"])}, context.env)
    github_runner.publish(None, folder, ExitCode.INCOMPLETE, context.env, ())
    return ExitCode.INCOMPLETE
