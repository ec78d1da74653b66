"""Runs with progress on the console."""

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from ci_eval.cli import console, logs
from ci_eval.cli.console import say
from ci_eval.records.cases import Status
from ci_eval.records.errors import visible
from ci_eval.records.findings import Report
from ci_eval.records.results import TrialResult
from ci_eval.records.trials import TrialKey
from ci_eval.run import collect, pipeline
from ci_eval.run.collect import Outputs
from ci_eval.run.plan import Plan
from ci_eval.run.requirements import unread_expectations
from ci_eval.run_files import report_phrases
from ci_eval.run_files.file_names import TRACES_FILE
from ci_eval.runtime import isolation
from ci_eval.runtime.context import RunContext
from ci_eval.text.sanitize import one_line
from ci_eval.text.templates import counted, exact, score, terminal

if TYPE_CHECKING:
    from ci_eval.cli.run.shard_option import ShardOption
    from ci_eval.run.merged_shards import MergedShards

MAX_LINES = 40
"""Maximum number of failed trials printed."""
STEPS = 10
"""Number of progress lines where stderr is not a terminal."""


def run_watched(
    plan: Plan,
    context: RunContext,
    outputs: Outputs,
    publish: Callable[[Report], None],
    shards: "MergedShards | None" = None,
) -> Report | None:
    """Run `plan`, show its progress and warnings, and return the report; `None` if interrupted.

    The results of `shards` are reused.
    """
    is_over = False

    def warn_and_publish(report: Report) -> None:
        nonlocal is_over
        is_over = True
        for warning in report.meta.warnings[len(plan.warnings) :]:
            if warning != outputs.progress.told:
                console.say(f"warning: {warning}")
        publish(report)

    count = 0 if shards else plan.count
    outputs = replace(_watched(plan, context, outputs, count), publish=warn_and_publish)
    try:
        return pipeline.run(plan, context, outputs, shards)
    except KeyboardInterrupt:
        if is_over:
            raise  # the run has a verdict, and only its publication was interrupted
        _say_interrupted(outputs)
        return None


def run_shard_watched(
    option: "ShardOption", context: RunContext, outputs: Outputs
) -> pipeline.ShardRun | None:
    """Run a shard, show its progress and warnings, and return its run; `None` if interrupted."""
    plan, redraw = option.part, option.redraw
    outputs = _watched(plan, context, outputs, 0 if redraw else plan.count)
    try:
        return pipeline.run_shard(plan, option.shard, context, outputs, redraw)
    except KeyboardInterrupt:
        _say_interrupted(outputs)
        return None


def _watched(plan: Plan, context: RunContext, outputs: Outputs, count: int) -> Outputs:
    """Show the warnings of a plan, and return outputs with the progress of `count` trials."""
    is_part = plan.filtered or plan.places is not None  # the criteria may be in the other part
    unread = () if is_part else unread_expectations(plan.config, plan.evalsets, plan.pairs)
    console.say_problems([*plan.warnings, *unread])
    isolation.close_memory()
    context.clone.look()
    progress = (
        collect.Progress() if logs.is_quiet() else Progress(count, grouped=context.in_actions)
    )
    return replace(outputs, progress=progress)


def _say_interrupted(outputs: Outputs) -> None:
    traces = outputs.folder / TRACES_FILE
    kept = f"; the finished trials are in {traces}" if traces.is_file() else ""
    console.say(f"interrupted{kept}")


