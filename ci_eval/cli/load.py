"""From the options of a command to what a stage takes."""

import os
import sys
import time
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

from ci_eval.cli import baseline_policy, console
from ci_eval.config import load as configuration
from ci_eval.config.model import Config
from ci_eval.config.selection import Selection
from ci_eval.forge.job_name import job_name
from ci_eval.plugins.baseline_store import BaselineStore
from ci_eval.pull_requests import github_runner
from ci_eval.records.errors import (
    BaselineError,
    ConfigError,
    NothingSelectedError,
    Problem,
    UsageError,
)
from ci_eval.records.findings import Report
from ci_eval.records.model import Status
from ci_eval.records.results import RunMeta
from ci_eval.run import collect, pipeline
from ci_eval.run.collect import Observed
from ci_eval.run.plan import Plan
from ci_eval.run.plan import plan as make_plan
from ci_eval.run_files.run_file import read_run
from ci_eval.runtime import isolation
from ci_eval.runtime.context import RunContext

RUN_FILE = "run.json"
"""What a run is called in the folder of its reports."""


def context_of(config: Path) -> RunContext:
    """Return the run context of the configuration at `config`."""
    return RunContext(
        env=dict(os.environ),
        root=config.absolute().parent,
        now=time.time,
        folder=str(config.parent),
        say=console.say,
    )


def load(config: str) -> tuple[Config, RunContext]:
    """Return the configuration that the user calls `config`, and its context."""
    path = Path(config)
    context = context_of(path)
    return configuration.load(path, shown=config, context=context), context


def plan(
    config: str, options: Mapping[str, Any], *, again: Path | None = None
) -> tuple[RunContext, Plan]:
    """Return what the options of `run` and `plan` ask for.

    `again` is the folder of a run of which only what did not pass is meant.

    Raises:
        NothingSelectedError: everything passed there.

    """
    loaded, context = load(config)
    context = replace(context, job=job_name(context.env, options.get("section", "")))
    if options.get("judge_mode"):
        loaded = replace(loaded, judging=loaded.judging.in_mode(options["judge_mode"]))
    selection = Selection(
        agents=options["agent"],
        evalsets=options["evalset"],
        cases=options["case"],
        criteria=options["criterion"],
        tags=options["tag"],
        places=_not_passed(again / "run.json") if again else None,
    )
    return context, make_plan(loaded, context, selection=selection, repeats=options["repeats"])


def run(planned: Plan, context: RunContext, outputs: collect.Outputs) -> Report | None:
    """Run, say meanwhile how far it is, and return the report; no report if interrupted."""
    console.say_problems(planned.warnings)
    isolation.close_memory()
    context.clone.look()
    with console.Progress(planned.count, grouped=in_actions(context)) as progress:
        try:
            report = pipeline.run(
                planned, context, replace(outputs, watch=progress, more=progress.more)
            )
        except KeyboardInterrupt:
            console.say(f"interrupted; what was observed is in {outputs.folder}")
            return None
    # What was known before the run was said before it.
    for warning in report.meta.warnings[len(planned.warnings) :]:
        console.say(f"warning: {warning}")
    return report


def _not_passed(path: Path) -> frozenset[tuple[str, str, str]]:
    """Return the agents, evalsets and cases that failed or were errors in a stored run."""
    if not path.exists():
        message = f"there is no {path}, which would say what did not pass"
        raise UsageError(message, hint="run without --failed first")
    found = frozenset(
        (result.key.agent, result.key.evalset, result.key.case)
        for result in read_run(path, shown=str(path)).results()
        if result.status in (Status.FAILED, Status.ERROR)
    )
    if not found:
        raise NothingSelectedError(f"nothing to run again: everything passed in {path}")
    return found


def in_actions(context: RunContext) -> bool:
    """Say whether a GitHub workflow runs this."""
    return context.env.get("GITHUB_ACTIONS") == "true"


