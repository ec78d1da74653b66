"""Explanation of a verdict, computed from its report."""

import math
from collections.abc import Iterator
from typing import Literal

from ci_eval.config.config_schema import GateOptions
from ci_eval.gate import floors, hard_break
from ci_eval.gate.exemptions import gate_of
from ci_eval.gate.floors import Floor
from ci_eval.records.bounds import MAX_COUNT
from ci_eval.records.cases import Record
from ci_eval.records.comparisons import Comparison, Delta, GroupKey
from ci_eval.records.errors import BaselineError, UsageError
from ci_eval.records.findings import Report, Verdict
from ci_eval.records.results import CriterionFacts
from ci_eval.run_files import report_phrases
from ci_eval.run_files.report_phrases import interval, named
from ci_eval.stats.intervals import t_quantile


class Level(Record):
    """The significance level of a test, and how it was derived."""

    false_block: float
    """Error budget over all tests: how often noise may block."""
    means: float
    """The part of it for means; the rest is for single broken cases."""
    hypotheses: int
    """Number of tests corrected together."""
    left: int | None
    """Number of tests that shared it in the end, because rejected ones leave their part to the
    others (Holm); `None` if it is also spread over several looks."""
    look: int
    """Number of this look, from 1."""
    looks: int
    """Maximum number of looks."""


class ExplainedCriterion(Record):
    """One criterion on one evalset with one agent."""

    delta: Delta
    runs: int
    """Number of baseline runs pooled."""
    repeats: int
    """Planned repeats of each case."""
    better: Literal["higher", "lower"] = "higher"
    level: Level | None = None
    """`None` if nothing was tested."""
    interval: tuple[float, float] | None = None
    """95 % confidence interval of the change; `None` if it says nothing."""
    least: float | None = None
    """The smallest drop that counts, in the criterion's own unit."""
    blocks_from: float | None = None
    """About the smallest drop that would have counted, given the noise; `None` if none could
    have, or all cases changed alike."""
    visible: bool = True
    """Whether there are enough cases and runs to distinguish any drop from noise."""
    unmeasured: int = 0
    """Cases that could not be measured and count as the best possible."""
    measured: float | None = None
    """The mean now over the measured cases; `None` if none was measured."""
    outcome: str = ""
    """The outcome in words, also that it is incomplete or not measured."""
    effect: str = ""
    """The change in words; a bound if some cases could not be measured."""
    proven: int = 0
    """Cases proven to be broken."""
    suspected: int = 0
    """Cases that always passed and now always fail; may be noise."""
    excused: int = 0
    """Changed cases that are exempt from the gate."""

    @property
    def worsening(self) -> str:
        """What getting worse is called."""
        return "rise" if self.better == "lower" else "drop"


class ExplainedFloor(Record):
    """A required minimum, independent of the baseline."""

    what: str
    """`pass rate`, or the criterion."""
    group: GroupKey | None = None
    required: float
    value: float | None
    interval: tuple[float, float] | None
    """Confidence interval of the value, as a share of the criterion's interval."""
    missed: bool
    certain: bool
    """Whether it is missed for certain."""
    open: bool = False
    """Whether missing measurements decide if it is met."""


class Explanation(Record):
    """A verdict with everything that decided it."""

    run_id: str
    suite: str
    verdict: Verdict
    gate: GateOptions
    repeats: int
    criteria: tuple[ExplainedCriterion, ...]
    floors: tuple[ExplainedFloor, ...]
    comparison: Comparison | None
    turning: tuple[str, ...]
    """Descriptions of what would have changed the decision."""


