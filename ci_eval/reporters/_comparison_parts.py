"""The parts of a comparison besides its criteria and cases: baseline, doubts, exceptions."""

from collections.abc import Iterator
from dataclasses import dataclass

from ci_eval.records.comparisons import Comparison, Excused
from ci_eval.records.findings import Report
from ci_eval.records.results import RunMeta
from ci_eval.records.trials import Place
from ci_eval.reporters._case_changes import named
from ci_eval.reporters._criteria_rows import Mark
from ci_eval.reporters._notable_cases import MAX_NAMED, Some
from ci_eval.run_files import report_phrases
from ci_eval.run_files.times import moment
from ci_eval.text.templates import counted


@dataclass(frozen=True)
class Baseline:
    """The baseline of a report."""

    run: str
    """Its nearest run."""
    age_s: float | None
    """Seconds from that run to this one."""
    distance: str
    """Its place in the commit history."""
    shallow: bool
    """Whether the shallow clone may hide a nearer run."""
    drawn: str
    """The number of reruns and confirming trials."""


@dataclass(frozen=True)
class TogetherRow:
    """All blocking criteria combined, as a row of the table."""

    mark: Mark
    criteria: int
    effect: float
    """The mean change, as a share of each criterion's range."""
    word: str
    why: str
    """The p-value and its significance level."""


@dataclass(frozen=True)
class FlakyCase:
    """One case that both passes and fails in the baseline."""

    name: str
    rates: tuple[tuple[tuple[str, ...], str], ...]
    """Criteria, and the failure rate under them."""


@dataclass(frozen=True)
class Excuse:
    """An accepted drop or a quarantine, current or expired."""

    named: str
    said: str
    cases: Some[str]
    """The cases that it covers."""


def baseline_of(report: Report) -> Baseline:
    """Return the baseline of a report."""
    comparison = report.comparison or Comparison()
    now, then = moment(report.meta.created), moment(comparison.baseline_created)
    return Baseline(
        run=next(iter(comparison.baseline_runs), "unknown"),
        age_s=(now - then).total_seconds() if now and then else None,
        distance=report_phrases.distance(report),
        shallow=report_phrases.shallow(comparison),
        drawn=report_phrases.drawn(comparison),
    )


def together_row(comparison: Comparison) -> TogetherRow | None:
    """Return the row of all blocking criteria combined, if they regressed or are inconclusive.

    If one of them got worse by itself, the combined result adds nothing.
    """
    found, worse = comparison.together, ("regressed", "inconclusive")
    if found is None or found.outcome not in worse:
        return None
    known = worse if found.outcome == "inconclusive" else worse[:1]
    if any(each.outcome in known and each.tier == "block" for each in comparison.deltas):
        return None
    return TogetherRow(
        mark="blocks" if found.outcome == "regressed" else "warns",
        criteria=found.criteria,
        effect=found.effect,
        word=found.outcome,
        why=report_phrases.tested(found),
    )


def doubt(comparison: Comparison, suspected: int) -> str:
    """Return the number of inconclusive criteria and cases, as a clause; empty if none."""
    unsure = sum(delta.outcome == "inconclusive" for delta in comparison.deltas)
    parts = [counted(unsure, "criterion", "criteria")] if unsure else []
    parts += [counted(suspected, "case")] if suspected else []
    verb = "is" if unsure + suspected == 1 else "are"
    return f"{' and '.join(parts)} {verb} inconclusive" if parts else ""


def flaky_cases(report: Report) -> Iterator[FlakyCase]:
    """Yield the flaky cases of the baseline that the report contains."""
    found: dict[Place, dict[str, list[str]]] = {}
    for each in report.comparison.flaky if report.comparison else ():
        rates = found.setdefault(each.place, {})
        rates.setdefault(report_phrases.rate(each), []).append(each.group.criterion)
    for place, rates in found.items():
        pairs = tuple((tuple(criteria), rate) for rate, criteria in rates.items())
        yield FlakyCase(named(place, report.meta), pairs)


def excuses_of(comparison: Comparison, meta: RunMeta) -> Iterator[Excuse]:
    """Yield the exceptions, each with the first of the cases that it covers."""
    return (_excuse_of(each, meta) for each in comparison.excused)


def _excuse_of(found: Excused, meta: RunMeta) -> Excuse:
    names = found.cases[:MAX_NAMED]
    # A single evalset is never named in a document.
    if len(meta.evalsets) <= 1:
        names = tuple(each.partition("/")[2] or each for each in names)
    return Excuse(found.named, report_phrases.excuse(found), Some(names, len(found.cases)))
