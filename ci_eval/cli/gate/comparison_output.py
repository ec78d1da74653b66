"""Console output of a comparison, and of an explained verdict."""

from collections.abc import Iterator, Sequence

from ci_eval.cli.console import out, out_list, out_table, out_text
from ci_eval.cli.exit_codes import print_json
from ci_eval.cli.gate.verdict_explanation import Explanation
from ci_eval.records.findings import CaseChange, Comparison, Delta, Report
from ci_eval.run_files import report_phrases
from ci_eval.text.templates import counted, difference, p_value, plain

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
_CHANGES = {
    "newly_failing": "fails now",
    "fixed": "passes now",
    "dropped": "dropped",
    "newly_erring": "can no longer be measured",
}


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
    out_table(_HEADS, [_delta(each) for each in found.deltas])
    for title, lines in sections(found):
        out_list(title, lines)
    out()
    out(f"compared with {beside}: {against(found)}")
    for reason in report.verdict.reasons:
        out(f"- {reason.message}")


def sections(found: Comparison) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield titles and lines of all changes other than those of means; lines may be empty."""
    for kind, title in (("newly_failing", "worse"), ("fixed", "better")):
        worse = kind == "newly_failing"
        yield title, [case_line(e) for e in found.changes if (e.change != "fixed") is worse]
    yield "added", found.added
    gone = (
        f"{each.kind} {each.name}{f' on {each.where}' if each.where else ''}"
        for each in found.vanished
    )
    yield "in the baseline but not in this run", [*gone]
    yield "not comparable", found.not_comparable
    flaky = (
        f"{each.case} ({each.group.criterion} on {each.group.evalset}): "
        f"{report_phrases.rate(each)} trials of the baseline"
        for each in found.flaky
    )
    yield "flaky", [*flaky]
    excused = (
        f"{each.named} ({counted(len(each.cases), 'case')}): {report_phrases.excuse(each)}"
        for each in found.excused
    )
    yield "exempt", [*excused]
    yield "weakened by this change", found.loosened


def show_explanation(found: Explanation) -> None:
    """Print the explanation of a verdict."""
    comparison = found.comparison
    out_text(
        "verdict.txt.j2",
        found=found,
        comparison=comparison,
        sections=sections(comparison) if comparison else (),
        against=against,
        drawn=report_phrases.drawn,
        named=report_phrases.named,
    )


def against(found: Comparison) -> str:
    """Describe the baseline in a phrase."""
    parts = [counted(len(found.baseline_runs), "run")]
    if found.baseline_commit:
        parts.append(f"the nearest for commit {found.baseline_commit[:10]}")
    if found.baseline_distance:
        parts.append(f"{counted(found.baseline_distance, 'commit')} before the merge base")
    if found.baseline_created:
        parts.append(f"made {found.baseline_created}")
    return ", ".join(parts)


def case_line(change: CaseChange) -> str:
    """Describe the change of one case."""
    key = change.group
    line = f"{change.case} ({key.criterion} on {key.evalset} with {key.agent}): "
    line += f"{_CHANGES[change.change]}, {_between(change)}"
    if said := report_phrases.trials(change):
        line += f"; {said}"
    if change.certain:
        line += ": proven"
    elif change.suspected:
        line += ": suspected"
        line += f", {p_value(change.p_value)}" if change.p_value is not None else ""
    return f"{line}; {change.excused}" if change.excused else line


def _between(change: CaseChange) -> str:
    values = (change.baseline, change.value)
    return " → ".join("none" if value is None else plain(value) for value in values)


def _delta(delta: Delta) -> tuple[str, ...]:
    interval = delta.interval
    key = delta.group
    return (
        *(key.agent, key.evalset, key.criterion),
        *("-" if value is None else plain(value) for value in (delta.baseline, delta.value)),
        difference(delta.effect),
        f"{difference(interval[0])} to {difference(interval[1])}" if interval else "-",
        "-"
        if delta.p_value is None
        else p_value(delta.p_value).removeprefix("p ").removeprefix("= "),
        delta.outcome.replace("_", " "),
    )