def explain(report: Report) -> Explanation:
    """Explain the verdict of a report, whose run describes all of its criteria.

    Raises:
        UsageError: the options of its gate are invalid.

    """
    try:
        gate = gate_of(report.meta)
    except BaselineError as exc:
        raise UsageError(str(exc)) from exc
    criteria = tuple(_criteria(report, gate))
    required = tuple(_floors(report, gate))
    return Explanation(
        run_id=report.meta.run_id,
        suite=report.meta.suite,
        verdict=report.verdict,
        gate=gate,
        repeats=report.meta.repeats,
        criteria=criteria,
        floors=required,
        comparison=report.comparison,
        turning=tuple(_turning(report, criteria, required)),
    )


def _criteria(report: Report, gate: GateOptions) -> Iterator[ExplainedCriterion]:
    found = report.comparison
    groups = {each.group: each for each in report.groups}
    for delta in found.deltas if found else ():
        own = [each for each in (found.changes if found else ()) if each.group == delta.group]
        counted = [each for each in own if not each.excused]
        facts = report.meta.criteria[delta.group.criterion]
        summary = groups.get(delta.group)
        errors = summary.errors if summary else 0
        yield ExplainedCriterion(
            delta=delta,
            runs=len(found.baseline_runs) if found else 0,
            repeats=report.meta.repeats,
            better=facts.better,
            level=_level(delta, report, gate),
            least=delta.least,
            interval=interval(delta, facts.interval),
            blocks_from=_blocks_from(delta, facts),
            visible=delta.visible,
            unmeasured=errors,
            measured=summary.value if summary and errors else delta.value,
            outcome=report_phrases.outcome(delta, summary),
            effect=report_phrases.effect(delta, summary),
            proven=sum(each.certain for each in counted),
            suspected=sum(each.suspected for each in counted),
            excused=len(own) - len(counted),
        )


def _level(delta: Delta, report: Report, gate: GateOptions) -> Level | None:
    found = report.comparison
    if found is None or delta.level is None or delta.p_value is None:
        return None
    family = [each for each in found.deltas if each.tier == delta.tier and each.level is not None]
    facts = report.meta.criteria
    bounded = [each for each in family if facts[each.group.criterion].interval]
    looks = max(gate.looks, found.rounds + 1)
    means = (1 - hard_break.SHARE) * gate.false_block
    shared = looks == 1 and delta.level * MAX_COUNT > means
    left = round(means / delta.level) if shared else None
    return Level(
        false_block=gate.false_block,
        means=means,
        hypotheses=len(family) + (len(bounded) > 1),
        left=left,
        look=found.rounds + 1,
        looks=looks,
    )


def _blocks_from(delta: Delta, facts: CriterionFacts) -> float | None:
    """Return the drop at which the test would have rejected, given the spread of the cases.

    The permutation test is close to a t-test on the differences of the cases, whose standard error
    is half the interval, divided by its quantile.  With few cases it is more exact than that, so
    a drop that did block is known to be enough, and none needs to exceed what is possible.
    """
    least = delta.least
    if least is None or delta.level is None or not delta.visible:
        return None
    if delta.steady:
        return None if delta.outcome == "inconclusive" else least
    if delta.cases < 2 or delta.interval is None or delta.interval[0] == delta.interval[1]:
        return None
    freedom = delta.cases - 1
    error = (delta.interval[1] - delta.interval[0]) / 2 / t_quantile(0.975, freedom)
    needed = t_quantile(1 - min(delta.level, 0.5), freedom) * error
    found = least + needed if facts.max_growth is not None else max(least, needed)
    is_by_mean = delta.outcome == "regressed" and (delta.p_value or 0.0) <= delta.level
    enough = abs(delta.effect or found) if is_by_mean else _largest_drop(delta, facts)
    return min(found, enough)


def _largest_drop(delta: Delta, facts: CriterionFacts) -> float:
    """Return the drop to the worst possible score."""
    if facts.interval is None or delta.baseline is None:
        return math.inf
    low, high = facts.interval
    return high - delta.baseline if facts.better == "lower" else delta.baseline - low


