"""`ci-eval compare` and `ci-eval gate …`."""

from pathlib import Path
from typing import Any

import click

from ci_eval.cli import command_inputs, console
from ci_eval.cli.command_help import Group
from ci_eval.cli.exit_codes import EXIT_CODES, print_json
from ci_eval.cli.gate import verdict_explanation
from ci_eval.cli.gate.comparison_output import print_comparison, show_comparison, show_explanation
from ci_eval.cli.gate.power_analysis import Asked, outlook
from ci_eval.cli.gate.power_costs import taken
from ci_eval.cli.gate.power_output import show_outlook
from ci_eval.cli.shared_options import NumberRange, config_option, json_option, other_config_option
from ci_eval.config.config_schema import GateOptions
from ci_eval.config.validated_config import Config
from ci_eval.plugins import points
from ci_eval.records.errors import ExitCode, Problem, UsageError
from ci_eval.records.findings import Report
from ci_eval.run.baseline_choice import Baseline
from ci_eval.run.collect import Collected
from ci_eval.run.report_assembly import MAX_WORST, compare_and_decide
from ci_eval.run_files import report_phrases
from ci_eval.run_files.file_names import REPORT_FILE, REPORT_FOLDER
from ci_eval.run_files.report_file import read_report
from ci_eval.run_files.run_file import redacted, replacing
from ci_eval.run_files.score_table import Past
from ci_eval.runtime.context import RunContext
from ci_eval.text.json_stream import JsonFile
from ci_eval.text.json_text import RESULT_DEPTH
from ci_eval.text.redact import Secrets

_SHARE = NumberRange(0, 1, min_open=True, max_open=True)


@click.command()
@click.argument("before", type=click.Path())
@click.argument("after", type=click.Path())
@other_config_option("Configuration whose `gate` settings to use.")
@click.option("--false-block", type=_SHARE, help="Maximum rate of false regressions.")
@click.option(
    "--max-drop", type=NumberRange(0, 1), help="Smallest drop that counts as a regression."
)
@click.option("--gate", is_flag=True, help="Exit with the code of the verdict.")
@click.option(
    "--html", type=click.Path(dir_okay=False, path_type=Path), help="Write both as an HTML page."
)
@json_option
def compare(before: str, after: str, *, gate: bool, as_json: bool, **options: Any) -> int:
    """Compare the run AFTER with the run BEFORE: each a run.json, or the folder that it is in."""
    config = options["config"]
    gate_options, own = GateOptions(), Secrets({})
    if config:
        loaded, context = command_inputs.load(config)
        gate_options, own = loaded.gate, context.secrets
    by = _gate(gate_options, options["false_block"], options["max_drop"])
    base, observed = command_inputs.stored_run(before), command_inputs.stored_run(after)
    _refuse_strangers(base, observed, before, after)
    runs = [Past(base.run.meta, base.tally.columns)]
    page: Path | None = options["html"]
    secrets = command_inputs.secrets_of(base.run, observed.run).with_more(own.given)
    found = compare_and_decide(observed, by, Baseline(runs), worst=MAX_WORST if page else 0)
    found = secrets.cleaned(found)
    if page:
        page.parent.mkdir(parents=True, exist_ok=True)
        with replacing(page) as file:
            after_and_before = (redacted(each.run, secrets) for each in (observed, base))
            file.writelines(points.reporter["html"]().of_run(found, *after_and_before))
    if as_json:
        print_comparison(found)
    else:
        show_comparison(found, before)
        if gate:
            verdict = "not decided" if found.verdict.undecided else found.verdict.outcome
            console.out(f"{verdict.upper()}{report_phrases.part(found.meta)}")
    return EXIT_CODES[found.verdict.outcome] if gate else ExitCode.PASSED


def _gate(gate: GateOptions, false_block: float | None, max_drop: float | None) -> GateOptions:
    """Return the gate options for a comparison."""
    given = {"false_block": false_block, "max_drop": max_drop}
    said = {name: value for name, value in given.items() if value is not None}
    mode = "both" if gate.mode == "both" else "regression"
    # Trials of stored runs cannot be rerun.
    again = "warn" if gate.on_inconclusive == "rerun" else gate.on_inconclusive
    return gate.model_copy(update={"mode": mode, "on_inconclusive": again, **said})


def _refuse_strangers(base: Collected, observed: Collected, before: str, after: str) -> None:
    """Reject two runs that cannot be compared.

    Raises:
        UsageError: they are the same, or have no criterion in common.

    """
    if base.run.meta.run_id == observed.run.meta.run_id:
        message = f"{before} and {after} are the same run, {base.run.meta.run_id}"
        raise UsageError(message, hint="write each run to its own directory with --out")
    if not base.tally.columns.groups.keys() & observed.tally.columns.groups.keys():
        message = f"{before} and {after} have no agent, evalset and criterion in common"
        raise UsageError(
            message, hint=f"they belong to {_described(base)} and to {_described(observed)}"
        )


