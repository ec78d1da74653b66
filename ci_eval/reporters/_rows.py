"""The table of criteria: one row for each criterion on each evalset with each agent."""

from dataclasses import dataclass
from typing import Literal

from ci_eval.findings import Delta, GroupKey, GroupSummary, Report

_MARKS = ("blocks", "warns", "good", "none")


@dataclass(frozen=True)
class Row:
    """What became of one criterion."""

    summary: GroupSummary
    delta: Delta | None
    mark: Literal["blocks", "warns", "good", "none"]
    word: str
    """What is to be said of it."""


def rows_of(report: Report) -> list[Row]:
    """Return the rows, those that block first, else in the order of the report."""
    comparison = report.comparison
    deltas = {delta.group: delta for delta in (comparison.deltas if comparison else ())}
    named = {each.group for each in report.verdict.reasons if each.severity == "blocks"}
    rows = [_row(report, each, deltas.get(each.group), named) for each in report.groups]
    return sorted(rows, key=lambda row: _MARKS.index(row.mark))


def judged_by_threshold(report: Report) -> bool:
    """Say whether a case below a threshold counts against the verdict by itself."""
    return report.verdict.mode != "regression" or report.comparison is None


def _row(
    report: Report, summary: GroupSummary, delta: Delta | None, named: set[GroupKey | None]
) -> Row:
    regressed = delta is not None and delta.outcome == "regressed"
    failed = summary.failed > 0 and judged_by_threshold(report) and not summary.informational
    mark: Literal["blocks", "warns", "good", "none"] = "none"
    if (
        summary.group in named
        or (regressed and report.verdict.mode != "threshold")
        or (failed and report.verdict.outcome == "failed")
    ):
        mark = "blocks"
    elif failed or regressed or summary.errors or (delta and delta.outcome == "inconclusive"):
        mark = "warns"
    elif summary.passed + summary.failed:
        mark = "good"
    return Row(summary, delta, mark, _word(report, summary, delta))


def _word(report: Report, summary: GroupSummary, delta: Delta | None) -> str:
    if not summary.passed + summary.failed:
        return "not measured" if summary.errors else "not applicable"
    words = []
    if delta and summary.errors and delta.outcome in ("improved", "unchanged"):
        words.append("incomplete")  # what was not measured could have said otherwise
    elif delta:
        words.append(delta.outcome.replace("_", " "))
    elif report.comparison:
        words.append("new")
    if judged_by_threshold(report) and not summary.informational:
        words.append("failed" if summary.failed else "incomplete" if summary.errors else "passed")
    return ", ".join(dict.fromkeys(words))
