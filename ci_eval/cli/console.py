"""The console: results on stdout; progress, warnings and errors on stderr."""

import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import click

from ci_eval.cli import logs
from ci_eval.cli.error_codes import codes_of, error_page
from ci_eval.cli.exit_codes import EXIT_CODES, print_json
from ci_eval.records.comparisons import CaseChange, Comparison
from ci_eval.records.errors import Problem
from ci_eval.records.findings import GroupSummary, Report
from ci_eval.records.results import JudgeUsage
from ci_eval.records.trials import Place
from ci_eval.reporters.case_lines import (
    Line,
    Span,
    Style,
    failure_lines,
    first_case,
    flaked_cases,
    unmeasured_cases,
)
from ci_eval.run_files import report_phrases
from ci_eval.run_files.file_names import PAGE_FILE, REPORT_FOLDER
from ci_eval.text.redact import before_splitting
from ci_eval.text.sanitize import one_line
from ci_eval.text.templates import NUMBERS, counted, dollars, environment, plain, score, terminal

MAX_LISTED = 20
"""Maximum number of list lines printed."""
MAX_PROBLEMS = 50
"""Maximum number of problems printed; the rest are counted."""
MAX_SHOWN = 5
"""Default number of failed cases printed with their evidence."""
MAX_SHOWN_VERBOSE = 50
"""The same with `--verbose`."""
EVIDENCE_LINES = 12
"""Maximum number of lines of each piece of evidence."""
MAX_BROKEN = 5
"""Maximum number of broken or suspected cases printed; the rest are counted."""


MAX_TRACE = 12
"""Maximum number of lines below a problem, such as those of a traceback."""


def say(line: str = "") -> None:
    """Print one line on stderr, without terminal control sequences."""
    sys.stderr.write(terminal(line) + "\n")


def out(line: str = "") -> None:
    """Print one line of a result on stdout, without terminal control sequences."""
    sys.stdout.write(terminal(line) + "\n")


def out_spans(line: Line) -> None:
    """Print one line of sanitized spans on stdout; in color on a terminal."""
    colored = has_color()
    sys.stdout.write("".join(_styled(span, colored=colored) for span in line).rstrip() + "\n")


def has_color() -> bool:
    """Return True if stdout shows colors; `NO_COLOR` and `FORCE_COLOR` take precedence."""
    command = click.get_current_context(silent=True)
    env = (command.find_root().obj if command else None) or {}
    if env.get("NO_COLOR"):
        return False
    return bool(env.get("FORCE_COLOR")) or sys.stdout.isatty()


def width() -> int:
    """Return the number of columns of stdout; 100 if it is not a terminal."""
    return max(40, shutil.get_terminal_size().columns) if sys.stdout.isatty() else 100


def _styled(span: Span, *, colored: bool) -> str:
    if colored:
        return click.style(span.text, **_STYLES[span.style]) if span.style else span.text
    before, after = {"removed": ("[-", "-]"), "added": ("{+", "+}")}.get(span.style, ("", ""))
    return f"{before}{span.text}{after}"


_STYLES: dict[Style, dict[str, Any]] = {
    "strong": {"bold": True},
    "good": {"fg": "green", "bold": True},
    "bad": {"fg": "red", "bold": True},
    "open": {"fg": "yellow", "bold": True},
    "faint": {"dim": True},
    "minus": {"fg": "red"},
    "plus": {"fg": "green"},
    "removed": {"fg": "red", "strikethrough": True},
    "added": {"fg": "green", "underline": True},
}


def out_text(template: str, **values: object) -> None:
    """Print a template of the folder `console` on stdout."""
    for line in text_lines(template, **values):
        out(line)


def text_lines(template: str, **values: object) -> list[str]:
    """Return the lines of a template of the folder `console`; no value can add a line.

    They are not sanitized yet.
    """
    text = _templates().get_template(f"console/{template}").generate(values)
    return "".join(map(str, text)).removesuffix("\n").split("\n")


@cache
def _templates() -> Any:
    """Return the Jinja environment of templates for the console."""
    found = environment().overlay(finalize=lambda value: str(value).replace("\n", " "))
    # The filters of our Markdown templates escape their results.
    own = (*NUMBERS, plain, terminal)
    found.filters = {**found.filters, **{each.__name__: each for each in own}}
    found.globals = {**found.globals, "max_listed": MAX_LISTED}
    found.filters["one_line"] = lambda text, limit: one_line(str(text), limit)
    return found


def say_problems(
    problems: Iterable[Problem], hint: str = "", env: Mapping[str, str] | None = None
) -> None:
    """Print at most `MAX_PROBLEMS` problems, errors first, then the hint and the codes."""
    listed = sorted(problems, key=lambda problem: problem.severity)
    for problem in listed[:MAX_PROBLEMS]:
        first, *others = before_splitting(str(problem)).split("\n")
        say(f"{problem.severity}: {first}" if problem.severity == "warning" else first)
        for line in filter(str.strip, others[:MAX_TRACE]):
            sys.stderr.write(f"  {terminal(line)}\n")
    if len(listed) > MAX_PROBLEMS:
        say(f"… and {len(listed) - MAX_PROBLEMS} more")
    if hint:
        say(hint)
    errors = (each.message for each in listed[:MAX_PROBLEMS] if each.severity == "error")
    if codes := codes_of(errors):
        page = error_page(codes[0], env or {})
        say(f"{', '.join(codes)}: see `ci-eval explain {' '.join(codes)}`{page and f' or {page}'}")


def open_page(path: Path) -> None:
    """Open a written page in the browser; print its path if there is no browser."""
    if click.launch(str(path.resolve())):
        say(f"no browser could be started; open {path}")