def _floors(report: Report, gate: GateOptions) -> Iterator[ExplainedFloor]:
    totals, allowed = report.totals, floors.Allowance.shared(report.groups, gate)
    required = gate.min_pass_rate
    if required is None and report.verdict.by_threshold:
        required = 1.0
    if required is not None and totals.judged:
        floor = floors.pass_rate(totals, required, allowed)
        yield _floor("pass rate", floor, required, totals.pass_rate, None)
    for group in map(floors.gated, report.groups):
        least = gate.min_score.get(group.group.criterion)
        if least is not None:
            floor = floors.mean(group, least, allowed)
            yield _floor(group.group.criterion, floor, least, group.value, group.group)


def _floor(
    what: str, floor: Floor, required: float, value: float | None, group: GroupKey | None
) -> ExplainedFloor:
    return ExplainedFloor(
        what=what,
        group=group,
        required=required,
        value=value,
        interval=floor.interval,
        missed=floor.missed,
        certain=floor.certain,
        open=floor.open,
    )


def _turning(
    report: Report, criteria: tuple[ExplainedCriterion, ...], required: tuple[ExplainedFloor, ...]
) -> Iterator[str]:
    if report.verdict.outcome == "incomplete":
        yield _missing(report)
    for each in criteria:
        if each.delta.tier != "block" or each.delta.outcome != "regressed":
            continue
        name = named(each.delta.group)
        if each.proven:
            cases = "1 case is" if each.proven == 1 else f"{each.proven} cases are"
            yield f"{name}: blocks while {cases} broken"
        elif each.blocks_from is not None:
            least = f"about {each.blocks_from:.3g}"
            yield f"{name}: a {each.worsening} of less than {least} would not have blocked"
    yield from _turning_beside(report)
    for floor in required:
        if floor.missed or floor.open:
            yield f"{floor.what}: at least {floor.required:g}"
    if report.verdict.outcome == "passed":
        yield from _closest(criteria)


def _missing(report: Report) -> str:
    """Name the results that an incomplete run lacks."""
    if report.meta.missing_shards:
        return "the results of the missing shards: run their jobs again, then merge all reports"
    why = {each.kind for each in report.verdict.reasons if each.severity == "incomplete"}
    if why <= {"unjudged_cases", "unmeasured_criteria"}:
        return "a blocking criterion that measures these cases"
    return "fewer errors: too many cases were not measured to decide"


def _turning_beside(report: Report) -> Iterator[str]:
    """Yield the changes that would reverse a decision made by no single criterion."""
    found = report.comparison
    blocks = {each.kind for each in report.verdict.reasons if each.severity == "blocks"}
    deltas = found.deltas if found else ()
    alone = any(each.outcome == "regressed" and each.tier == "block" for each in deltas)
    if found and found.together and found.together.outcome == "regressed" and not alone:
        yield f"all criteria together: a p-value above {found.together.level:.2g}"
    if "vanished" in blocks:
        yield "the missing results, or another gate.on_vanished"
    if "no_baseline" in blocks:
        yield "a stored baseline, or another gate.on_missing"


def _closest(criteria: tuple[ExplainedCriterion, ...]) -> Iterator[str]:
    """Yield the criterion that came closest to blocking, if any."""
    near = [
        (each.blocks_from - _drop(each, each.delta.effect), each)
        for each in criteria
        if each.delta.tier == "block" and each.blocks_from is not None
        if each.delta.effect is not None
    ]
    if near:
        _, each = min(near, key=lambda pair: pair[0])
        drop = _drop(each, each.delta.effect or 0.0)
        worsening = each.worsening
        moved = f"it had a {worsening} of {drop:.3g}" if drop > 0 else f"it had no {worsening}"
        yield (
            f"{named(each.delta.group)} came closest: {moved}, and a {worsening} of about "
            f"{each.blocks_from:.3g} would have blocked"
        )


def _drop(each: ExplainedCriterion, effect: float) -> float:
    """Return how much worse it got."""
    return effect if each.better == "lower" else -effect