def _with_merge_base(loaded: Config, context: RunContext) -> frozenset[str]:
    """Return the agents whose merge base a run in doubt would run in the same job."""
    gate = loaded.gate
    if gate.never_confirms or gate.confirm != "both" or context.clone.top is None:
        return frozenset()
    return frozenset(name for name, agent in loaded.agents.items() if agent.of_base())


def _described(observed: Collected) -> str:
    meta = observed.run.meta
    agents, evalsets = ", ".join(meta.agents), ", ".join(meta.evalsets)
    return f"{meta.suite!r} ({agents} on {evalsets} by {', '.join(meta.criteria)})"


@click.group(cls=Group)
def gate() -> None:
    """Explain verdicts, and estimate the drops that the gate can detect."""


@gate.command()
@click.argument("run", default=REPORT_FOLDER, type=click.Path())
@other_config_option("Reevaluate with this configuration and its baseline.")
@json_option
def explain(run: str, config: str | None, *, as_json: bool) -> None:
    """Explain a verdict, with the numbers behind it.

    RUN is a report directory, its report.json, or a run.json, which is reevaluated.
    """
    found = verdict_explanation.explain(report_of(run, config))
    if as_json:
        print_json(found.model_dump(mode="json"))
    else:
        show_explanation(found)


@gate.command()
@config_option
@click.option("--drop", type=_SHARE, help="Show what it takes to detect a drop of this size.")
@click.option(
    "--power", type=_SHARE, default=0.8, show_default=True, help="Probability of detecting it."
)
@click.option("--run", type=click.Path(), help="Stored run to take durations and judge costs from.")
@json_option
def power(config: str, drop: float | None, *, power: float, run: str | None, as_json: bool) -> None:
    """Estimate the smallest drop the gate can detect, and the cost of detecting more."""
    loaded, context = command_inputs.load(config)
    store = command_inputs.require_baseline(loaded)
    if not store.stores:
        message = (
            f"the variance of the cases is unknown: the store {store.type_name!r} keeps no runs"
        )
        hint = (
            "each run also runs the merge base instead; to estimate power, store two runs with a "
            "copy of the configuration that has `baseline: {store: file}`, and pass it with -c"
        )
        raise UsageError(message, hint=hint)
    stored = command_inputs.stored_baseline(loaded, context)
    observed = command_inputs.stored_run(run) if run else None
    if observed:
        command_inputs.require_suite(loaded, observed.run.meta)
    history = store.history(loaded.suite, context)
    judged = any(each.judged for each in loaded.criteria.values())
    asked = Asked(
        loaded.suite,
        loaded.gate,
        loaded.run.repeats,
        store.window,
        power,
        drop,
        _with_merge_base(loaded, context),
        config,
    )
    found = outlook(asked, stored, taken(stored.runs, history, observed, judged=judged))
    if as_json:
        print_json(found.model_dump(mode="json"))
    else:
        show_outlook(found)


def report_of(given: str, config: str | None) -> Report:
    """Return the report of the run at `given`.

    A stored report is returned unchanged, unless a `config` is given.  Otherwise, the run is
    reevaluated.

    Raises:
        UsageError: there is no report and no run, or no configuration to reevaluate it with.

    """
    path = Path(given)
    written = path / REPORT_FILE if path.is_dir() else path
    if config is None and written.is_file() and _is_report(written):
        return _with_criteria(read_report(written, shown=str(written)), str(written))
    collected = command_inputs.stored_run(given)
    return command_inputs.judge_again(given, collected, config)[0]


def _with_criteria(report: Report, shown: str) -> Report:
    """Return `report`, if its run describes all of its criteria.

    Raises:
        UsageError: it mentions an unknown criterion.

    """
    deltas = report.comparison.deltas if report.comparison else ()
    groups = [*(each.group for each in report.groups), *(each.group for each in deltas)]
    named = dict.fromkeys(group.criterion for group in groups)
    problems = [
        Problem(f"the run has no criterion {name!r}", shown)
        for name in named
        if name not in report.meta.criteria
    ]
    if problems:
        raise UsageError(problems=problems)
    return report


def _is_report(path: Path) -> bool:
    """Return True if a file is a report by its name or content; a run has no totals."""
    if path.name == REPORT_FILE:
        return True
    head = JsonFile(path, shown=str(path), max_depth=RESULT_DEPTH).head()
    return isinstance(head, dict) and "totals" in head