def shown(report: Report, folder: Path, options: dict[str, Any]) -> int:
    """Open the page of a report and print it as JSON, as the options request."""
    if options["opens"]:
        open_page(folder / PAGE_FILE)
    if options["as_json"]:
        print_json(report.model_dump(mode="json"))
    return EXIT_CODES[report.verdict.outcome]


def is_watched() -> bool:
    """Return True if the user can answer prompts."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def shown_cases(given: int | None) -> int:
    """Return the number of failed cases to print: as given, or by `--quiet` and `--verbose`."""
    if given is not None:
        return given
    if logs.is_quiet():
        return 0
    return MAX_SHOWN_VERBOSE if logs.is_verbose() else MAX_SHOWN


def out_report(
    report: Report, folder: str, *, run_folder: str | None = None, most: int = MAX_SHOWN
) -> None:
    """Print the first `most` failures, the verdict with its reasons, and the table of criteria.

    `folder` holds the documents, and the run, too, unless that is in `run_folder`.
    """
    for line in failure_lines(report, most=most, lines=EVIDENCE_LINES, width=width()):
        out_spans(line)
    comparison = report.comparison or Comparison()
    places = {(each.group.agent, each.group.evalset) for each in comparison.deltas}
    verdict, *reasons = text_lines(
        "run_verdict.txt.j2",
        report=report,
        comparison=comparison,
        deltas={delta.group: delta for delta in comparison.deltas},
        # Failed cases are already printed above, unless `most` is 0.
        broken=() if most else _broken(comparison),
        most_broken=MAX_BROKEN,
        unmeasured=() if most else unmeasured_cases(report),
        flaked=flaked_cases(report),
        several=len(places) > 1,
        wording=report_phrases,
    )
    style = "open" if report.verdict.undecided else _VERDICTS[report.verdict.outcome]
    out_spans((Span(terminal(verdict), style),))
    for reason in reasons:
        out(reason)
    out()
    out_table(*_criteria_table(report))
    place = first_case(report) if report.verdict.outcome != "passed" else None
    out_text(
        "run_details.txt.j2",
        report=report,
        folder=folder,
        spent=spent,
        wording=report_phrases,
        show=_show_command(report, place, run_folder or folder) if place else "",
    )
    sys.stdout.flush()  # so that later lines on stderr follow it in a log of both


_HEADS = ("agent", "evalset", "criterion", "score", "threshold", "baseline", "passed")
_VERDICTS: dict[str, Style] = {"passed": "good", "failed": "bad", "incomplete": "open"}


def _show_command(report: Report, place: Place, folder: str) -> str:
    """Return the command that shows a whole case; empty if a terminal would alter it."""
    options = ["--agent", place.agent] if len(report.meta.agents) > 1 else []
    options += ["--evalset", place.evalset] if len(report.meta.evalsets) > 1 else []
    options += ["--out", folder] if folder != REPORT_FOLDER else []
    case = [place.case, *options]
    if place.case.startswith("-"):  # like an option
        case = [*options, "--", place.case]
    line = shlex.join(["ci-eval", "show", *case])
    return line if line == terminal(line) else ""


def _criteria_table(report: Report) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return heads and rows of the criteria, without columns that never vary."""
    shown = {
        "agent": len(report.meta.agents) != 1,
        "evalset": len(report.meta.evalsets) != 1,
        "baseline": report.comparison is not None,
    }
    heads = tuple(head for head in _HEADS if shown.get(head, True))
    rows = [dict(zip(_HEADS, _row(group, report), strict=True)) for group in report.groups]
    return heads, [tuple(row[head] for head in heads) for row in rows]


def _broken(comparison: Comparison) -> list[CaseChange]:
    """Return the broken cases, then the suspected ones."""
    found = [
        each
        for each in comparison.changes
        if (each.certain or each.suspected) and not each.excused and report_phrases.trials(each)
    ]
    return sorted(found, key=lambda change: not change.certain)


def out_table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Print a table on stdout; on a terminal that is too narrow, as a list."""
    lines = list(_plain_table(heads, rows))
    if sys.stdout.isatty() and max(map(len, lines)) > width():
        for row in rows:
            out(row[0])
            pairs = zip(heads[1:], row[1:], strict=True)
            cells = ", ".join(f"{head}\N{NO-BREAK SPACE}{cell}" for head, cell in pairs)
            for line in textwrap.wrap(cells, width() - 2, break_long_words=False):
                out_spans((Span(f"  {terminal(line)}"),))
        return
    for number, line in enumerate(lines):
        out_spans((Span(line, "" if number else "strong"),))


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


def _row(group: GroupSummary, report: Report) -> tuple[str, ...]:
    key = group.group
    deltas = report.comparison.deltas if report.comparison else ()
    delta = next((each for each in deltas if each.group == key), None)
    value = _number(group.value, group.threshold)
    return (
        key.agent,
        key.evalset,
        key.criterion,
        "not measured" if group.informational and group.value is None else value,
        _number(group.threshold, group.value),
        _number(report_phrases.stored_mean(delta)),
        "-" if group.informational else _passed(group),
    )


def _passed(group: GroupSummary) -> str:
    """Return the pass count of the measured cases, and the number not measured."""
    measured = group.passed + group.failed
    parts = [f"{group.passed}/{measured}"] if measured else []
    if group.errors:
        parts.append(f"{group.errors} not measured")
    return ", ".join(parts) or "-"


def _number(value: float | None, beside: float | None = None) -> str:
    return "-" if value is None else score(value, beside)


def _plain_table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterable[str]:
    table = [[terminal(cell) for cell in row] for row in (heads, *rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(heads))]
    for row in table:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()
