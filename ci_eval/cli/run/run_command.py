"""`ci-eval run`: runs the pipeline, shows its report, stores the run and publishes it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ci_eval.cli import command_inputs, console
from ci_eval.cli.exit_codes import print_json
from ci_eval.cli.output_paths import refuse_recording
from ci_eval.cli.run.console_progress import run_shard_watched, run_watched
from ci_eval.cli.run.finishing import finished, finishing_options, publication
from ci_eval.cli.run.shard_option import ShardOption, described, exit_code, refuse_other
from ci_eval.cli.shared_options import mode_options, not_empty, planning_options, record_option
from ci_eval.pull_requests.github_runner import publish_shard
from ci_eval.records.errors import UsageError
from ci_eval.records.findings import Report
from ci_eval.run.collect import Outputs
from ci_eval.run.report_assembly import clear
from ci_eval.run_files.file_names import CASSETTES_FOLDER, SHARD_FILE, remove_files
from ci_eval.run_files.shard_files import read_plan
from ci_eval.run_files.stored_document import write_record
from ci_eval.runtime.path_checks import refuse_links_out


@click.command()
@planning_options
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
    help="Start no more trials after this many did not pass.",
)
@click.option("-x", "maxfail", flag_value=1, type=int, help="The same as --maxfail 1.")
@click.option("--resume", is_flag=True, help="Resume the run in --out.")
@click.option(
    "--shard",
    metavar="I/N",
    callback=not_empty,
    help="Run only shard I of N, without a verdict; auto: I/N of the CI job.",
)
@click.option(
    "--plan",
    metavar="FILE",
    callback=not_empty,
    help="Shard plan written by `plan --shards N` or `merge --redraw-plan`.",
)
@click.option("--engine", metavar="NAME", help="Where to run trials: local, or ray.")
@record_option
@mode_options
@click.option("--adk-results", metavar="DIR", help="Write ADK result files for `adk web DIR`.")
@finishing_options
def run(config: str, out: str, **options: Any) -> int:
    """Run the agents, score and compare the results, decide, and write the reports."""
    folder = Path(out)
    if options["shard"]:
        return finished(_shard, config, folder, options)
    if options["plan"]:
        raise UsageError("--plan needs --shard", hint="add `--shard I/N`")
    return finished(_run, config, folder, options)


def _run(config: str, folder: Path, options: dict[str, Any]) -> int | None:
    again = command_inputs.not_passed(folder) if options["failed"] else None
    _refuse_other(config, folder, options)
    _make_room(folder, options["record"], options["adk_results"])
    plan, context = command_inputs.planned(config, options, again=again)
    publish = publication(plan, context, folder, options)
    outputs = replace(_outputs(folder, options), max_failures=options["maxfail"])
    if options["adk_results"]:
        from ci_eval.cli.adk.adk_eval_result_files import Results, run_and_write  # few runs need it

        def say_and_publish(report: Report, _: Results, written: Sequence[str]) -> None:
            for each in written:
                console.say(f"results: {each}")
            publish(report)

        report = run_and_write(plan, context, outputs, options["adk_results"], say_and_publish)
    else:
        report = run_watched(plan, context, outputs, publish)
    if report is None:
        console.say("run again with --resume to continue from there")
        return None
    return console.shown(report, folder, options)


def _shard(config: str, folder: Path, options: dict[str, Any]) -> int | None:
    _refuse_other(config, folder, options)
    _make_room(folder, options["record"])
    kept = folder.absolute() / CASSETTES_FOLDER
    if not options["resume"]:
        remove_files(kept, "[0-9a-f]*.jsonl")
    planned = read_plan(Path(options["plan"]), shown=options["plan"]) if options["plan"] else None
    chosen = planned.chosen.completed(options) if planned else options
    plan, context = command_inputs.planned(config, chosen)
    context = replace(context, cassettes=kept)
    option = ShardOption(plan, context, options, planned)
    done = run_shard_watched(option, context, _outputs(folder, options))
    if done is None:
        console.say("run again with --resume to continue from there")
        return None
    report = context.secrets.cleaned(option.report_of(done, folder))
    write_record(report, folder / SHARD_FILE)
    if options["as_json"]:
        print_json(report.model_dump(mode="json"))
    else:
        console.out(described(report))
    publish_shard(folder, exit_code(report), context.env)
    return exit_code(report)


def _refuse_other(config: str, folder: Path, options: Mapping[str, Any]) -> None:
    """Refuse to resume a run in the folder of another, finished one."""
    if options["resume"]:
        env = command_inputs.context_of(Path(config)).env
        refuse_other(folder, options["shard"], options["plan"], env)


def _make_room(folder: Path, record: str | None, adk_results: str | None = None) -> None:
    """Refuse invalid output paths, and remove the documents of an earlier run.

    Otherwise they would pass for documents of this run if its configuration is invalid.
    """
    refuse_links_out(adk_results)
    refuse_recording(record)
    clear(folder)


def _outputs(folder: Path, options: dict[str, Any]) -> Outputs:
    record = Path(options["record"]).resolve() if options["record"] else None
    return Outputs(folder=folder, record=record, resume=options["resume"])
