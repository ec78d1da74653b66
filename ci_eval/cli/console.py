"""Progress and results of a run on the console, all on stderr."""

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Self

from ci_eval.records.cases import Status
from ci_eval.records.errors import Problem
from ci_eval.records.findings import CaseChange, Comparison, GroupSummary, Report
from ci_eval.records.results import JudgeUsage, TrialResult
from ci_eval.run import collect
from ci_eval.run.cost_estimate import Estimate
from ci_eval.run_files import report_phrases
from ci_eval.text.sanitize import one_line
from ci_eval.text.templates import (
    counted,
    difference,
    dollars,
    duration,
    environment,
    p_value,
    percent,
    plain,
    terminal,
)

MAX_LINES = 40
"""Maximum number of failed trials printed."""
MAX_LISTED = 20
"""Maximum number of list lines printed."""
MAX_PROBLEMS = 50
"""Maximum number of problems printed; the rest are counted."""
MAX_BROKEN = 5
"""Maximum number of broken or suspected cases printed; the rest are counted."""
STEPS = 10
"""Number of progress lines where stderr is not a terminal."""


def say(line: str = "") -> None:
    """Print one line, without terminal control sequences."""
    sys.stderr.write(terminal(line) + "\n")


def say_text(template: str, **values: object) -> None:
    """Print a template of the folder `console`."""
    for line in text_lines(template, **values):
        say(line)


def text_lines(template: str, **values: object) -> list[str]:
    """Return the lines of a template of the folder `console`; no value can add a line.

    They are not made harmless yet.
    """
    text = _templates().get_template(f"console/{template}").generate(values)
    return "".join(map(str, text)).removesuffix("\n").split("\n")


@cache
def _templates() -> Any:
    """Return the Jinja environment of templates for the console."""
    found = environment().overlay(finalize=lambda value: str(value).replace("\n", " "))
    # Those of our Markdown templates escape what they return.
    own = (counted, difference, dollars, duration, p_value, percent, plain, terminal)
    found.filters = {**found.filters, **{each.__name__: each for each in own}}
    found.globals = {**found.globals, "max_listed": MAX_LISTED}
    found.filters["one_line"] = lambda text, limit: one_line(str(text), limit)
    return found


def say_problems(problems: Iterable[Problem]) -> None:
    """Print at most `MAX_PROBLEMS` problems, errors first."""
    listed = sorted(problems, key=lambda problem: problem.severity)
    for problem in listed[:MAX_PROBLEMS]:
        say(f"{problem.severity}: {problem}" if problem.severity == "warning" else str(problem))
    if len(listed) > MAX_PROBLEMS:
        say(f"… and {len(listed) - MAX_PROBLEMS} more")


def say_list(title: str, lines: Sequence[str]) -> None:
    """Print a titled list of at most `MAX_LISTED` lines, or nothing if it is empty."""
    if not lines:
        return
    say()
    say(f"{title} ({len(lines)}):")
    for line in lines[:MAX_LISTED]:
        say(f"- {one_line(line, 300)}")
    if len(lines) > MAX_LISTED:
        say(f"… and {len(lines) - MAX_LISTED} more; --json has all")


class Progress(collect.Progress):
    """Shows progress: a bar on a terminal, otherwise a bounded number of lines."""

    def __init__(self, count: int, *, grouped: bool) -> None:
        self._count = count
        self._grouped = grouped
        self._done = 0
        self._lines = 0
        self._ended = dict.fromkeys(Status, 0)
        self._causes: Counter[tuple[str, ...]] = Counter()
        """Number of trials by agent and cause of error."""
        self._bar: Any = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._bar = _bar(self._count)
            self._bar.start()
        elif self._grouped:
            sys.stderr.write(f"::group::{self._count} trials\n")
        else:
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

    def landed(self, result: TrialResult) -> None:
        """Count a result, and print it if it did not pass."""
        self._done += 1
        self._ended[result.status] += 1
        if result.status in (Status.FAILED, Status.ERROR) and self._is_news(result):
            self._lines += 1
            if self._lines <= MAX_LINES:
                self._print(_line(result))
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
        elif self._count > STEPS and self._done * STEPS % self._count < STEPS:
            say(f"{self._done}/{self._count}: {self._so_far()}")

    def rerun(self, trials: int) -> None:
        """Add trials, and print the reason."""
        if not trials:
            return
        self._count += trials
        if self._bar:
            self._bar.update(self._bar.task_ids[0], total=self._count)
        self._print(f"inconclusive: running {counted(trials, 'more trial')}")

    def reused(self, trials: int, invocations: int) -> None:
        """Print what was reused from the run that this one resumes."""
        begun = f", and {counted(invocations, 'invocation')} of others" if invocations else ""
        say(f"reused {counted(trials, 'trial')}{begun} from the previous run")

    def _is_news(self, result: TrialResult) -> bool:
        """Return True if this is the agent's first error with this cause."""
        cause = result.error.cause if result.error else None
        if cause is None:
            return True
        self._causes[result.key.agent, *cause] += 1
        return self._causes[result.key.agent, *cause] == 1

    def _so_far(self) -> str:
        return ", ".join(f"{count} {status}" for status, count in self._ended.items() if count)

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


