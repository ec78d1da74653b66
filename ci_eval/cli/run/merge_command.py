"""`ci-eval merge`: makes one run of the reports of shards, and decides."""

import glob
from functools import partial
from pathlib import Path
from typing import Any

import click

from ci_eval.cli import command_inputs, console
from ci_eval.cli.run.console_progress import run_watched
from ci_eval.cli.run.finishing import finished, finishing_options, publication
from ci_eval.cli.shared_options import (
    config_option,
    judge_mode_option,
    models_option,
    repeats_option,
    selection_options,
)
from ci_eval.records.errors import UsageError
from ci_eval.run import shards
from ci_eval.run.arms import base_folder
from ci_eval.run.collect import Outputs
from ci_eval.run.merged_shards import gathered
from ci_eval.runtime.path_checks import refuse_file, refuse_links_out


@click.command()
@click.argument("reports", nargs=-1, required=True, metavar="REPORT...", type=click.Path())
@config_option
@selection_options
@repeats_option
@judge_mode_option
@models_option
@finishing_options
def merge(reports: tuple[str, ...], config: str, out: str, *, as_json: bool, **options: Any) -> int:
    """Merge the reports of shards, decide, and write the reports of the suite.

    REPORT is the output directory of `ci-eval run --shard I/N`, or a pattern of several. If the
    verdict is in doubt, the agents are run again. Options that select cases must be those of the
    shards.
    """
    folder = Path(out)
    work = partial(_merge, reports, config, folder, options, as_json=as_json)
    return finished(config, folder, options, work, as_json=as_json)


def _folders(given: str) -> list[Path]:
    """Return the folder that is named, or all that fit a pattern."""
    found = sorted(glob.glob(given)) if glob.has_magic(given) else []  # noqa: PTH207  # Path.glob refuses absolute ones
    return [Path(each) for each in found or [given]]


def _merge(
    reports: tuple[str, ...], config: str, folder: Path, options: dict[str, Any], *, as_json: bool
) -> int | None:
    refuse_links_out(str(folder))
    refuse_file(str(folder))
    plan, context = command_inputs.planned(config, options, runs_python=True)
    folders = [folder for each in reports for folder in _folders(each)]
    written = {folder.resolve(), base_folder(folder).resolve()}
    if written & {each.resolve() for each in folders}:
        raise UsageError(f"--out {folder} is one of the reports", hint="name another directory")
    found = gathered(folders, shards.manifest_of(plan, context))
    console.say_problems(found.warnings)
    console.say(found.summary)
    publish = publication(plan, context, folder, options, as_json=as_json)
    report = run_watched(plan, context, Outputs(folder=folder), publish, found)
    return None if report is None else console.shown(report, folder, options, as_json=as_json)