class Progress(collect.Progress):
    """Shows progress: a bar on a terminal, otherwise a bounded number of lines."""

    def __init__(self, count: int, *, grouped: bool) -> None:
        self._count = count
        self._grouped = grouped and count > 0
        self._done = 0
        self._lines = 0
        self._confirmed = 0
        """Number of trials that were added to confirm results."""
        self._ended = dict.fromkeys(Status, 0)
        self._causes: Counter[tuple[str, ...]] = Counter()
        """Number of trials by agent and cause of error."""
        self._first: dict[tuple[str, ...], str] = {}
        """The case whose error was printed, by agent and likeness of the error."""
        self._places: Counter[tuple[str, ...]] = Counter()
        """Number of trials by case and status."""
        self._running: dict[TrialKey, float] = {}
        """The seconds that each running trial has taken so far, at least."""
        self._bar: Any = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._bar = _bar(self._count)
            self._bar.start()
        elif self._grouped:
            sys.stderr.write(f"::group::{counted(self._count, 'trial')}\n")
        elif self._count:
            say(counted(self._count, "trial"))
        return self

    def __exit__(self, *_: object) -> None:
        for (agent, kind, cause), count in self._causes.items():
            if count > 1:
                more = counted(count - 1, "more trial")
                self._print(f"ERROR {agent} · {more}: {kind}: same cause: {one_line(cause, 200)}")
        if self._bar:
            self._bar.stop()
        elif self._grouped:
            sys.stderr.write("::endgroup::\n")

    def began(self, key: TrialKey) -> None:
        """Note that a trial has started."""
        self._running[key] = 0.0

    def waited(self, seconds: float) -> None:
        """Name the running trials, unless a bar already shows that time passes."""
        self._running = {key: took + seconds for key, took in self._running.items()}
        if self._running and not self._bar:
            names = report_phrases.listed(list(dict.fromkeys(key.case for key in self._running)))
            count = counted(len(self._running), "trial")
            say(f"waiting for {count}: {names} ({max(self._running.values()):g} s)")

    def landed(self, result: TrialResult) -> None:
        """Count a result, and print it if it did not pass."""
        self._running.pop(result.key, None)
        self._done += 1
        self._ended[result.status] += 1
        if result.status in (Status.FAILED, Status.ERROR) and self._is_news(result):
            self._lines += 1
            if self._lines <= MAX_LINES:
                self._print(self._line(result))
            elif self._lines == MAX_LINES + 1:
                self._print("… see the reports for the others")
        self._show()

    def advanced(self) -> None:
        """Count a trial of the base arm."""
        self._done += 1
        self._show()

    def _show(self) -> None:
        if self._bar:
            self._bar.advance(self._bar.task_ids[0])
        elif self._count > 5 * STEPS and self._done * STEPS % self._count < STEPS:
            say(f"{self._done}/{self._count} trials: {self._so_far()}")

    def rerun(self, trials: int, base: int) -> None:
        """Add trials, and print the reason."""
        if not trials + base:
            return
        self._count += trials + base
        if self._bar:
            self._bar.update(self._bar.task_ids[0], total=self._count)
        parts = [counted(trials, "more trial")] if trials else []
        parts += [f"{counted(base, 'trial')} of the merge base"] if base else []
        # Many cases may need a few trials each: the reports count those.
        if trials + base > STEPS or not self._confirmed:
            self._print(f"to confirm: {', '.join(parts)}")
        self._confirmed += trials + base

    def reused(self, remark: str, outdated: int) -> None:
        """Print what was reused from the run that this one resumes."""
        super().reused(remark, outdated)
        say(remark)
        if outdated:
            again = f"ran {counted(outdated, 'trial')} again"
            say(f"{again}: the agent, or files of the repository, changed since")

    def _is_news(self, result: TrialResult) -> bool:
        """Return True if its case had no such result yet, or its agent no error of this cause."""
        cause = result.error.cause if result.error else None
        if cause is None:
            place = (*result.key.place, result.status)
            self._places[place] += 1
            return self._places[place] == 1
        self._causes[result.key.agent, *cause] += 1
        return self._causes[result.key.agent, *cause] == 1

    def _line(self, result: TrialResult) -> str:
        """Return one line about a trial that did not pass; shows similar errors only once."""
        key, error = result.key, result.error
        again = f" (repeat {key.repeat + 1})" if key.repeat else ""
        place = " · ".join(map(visible, (key.agent, key.evalset, key.case)))
        name = f"{result.status.upper()} {place}{again}"
        if not error:
            return f"{name}: {_scores(result)}"
        first = self._first.setdefault((key.agent, *error.likeness), key.case)
        if first != key.case:
            return f"{name}: {error.kind}, same as {visible(first)}"
        return f"{name}: {error.kind}: {error.gist}"

    def _so_far(self) -> str:
        counts = {status.value: count for status, count in self._ended.items()}
        base = self._done - sum(counts.values())
        shown = ", ".join(f"{count} {said}" for said, count in counts.items() if count)
        return f"{shown}; {base} of the merge base" if base else shown

    def _print(self, line: str) -> None:
        if self._bar:
            self._bar.console.print(terminal(line), markup=False, highlight=False)
        else:
            say(line)


def _bar(count: int) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    progress.add_task("trials", total=count)
    return progress


def _scores(result: TrialResult) -> str:
    """Return the scores that did not pass."""
    return "; ".join(
        f"{each.name} {score(each.value, each.threshold)} "
        f"{'<' if each.better == 'higher' else '>'} {exact(each.threshold)}"
        if each.value is not None and each.threshold is not None
        else f"{each.name}: {each.reason}"
        for each in result.scores
        if each.status in (Status.FAILED, Status.ERROR)
    )
