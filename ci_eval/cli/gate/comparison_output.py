"""Console output of a comparison, and of an explained verdict."""

from ci_eval.cli.console import out_table, out_text
from ci_eval.cli.exit_codes import print_json
from ci_eval.cli.gate.verdict_explanation import Explanation
from ci_eval.records.comparisons import Delta
from ci_eval.records.findings import GroupSummary, Report
from ci_eval.records.results import CriterionFacts
from ci_eval.run_files import report_phrases
from ci_eval.text.templates import difference, p_value, plain

_HEADS = (
    "agent",
    "evalset",
    "criterion",
    "before",
    "now",
    "change",
    "95% interval",
    "p",
    "outcome",
)


def print_comparison(report: Report) -> None:
    """Print the comparison with its verdict as JSON; `null` if nothing was compared."""
    found = report.comparison
    verdict = report.verdict.model_dump(mode="json")
    print_json({**found.model_dump(mode="json"), "verdict": verdict} if found else None)


def show_comparison(report: Report, beside: str) -> None:
    """Print the changes compared with `beside`, the name of the other run."""
    found = report.comparison
    if found is None:
        return
    criteria, groups = report.meta.criteria, {each.group: each for each in report.groups}
    rows = [
        _delta(each, criteria.get(each.group.criterion), groups.get(each.group))
        for each in found.deltas
    ]
    out_table(_HEADS, rows)
    reasons = report.verdict.reasons
    values = {"comparison": found, "beside": beside, "reasons": reasons}
    out_text("comparison.txt.j2", **values, wording=report_phrases)


def show_explanation(found: Explanation) -> None:
    """Print the explanation of a verdict."""
    out_text("verdict.txt.j2", found=found, comparison=found.comparison, wording=report_phrases)


def _delta(
    delta: Delta, facts: CriterionFacts | None, summary: GroupSummary | None
) -> tuple[str, ...]:
    interval = report_phrases.interval(delta, facts.interval if facts else None)
    key, before = delta.group, "-" if delta.baseline is None else plain(delta.baseline)
    names = (key.agent, key.evalset, key.criterion)
    value, outcome = delta.value, report_phrases.outcome(delta, summary)
    if summary and summary.errors:
        value = summary.value  # without the missing values as the best possible
        if value is None:
            return (*names, before, "-", "-", "-", "-", outcome)
    return (
        *(*names, before, "-" if value is None else plain(value)),
        report_phrases.effect(delta, summary),
        f"{difference(interval[0])} to {difference(interval[1])}" if interval else "-",
        "-"
        if delta.p_value is None
        else p_value(delta.p_value).removeprefix("p ").removeprefix("= "),
        outcome,
    )