def _line(result: TrialResult) -> str:
    """Return one line about a trial that did not pass."""
    key = result.key
    again = f" (repeat {key.repeat + 1})" if key.repeat else ""
    name = f"{result.status.upper()} {key.agent} · {key.evalset} · {key.case}{again}"
    if result.error:
        return f"{name}: {result.error.kind}: {result.error.gist}"
    said = [
        f"{score.name} {plain(score.value)} {'<' if score.better == 'higher' else '>'} "
        f"{score.threshold:g}"
        if score.value is not None and score.threshold is not None
        else f"{score.name}: {score.reason}"
        for score in result.scores
        if score.status in (Status.FAILED, Status.ERROR)
    ]
    return f"{name}: {'; '.join(said)}"


def say_report(report: Report, folder: str) -> None:
    """Print the verdict with its reasons, and the table of criteria."""
    comparison = report.comparison or Comparison()
    places = {(each.group.agent, each.group.evalset) for each in comparison.deltas}
    say_text(
        "run_verdict.txt.j2",
        report=report,
        comparison=comparison,
        deltas={delta.group: delta for delta in comparison.deltas},
        broken=_broken(comparison),
        most_broken=MAX_BROKEN,
        several=len(places) > 1,
        wording=report_phrases,
    )
    say()
    rows = [_row(group, report) for group in report.groups]
    heads = ("agent", "evalset", "criterion", "score", "threshold", "baseline", "passed")
    say_table(heads, rows)
    say_text(
        "run_details.txt.j2", report=report, folder=folder, spent=spent, wording=report_phrases
    )


def _broken(comparison: Comparison) -> list[CaseChange]:
    """Return the broken cases, then the suspected ones."""
    found = [
        each
        for each in comparison.changes
        if (each.certain or each.suspected) and not each.excused and report_phrases.trials(each)
    ]
    return sorted(found, key=lambda change: not change.certain)


def say_table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Print a table: formatted on a terminal, plain otherwise."""
    if sys.stderr.isatty():
        _rich_table(heads, rows)
    else:
        sys.stderr.writelines(f"{line}\n" for line in _plain_table(heads, rows))


def spent(usage: JudgeUsage) -> str:
    """Describe model usage in a phrase."""
    tokens = usage.input_tokens + usage.output_tokens
    parts = [counted(usage.calls, "call"), f"{counted(usage.cached, 'answer')} from the cache"]
    if usage.calls:
        parts.append(counted(tokens, "token"))
    if usage.unpriced < usage.calls:
        parts.append(dollars(usage.cost_usd))
    if usage.unpriced:
        parts.append(f"{counted(usage.unpriced, 'call')} at unknown cost")
    return ", ".join(parts)


def describe_estimate(estimate: Estimate) -> str:
    """Describe the model calls that a criterion would make."""
    calls = _range(*(f"{each:,}" for each in estimate.calls))
    tokens = _range(*(f"{each:,}" for each in estimate.input_tokens))
    cost = _range(*map(dollars, estimate.cost_usd)) if estimate.cost_usd else "unknown"
    models = ", ".join(estimate.models)
    samples = counted(estimate.samples, "sample")
    return (
        f"{estimate.criterion}: {calls} calls of {models} ({samples}), about {tokens} tokens in, "
        f"cost {cost}; less if answers are cached"
    )


def _range(least: str, most: str) -> str:
    return least if least == most else f"{least} to {most}"


def _row(group: GroupSummary, report: Report) -> tuple[str, ...]:
    key = group.group
    deltas = report.comparison.deltas if report.comparison else ()
    delta = next((each for each in deltas if each.group == key), None)
    return (
        key.agent,
        key.evalset,
        key.criterion,
        _number(group.value),
        _number(group.threshold),
        _number(delta.baseline if delta else None),
        "-" if group.informational else _passed(group),
    )


def _passed(group: GroupSummary) -> str:
    """Return the pass count of the measured cases, and the number not measured."""
    measured = group.passed + group.failed
    parts = [f"{group.passed}/{measured}"] if measured else []
    if group.errors:
        parts.append(f"{group.errors} not measured")
    return ", ".join(parts) or "-"


def _number(value: float | None) -> str:
    return "-" if value is None else plain(value)


def _plain_table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterable[str]:
    table = [[terminal(cell) for cell in row] for row in (heads, *rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(heads))]
    for row in table:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()


def _rich_table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*heads, box=box.SIMPLE_HEAD)
    for row in rows:
        table.add_row(*(Text(terminal(cell)) for cell in row))
    Console(stderr=True).print(table)
