"""`ci-eval baseline save`, `show`, `diff` and `prune`."""

import click

from ci_eval.cli import command_inputs, console
from ci_eval.cli.baseline.baseline_command_output import show_runs, shown_runs
from ci_eval.cli.baseline.baseline_saving import save, why_not
from ci_eval.cli.command_help import Group
from ci_eval.cli.exit_codes import print_json
from ci_eval.cli.gate.comparison_output import print_comparison, show_comparison
from ci_eval.cli.shared_options import config_option, json_option
from ci_eval.run.report_assembly import compare_and_decide
from ci_eval.run_files.file_names import REPORT_FOLDER
from ci_eval.text.templates import counted


@click.group(cls=Group)
def baseline() -> None:
    """Store, show, compare and prune baseline runs.

    RUN is a run.json, or the folder that it is in.
    """


@baseline.command(name="save")
@config_option
@click.argument("run", default=REPORT_FOLDER, type=click.Path())
@click.option(
    "--from-pull-request", is_flag=True, help="Also store runs of unmerged pull requests."
)
@click.option("--yes", is_flag=True, help="Do not ask before the first push to a remote.")
def save_command(config: str, run: str, *, from_pull_request: bool, yes: bool) -> None:
    """Store a run in the baseline, even a failed one, but not an incomplete one.

    In CI, only runs on tracked branches are stored: on pushes, on schedules and by hand, and when
    a pull request is merged.  On a terminal, it asks before the first push to a remote.
    """
    loaded, context = command_inputs.load(config)
    may_ask = not yes and console.is_watched()
    store = command_inputs.require_baseline(loaded)
    refusal = why_not(store, context, from_pull_request=from_pull_request)
    save(loaded, run, context, refusal, may_ask=may_ask)


@baseline.command()
@config_option
@json_option
def show(config: str, *, as_json: bool) -> None:
    """Show the stored runs: first the ones to compare with, the nearest at the top."""
    loaded, context = command_inputs.load(config)
    store = command_inputs.require_baseline(loaded)
    stored = command_inputs.stored_baseline(loaded, context)
    found = shown_runs(stored, loaded.suite, context.now())
    if as_json:
        print_json([each.model_dump(mode="json") for each in found])
    elif not store.stores:
        name = store.type_name
        console.out(f"the store {name!r} keeps no runs: each run also runs the merge base instead")
    else:
        show_runs(found, stored.lineage, loaded.suite, config)


@baseline.command()
@config_option
@click.argument("run", default=REPORT_FOLDER, type=click.Path())
@json_option
def diff(config: str, run: str, *, as_json: bool) -> None:
    """Show what changed between the baseline and a run."""
    loaded, context = command_inputs.load(config)
    command_inputs.require_baseline(loaded)
    collected = command_inputs.stored_run(run)
    meta = collected.run.meta
    command_inputs.require_suite(loaded, meta)
    mode = "both" if loaded.gate.mode == "both" else "regression"
    gate = loaded.gate.model_copy(update={"mode": mode})
    stored = command_inputs.baseline_for(loaded, context, meta)
    base = command_inputs.confirmation_beside(run, meta.run_id, loaded)
    report = compare_and_decide(collected, gate, stored, base, worst=0)
    if as_json:
        print_comparison(report)
    elif report.comparison is None:
        console.out("the baseline has no other run to compare with")
    else:
        show_comparison(report, "the baseline")


@baseline.command()
@config_option
@click.option("--keep", type=click.IntRange(min=1), required=True, help="Number of runs to keep.")
def prune(config: str, keep: int) -> None:
    """Remove stored runs, in stores that keep a history (`branch`, `gcs`).

    Kept are first the runs that a change from here is compared with, nearest first, as `show` lists
    them, then the newest others.
    """
    loaded, context = command_inputs.load(config)
    gone = command_inputs.require_baseline(loaded).prune(loaded.suite, keep, context)
    console.out(f"removed {counted(gone, 'run')}")