def recall(given: str) -> Observed:
    """Return what a run observed, by its file or the report folder that it is in.

    Raises:
        UsageError: there is none.

    """
    path = Path(given) / RUN_FILE if Path(given).is_dir() else Path(given)
    if not path.exists():
        hint = "name a run.json, or the folder that `ci-eval run` wrote"
        raise UsageError(problems=[Problem("no such file", str(path))], hint=hint)
    return pipeline.recall(read_run(path, shown=str(path)))


def require_baseline(config: Config) -> BaselineStore:
    """Return the store of a configuration.

    Raises:
        ConfigError: it has none.

    """
    if config.baseline is None:
        raise ConfigError(f"{config.shown} names no baseline", hint="add `baseline: {store: file}`")
    return config.baseline


def require_suite(config: Config, meta: RunMeta) -> None:
    """Refuse a run of another suite than that of a configuration.

    Raises:
        UsageError: it is one.

    """
    if meta.suite != config.suite:
        raise UsageError(
            f"the run is of the suite {meta.suite!r}, and {config.shown} is that of "
            f"{config.suite!r}",
            hint="name the configuration it was made with: -c FILE",
        )


def stored(config: Config, context: RunContext) -> pipeline.Before:
    """Return the stored runs that a run of what is checked out would be compared with.

    Raises:
        ConfigError: no baseline is configured.
        BaselineError: it cannot be read.

    """
    require_baseline(config)
    return pipeline.load_baseline(config, context) or pipeline.Before(())


def before(config: Config, context: RunContext, meta: RunMeta) -> pipeline.Before | None:
    """Return what the run `meta` is compared with; never with itself."""
    found = pipeline.load_baseline(config, context)
    if found is None:
        return None
    others = [past for past in found.runs if past.meta.run_id != meta.run_id]
    return replace(found, runs=others)


def judge_again(observed: Observed, config: str) -> tuple[Report, Config]:
    """Judge a stored run by the configuration that the user calls `config`, and its baseline."""
    loaded, context = load(config)
    meta = observed.run.meta
    # What it is judged by from now on is what the report says that it was judged by.
    by = loaded.gate.model_dump(mode="json", exclude_defaults=True)
    again = observed.run._replace(meta=meta.model_copy(update={"gate": by}))
    found = observed._replace(run=again)
    return pipeline.judge(found, loaded.gate, before(loaded, context, meta)), loaded


def save_baseline(
    config: Config, given: str, context: RunContext, *, from_pull_request: bool = False
) -> None:
    """Store the run that the user calls `given`.

    Raises:
        UsageError: it is no run, an incomplete one, or one that does not belong there.
        BaselineError: what is stored already cannot be read, or the store not be reached.

    """
    store = require_baseline(config)
    observed = recall(given)
    meta = observed.run.meta
    require_suite(config, meta)
    pipeline.refuse_incomplete(observed, config.gate)
    baseline_policy.check(store, context, from_pull_request=from_pull_request)
    saved = store.save(observed.run, context)
    console.say(f"stored {meta.run_id}" if saved else f"{meta.run_id} was stored already")


def save_of_itself(config: Config, given: str, context: RunContext) -> None:
    """Store a run where nobody asked for it: of what was merged, and not into the work tree."""
    store = config.baseline
    if store and not store.work_tree_file and baseline_policy.is_merged(store, context):
        save_after_run(config, given, context)


def save_after_run(config: Config, given: str, context: RunContext) -> None:
    """Store a run that has a verdict of its own, which nothing here can change."""
    try:
        baseline_policy.check(require_baseline(config), context)
    except UsageError as exc:
        console.say(str(exc))
        return
    try:
        save_baseline(config, given, context)
    except (UsageError, BaselineError) as exc:
        problems = exc.problems or (Problem(str(exc)),)
        warnings = [replace(each, severity="warning") for each in problems]
        console.say_problems(warnings)
        if exc.hint:
            console.say(exc.hint)
        # The runner reads both streams; on stdout there may be JSON.
        with redirect_stdout(sys.stderr):
            github_runner.annotate(warnings, context.env)
