"""The shard that the options of `ci-eval run` select."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ci_eval.forge import ci_job
from ci_eval.llm.line_file import line_counts
from ci_eval.records.cases import Status
from ci_eval.records.errors import ExitCode, UsageError
from ci_eval.run import shards
from ci_eval.run.pipeline import ShardRun
from ci_eval.run.plan import Plan
from ci_eval.run_files.file_names import CASSETTES_FOLDER, REPORT_FILE, SHARD_FILE
from ci_eval.run_files.report_phrases import listed
from ci_eval.run_files.shard_files import (
    MAX_SHARDS,
    Chosen,
    Shard,
    ShardPlan,
    ShardReport,
    read_plan,
    read_shard_report,
)
from ci_eval.runtime.context import RunContext
from ci_eval.text.fingerprint import fingerprint
from ci_eval.text.templates import counted, duration

_WHOLE = ("failed", "maxfail", "adk_results")
"""Options that apply only to whole suites."""


class ShardOption:
    """One shard of a suite, and how its cases are assigned."""

    def __init__(
        self,
        plan: Plan,
        context: RunContext,
        options: Mapping[str, Any],
        planned: ShardPlan | None = None,
    ) -> None:
        """Read the options of a run; `planned` is the content of `--plan`.

        Raises:
            UsageError: they name no shard, or the plan does not fit the suite.

        """
        _refuse_others(options)
        self._manifest = shards.manifest_of(plan, context)
        self._planned = planned
        if planned and (differences := self._manifest.differences(planned.manifest)):
            message = f"{options['plan']} does not fit the suite: it differs in {differences}"
            is_selected = Chosen.by(options) != Chosen()
            hint = "omit the options that select cases, or " if is_selected else ""
            raise UsageError(message, hint=hint + planned.way_to_make)
        self.shard = _shard_of(options["shard"], context.env, self._planned)
        self.part = shards.part(plan, self.shard, self._planned)
        self.redraw = self._planned.redraw_of(self.shard) if self._planned else None
        self._env = context.env

    def report_of(self, done: ShardRun, folder: Path) -> ShardReport:
        """Return the facts of the finished shard, whose files are in `folder`."""
        run, tally = done.collected
        errors = sum(each.status is Status.ERROR for each in run.results())
        return ShardReport(
            manifest=self._manifest,
            run_id=run.meta.run_id,
            index=self.shard.index,
            total=self.shard.total,
            assignment=fingerprint(self._planned.model_dump(mode="json")) if self._planned else "",
            redraw=self.redraw.redraw if self.redraw else None,
            trials=tally.trials,
            base_trials=done.base_trials,
            unmeasured=errors,
            duration_s=round(done.duration_s, 3),
            recordings=line_counts(folder / CASSETTES_FOLDER),
            workflow_run=ci_job.run_link(self._env),
            attempt=ci_job.attempt(self._env),
            unconfirmed=done.unconfirmed,
            base_is_new=done.base_is_new,
        )


def described(report: ShardReport) -> str:
    """Return one line about a finished shard."""
    trials, took = counted(report.trials, "trial"), duration(report.duration_s)
    if report.base_trials:
        trials += f" and {report.base_trials} of the merge base"
    lost = f", {report.unmeasured} not measured" if report.unmeasured else ""
    return f"shard {report.shard}: {trials} in {took}{lost}; `ci-eval merge` decides"


def exit_code(report: ShardReport) -> ExitCode:
    """Return the exit code of a shard, which decides nothing."""
    return ExitCode.INCOMPLETE if report.unmeasured else ExitCode.PASSED


def _refuse_others(options: Mapping[str, Any]) -> None:
    names = [f"--{name.replace('_', '-')}" for name in _WHOLE if options[name]]
    if options["baseline_save"] == "always":
        names.append("--baseline-save")
    if names:
        message = f"a shard cannot be run with {listed(names)}, which concerns the whole suite"
        raise UsageError(message, hint="leave it out, or run the whole suite in one job")


def _shard_of(given: str, env: Mapping[str, str], planned: ShardPlan | None) -> Shard:
    """Return the shard that `--shard` names, of the plan if there is one.

    Raises:
        UsageError: it names none.

    """
    index, named = _number_in(given, env)
    total = len(planned.shards) if planned else None
    counts = (named, total, ci_job.shard_count(env))
    count = next((each for each in counts if each is not None), None)
    if count is None:
        message = "the number of shards is unknown: set CI_EVAL_SHARDS, or pass a plan with --plan"
        raise UsageError(message)
    if total is not None and count != total:
        named_by = "the environment" if given == "auto" else "--shard"
        message = f"{named_by} says {count} shards, but the plan has {total}"
        raise UsageError(message, hint="start as many jobs as the plan has shards")
    if count > MAX_SHARDS:
        raise UsageError(f"{count} shards are too many; the maximum is {MAX_SHARDS}")
    if not 1 <= index <= count:
        message = f"there is no shard {index}/{count}; they are numbered from 1, up to {count}"
        raise UsageError(message)
    return Shard(index, count, planned.redraw.number if planned and planned.redraw else 0)


def refuse_other(folder: Path, given: str | None, plan: str | None, env: Mapping[str, str]) -> None:
    """Refuse to resume a run in the folder of another, finished run.

    It is the shard that `--shard` names, or the whole suite if that is not given; with the `plan`
    of a redraw, it is a shard of that redraw.

    Raises:
        UsageError: the folder has the report of another run, or `--shard` names no shard.

    """
    path = folder / SHARD_FILE
    if not path.is_file():
        if given and (folder / REPORT_FILE).is_file():
            message = f"{folder} has the report of a whole suite, which would be overwritten"
            raise UsageError(message, hint="pass the folder of the shard to resume as --out")
        return
    found = read_shard_report(path, shown=str(path))
    if given:
        planned = read_plan(Path(plan), shown=plan) if plan else None
        shard = _shard_of(given, env, planned)
        redraw = planned.redraw if planned else None
        if (shard.index, shard.total, redraw) == (found.index, found.total, found.redraw):
            return
    message = f"{folder} has the report of shard {found.shard}, which would be overwritten"
    what = "shard" if given else "run"
    raise UsageError(message, hint=f"pass the folder of the {what} to resume as --out")


def _number_in(given: str, env: Mapping[str, str]) -> tuple[int, int | None]:
    if given == "auto":
        if found := ci_job.shard_number(env):
            return found
        message = (
            "--shard auto found no number of this job: it reads CI_NODE_INDEX (GitLab), "
            "CIRCLE_NODE_INDEX (CircleCI) and JOB_COMPLETION_INDEX (Kubernetes)"
        )
        raise UsageError(message, hint="pass it: `--shard 2/7`")
    if numbers := re.fullmatch(r"(\d{1,4})(?:/(\d{1,4}))?", given, re.ASCII):
        return int(numbers[1]), int(numbers[2]) if numbers[2] else None
    raise UsageError(f"--shard expects a number such as 2/7, or auto, found {given!r}")
