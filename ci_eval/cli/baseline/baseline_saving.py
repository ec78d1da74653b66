"""Storing of runs in the baseline, on request or after a run."""

import sys
from contextlib import redirect_stdout
from dataclasses import replace

import click

from ci_eval.cli import command_inputs, console
from ci_eval.cli.baseline import baseline_save_policy
from ci_eval.config.config_schema import GateOptions
from ci_eval.config.validated_config import Config
from ci_eval.gate.case_counts import count_cases
from ci_eval.pull_requests import github_runner
from ci_eval.records.errors import BaselineError, UsageError
from ci_eval.records.findings import Totals
from ci_eval.run.collect import Collected
from ci_eval.run_files.report_phrases import named_shards
from ci_eval.runtime.context import RunContext
from ci_eval.text.templates import counted


def save(
    config: Config,
    given: str,
    context: RunContext,
    refusal: UsageError | None,
    *,
    may_ask: bool = False,
) -> None:
    """Store the run at `given`; with `may_ask`, ask before creating something on a remote.

    `refusal` is the policy's reason not to store it, if any.

    Raises:
        UsageError: it is not a run, is incomplete, or does not belong in the baseline.
        BaselineError: the stored runs cannot be read, or the store cannot be reached.

    """
    store = command_inputs.require_baseline(config)
    collected = command_inputs.stored_run(given)
    meta = collected.run.meta
    command_inputs.require_suite(config, meta)
    failed = _complete(collected, config.gate).failed
    if refusal:
        raise refusal
    if may_ask and (created := store.first_push(config.suite, context)):
        click.confirm(f"Create the {created}?", default=True, abort=True)
    saved = store.save(collected.run, context)
    stored = f"stored {meta.run_id}" if saved else f"{meta.run_id} is already stored"
    console.say(f"{stored}: {store.place(context)}")
    if saved and store.by_commit and meta.commit and not store.lineage(context).own:
        console.say(
            f"stored for commit {meta.commit[:10]}, although files have changed since: "
            "store it again once they are committed"
        )
    if saved and failed:
        console.say(
            f"{counted(failed, 'case')} failed in this run; later failures of these do not block"
        )


def save_if_merged(config: Config, given: str, context: RunContext) -> None:
    """Store a run automatically: only of merged code, and never in the work tree."""
    store = config.baseline
    if store and store.stores:
        refusal = baseline_save_policy.why_not_unasked(store, context)
        _save_unless(refusal, config, given, context)


def save_after_run(config: Config, given: str, context: RunContext) -> None:
    """Store a run after its verdict; failures are warnings."""
    refusal = baseline_save_policy.why_not(command_inputs.require_baseline(config), context)
    _save_unless(refusal, config, given, context)


def _save_unless(
    refusal: UsageError | None, config: Config, given: str, context: RunContext
) -> None:
    if refusal:
        console.say(str(refusal))
        return
    try:
        save(config, given, context, None)
    except (UsageError, BaselineError) as exc:
        warnings = [replace(each, severity="warning") for each in exc.problems]
        console.say_problems(warnings)
        if exc.hint:
            console.say(exc.hint)
        # The runner reads both streams; on stdout there may be JSON.
        with redirect_stdout(sys.stderr):
            github_runner.annotate(warnings, context.env)


def _complete(collected: Collected, gate: GateOptions) -> Totals:
    """Return the outcomes of the cases of a complete run.

    Raises:
        UsageError: the run is incomplete.

    """
    meta = collected.run.meta
    cases = count_cases(meta, collected.tally.columns, gate)
    if meta.missing_shards:
        message = f"no report of {named_shards(meta.missing_shards)}"
    elif cases.errors > gate.max_errors:
        message = f"{cases.errors} of {cases.cases} cases could not be measured"
    elif meta.filtered:
        message = "the run covers only part of the suite"
    elif not cases.passed + cases.failed + cases.accepted:
        message = "the run measured nothing"
    elif cases.unjudged:
        count = cases.unjudged.count
        message = f"{counted(count, 'case')} of {cases.cases} not judged by any blocking criterion"
    else:
        return cases
    raise UsageError(f"not stored: {message}")
