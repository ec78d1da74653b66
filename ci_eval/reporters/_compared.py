"""What a comparison tells besides its criteria and cases: its baseline, doubts, excuses."""

from collections.abc import Iterator
from dataclasses import dataclass

from ci_eval.records.findings import Comparison, Excused, Flaky, Report
from ci_eval.records.results import RunMeta
from ci_eval.reporters._changes import Place
from ci_eval.reporters._findings import MAX_NAMED, Some
from ci_eval.reporters._rows import Mark
from ci_eval.reporters._times import moment
from ci_eval.run_files import wording
from ci_eval.text.templates import counted


@dataclass(frozen=True)
class Baseline:
    """What a run was compared with."""

    run: str
    """Its nearest run."""
    age_s: float | None
    """Seconds from that run to this one."""
    distance: str
    """Where it lies in the history of the commits."""
    shallow: bool
    """Whether a nearer one may be there that the clone does not know of."""
    drawn: str
    """What was drawn again because something was in doubt."""


@dataclass(frozen=True)
class TogetherRow:
    """All criteria that block, taken together, as a row of the table."""

    mark: Mark
    criteria: int
    effect: str
    """The mean change, of the range that each criterion has."""
    word: str
    tested: str
    """The p-value with its level."""


@dataclass(frozen=True)
class FlakyCase:
    """One case that passes and fails in the baseline."""

    name: str
    rates: tuple[tuple[tuple[str, ...], str], ...]
    """How often it fails, with the criteria under which it does so."""


@dataclass(frozen=True)
class Excuse:
    """What is accepted or in quarantine, or was."""

    named: str
    said: str
    cases: Some[str]
    """The cases that it covers."""


def baseline_of(report: Report) -> Baseline:
    """Return what is to be known of the baseline of a report."""
    comparison = report.comparison or Comparison()
    now, then = moment(report.meta.created), moment(comparison.baseline_created)
    return Baseline(
        run=next(iter(comparison.baseline_runs), "unknown"),
        age_s=(now - then).total_seconds() if now and then else None,
        distance=wording.distance(report),
        shallow=wording.shallow(comparison),
        drawn=wording.drawn(comparison),
    )


def together_row(comparison: Comparison) -> TogetherRow | None:
    """Return the row of all criteria together, where they got worse or may have.

    Beside one that regressed for sure, that they may have tells nothing.
    """
    found = comparison.together
    if found is None or found.outcome not in ("regressed", "inconclusive"):
        return None
    alone = any(each.outcome == "regressed" and each.tier == "block" for each in comparison.deltas)
    if found.outcome == "inconclusive" and alone:
        return None
    return TogetherRow(
        mark="blocks" if found.outcome == "regressed" else "warns",
        criteria=found.criteria,
        effect=f"{found.effect:+.1%}".replace("-", "\N{MINUS SIGN}"),
        word=found.outcome,
        tested=wording.tested(found),
    )


def doubt(comparison: Comparison, suspected: int) -> str:
    """Return how much is in doubt, as the rest of a sentence; nothing where nothing is."""
    unsure = sum(delta.outcome == "inconclusive" for delta in comparison.deltas)
    parts = []
    if unsure:
        parts.append(counted(unsure, "criterion", "criteria"))
    if suspected:
        parts.append(counted(suspected, "case"))
    verb = "is" if unsure + suspected == 1 else "are"
    return f"{' and '.join(parts)} {verb} in doubt" if parts else ""


def flaky_cases(report: Report) -> Iterator[FlakyCase]:
    """Yield the cases that pass and fail in the baseline, as far as the report has them."""
    found: dict[Place, dict[str, list[str]]] = {}
    for each in report.comparison.flaky if report.comparison else ():
        rates = found.setdefault(_place(each), {})
        rates.setdefault(wording.rate(each), []).append(each.group.criterion)
    for place, rates in found.items():
        pairs = tuple((tuple(criteria), rate) for rate, criteria in rates.items())
        yield FlakyCase(place.named(report.meta), pairs)


def _place(case: Flaky) -> Place:
    return Place(case.group.agent, case.group.evalset, case.case)


def excuse_of(found: Excused, meta: RunMeta) -> Excuse:
    """Return an excuse with the first of the cases that it covers."""
    names = found.cases[:MAX_NAMED]
    # One evalset needs no name, as everywhere in a document.
    if len(meta.evalsets) <= 1:
        names = tuple(map(_case, names))
    return Excuse(found.named, wording.excuse(found), Some(names, len(found.cases)))


def _case(place: str) -> str:
    return place.partition("/")[2] or place
