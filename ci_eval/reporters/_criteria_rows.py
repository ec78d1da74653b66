"""Table of criteria: one row for each criterion on each evalset with each agent."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ci_eval.records.findings import Delta, GroupKey, GroupSummary, Report
from ci_eval.run_files import report_phrases

Mark = Literal["blocks", "warns", "good", "none"]
FEW = 10
"""The number of rows that are always shown at the top."""
_MARKS: tuple[Mark, ...] = ("blocks", "warns", "good", "none")


@dataclass(frozen=True)
class Row:
    """One criterion on one evalset with one agent."""

    summary: GroupSummary
    delta: Delta | None
    mark: Mark
    word: str
    """Its verdict in words."""
    max_growth: float | None = None
    """The relative increase that is tolerated, if tested."""

    @property
    def tested(self) -> str:
        """The p-value and its significance level, if relevant for readers."""
        if self.delta and self.delta.outcome in ("regressed", "inconclusive"):
            return report_phrases.tested(self.delta)
        return ""

    @property
    def decides(self) -> bool:
        """True if it is judged by a threshold, or got worse beyond `max_growth`."""
        moved = self.delta is not None and self.delta.outcome in ("regressed", "inconclusive")
        return not self.summary.informational or (moved and self.max_growth is not None)


def rows_of(report: Report) -> list[Row]:
    """Return the rows, blocking ones first, otherwise in the order of the report."""
    comparison = report.comparison
    deltas = {delta.group: delta for delta in (comparison.deltas if comparison else ())}
    named = {each.group for each in report.verdict.reasons if each.severity == "blocks"}
    rows = [_row(report, each, deltas.get(each.group), named) for each in report.groups]
    return sorted(rows, key=lambda row: _MARKS.index(row.mark))


def first_rows(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Split the deciding rows into those at the top and the rest, which are all good."""
    deciding = [row for row in rows if row.decides]
    alarming = sum(row.mark in ("blocks", "warns") for row in deciding)
    count = max(alarming, FEW)
    return deciding[:count], deciding[count:]


def judged_by_threshold(report: Report) -> bool:
    """Return True if a case below a threshold blocks by itself."""
    return report.verdict.mode != "regression" or report.comparison is None


def _row(
    report: Report, summary: GroupSummary, delta: Delta | None, named: set[GroupKey | None]
) -> Row:
    regressed = delta is not None and delta.outcome == "regressed"
    failed = summary.failed > 0 and judged_by_threshold(report) and not summary.informational
    decides = summary.tier == "block"
    mark: Mark = "none"
    if (
        summary.group in named
        or (regressed and decides and report.verdict.mode != "threshold")
        or (failed and decides and report.verdict.outcome == "failed")
    ):
        mark = "blocks"
    elif failed or regressed or summary.errors or (delta and delta.outcome == "inconclusive"):
        mark = "warns"
    elif summary.passed + summary.failed:
        mark = "good"
    facts = report.meta.criteria.get(summary.group.criterion)
    growth = facts.max_growth if facts else None
    return Row(summary, delta, mark, _word(report, summary, delta), growth)


def _word(report: Report, summary: GroupSummary, delta: Delta | None) -> str:
    if not summary.passed + summary.failed:
        return "not measured" if summary.errors else "not applicable"
    words = []
    if delta and summary.errors and delta.outcome in ("improved", "unchanged"):
        words.append("incomplete")  # the missing values could change the outcome
    elif delta:
        words.append(delta.outcome.replace("_", " "))
    elif report.comparison:
        words.append("new")
    if judged_by_threshold(report) and not summary.informational:
        words.append("failed" if summary.failed else "incomplete" if summary.errors else "passed")
    if not summary.informational or (delta and delta.p_value is not None):
        words.append(report_phrases.tier(summary.tier))
    return ", ".join(word for word in dict.fromkeys(words) if word)
