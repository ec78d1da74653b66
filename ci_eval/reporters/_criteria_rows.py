"""Table of criteria: one row for each criterion on each evalset with each agent."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ci_eval.records.comparisons import Delta, GroupKey
from ci_eval.records.findings import GroupSummary, Report
from ci_eval.reporters._case_changes import Kind, has_dropped, worsened
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
    """How its mean changed: `dropped`, `unchanged` …; empty if only single cases regressed."""
    broke: int = 0
    """The number of cases that broke."""
    lower: int = 0
    """The number of other cases that are part of its drop."""
    suspected: int = 0
    """The number of cases that perhaps broke."""
    max_growth: float | None = None
    """The relative increase that is tolerated, if tested."""

    @property
    def blocks_by_drop(self) -> bool:
        """True if it blocks because it got worse over all its cases, not because cases broke."""
        delta = self.delta
        if delta is None or delta.outcome != "regressed" or delta.tier != "block":
            return False
        return not self.broke or (self.lower > 0 and delta.p_value is not None)

    @property
    def why(self) -> str:
        """Why its change counts or is in doubt: the reason, the p-value and its level."""
        if not self.delta or self.delta.outcome not in ("regressed", "inconclusive"):
            return ""
        return "; ".join(filter(None, (self.delta.reason, report_phrases.tested(self.delta))))

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % confidence interval of the change, if it is meaningful."""
        return report_phrases.interval(self.delta, self.summary.interval) if self.delta else None

    @property
    def baseline(self) -> float | None:
        """The mean of the baseline, with cases that are exempt, as in the score."""
        return report_phrases.stored_mean(self.delta)

    @property
    def effect(self) -> str:
        """The change of its mean; a bound if some cases could not be measured."""
        return report_phrases.effect(self.delta, self.summary) if self.delta else ""

    @property
    def counts(self) -> tuple[str, ...]:
        """How many cases broke, are suspected, were not measured or could be compared."""
        judged = self.summary.passed + self.summary.failed
        compared = self.delta.cases if self.delta and self.delta.cases < judged else 0
        counts = {
            "broke": self.broke,
            "suspected": self.suspected,
            "not measured": self.summary.errors,
            "compared": compared,
        }
        return tuple(f"{count:,} {word}" for word, count in counts.items() if count)

    @property
    def tier(self) -> str:
        """The effect of a regression, if it does not block."""
        is_tested = self.delta is not None and self.delta.p_value is not None
        decides = is_tested or not self.summary.informational
        return report_phrases.tier(self.summary.tier) if decides else ""

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
    kinds = Counter(
        (each.change.group, each.kind) for found in worsened(report).values() for each in found
    )
    rows = [_row(report, each, deltas.get(each.group), named, kinds) for each in report.groups]
    return sorted(rows, key=lambda row: _MARKS.index(row.mark))


def first_rows(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Split the deciding rows into those at the top and the rest, all of which are good."""
    deciding = [row for row in rows if row.decides]
    alarming = sum(row.mark in ("blocks", "warns") for row in deciding)
    count = max(alarming, FEW)
    return deciding[:count], deciding[count:]


def _row(
    report: Report,
    summary: GroupSummary,
    delta: Delta | None,
    named: set[GroupKey | None],
    kinds: Mapping[tuple[GroupKey, Kind], int],
) -> Row:
    regressed = delta is not None and delta.outcome == "regressed"
    failed = summary.failed > 0 and report.verdict.by_threshold and not summary.informational
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
        is_doubtful = bool(summary.failed) and _is_noisy_drop(summary, delta)
        mark = "none" if is_doubtful or not summary.passed else "good"
    facts = report.meta.criteria.get(summary.group.criterion)
    growth = facts.max_growth if facts else None
    return Row(
        summary,
        delta,
        mark,
        _word(report, summary, delta),
        broke=kinds.get((summary.group, "broke"), 0),
        lower=kinds.get((summary.group, "lower"), 0),
        suspected=kinds.get((summary.group, "suspected"), 0),
        max_growth=growth,
    )


def _is_noisy_drop(summary: GroupSummary, delta: Delta | None) -> bool:
    """Return True if a mean is worse, and below its threshold, but by no more than noise."""
    if delta is None or not delta.effect or summary.value is None or summary.threshold is None:
        return False
    sign = 1 if summary.better == "higher" else -1
    is_below = sign * summary.value < sign * summary.threshold
    return delta.outcome == "unchanged" and sign * delta.effect < 0 and is_below


def _word(report: Report, summary: GroupSummary, delta: Delta | None) -> str:
    if not summary.passed + summary.failed:
        return ""
    if delta is None:
        return "new" if report.comparison else ""
    if summary.errors and delta.outcome in ("improved", "unchanged"):
        return "incomplete"  # the missing values could change the outcome
    if delta.outcome != "regressed":
        is_noise = delta.outcome == "unchanged" and delta.effect
        return "within noise" if is_noise else delta.outcome.replace("_", " ")
    if has_dropped(delta):
        return "dropped" if summary.better == "higher" else "rose"
    return ""  # single cases regressed, which their own column says
