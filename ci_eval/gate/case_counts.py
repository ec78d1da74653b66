"""How many cases passed, for each criterion and in all."""

import math
from collections.abc import Iterable
from types import MappingProxyType

from ci_eval.config.config_schema import GateOptions
from ci_eval.gate.exemptions import Excuses, allows_unjudged, excused
from ci_eval.records.cases import Status
from ci_eval.records.comparisons import GroupKey
from ci_eval.records.findings import CaseOutcomes, GroupSummary, Named, Totals
from ci_eval.records.results import CriterionFacts, RunMeta
from ci_eval.records.trials import Place
from ci_eval.run_files.score_cell import LOST, MEASURED, best_of, worst_of
from ci_eval.run_files.score_column import Column, mean_of
from ci_eval.run_files.score_table import Columns

MAX_UNJUDGED = 100
"""Maximum number of unjudged cases that a report lists."""


def summarise(
    meta: RunMeta, columns: Columns, exempt: Excuses = MappingProxyType({})
) -> tuple[GroupSummary, ...]:
    """Count the outcomes of the cases for each criterion, evalset and agent."""
    return tuple(_group(meta, key, columns, exempt) for key in columns.group_keys())


def _group(meta: RunMeta, key: GroupKey, columns: Columns, exempt: Excuses) -> GroupSummary:
    facts, name = meta.criteria[key.criterion], (key.agent, key.evalset, key.criterion)
    column, left_out = columns.groups[name], exempt.get(name)
    return GroupSummary(
        group=key,
        **dict(_outcomes(column, facts)),
        without_exempt=_outcomes(column.without(left_out), facts) if left_out else None,
        threshold=facts.threshold,
        informational=facts.informational,
        tier=facts.tier,
        interval=facts.interval,
        better=facts.better,
    )


def _outcomes(column: Column, facts: CriterionFacts) -> CaseOutcomes:
    return CaseOutcomes(
        **dict(column.ended(facts)),
        incomplete=len(column.lacking(facts)),
        value=mean_of(column),
        span=_span(column, facts),
    )


def _span(column: Column, facts: CriterionFacts) -> tuple[float, float] | None:
    """Return the bounds of the mean of all cases, whatever the missing values are."""
    means, applies = [], column.counts(MEASURED, LOST) > 0
    for bound in (best_of(facts), worst_of(facts)):
        known = column.with_missing(bound)[applies]
        total = math.fsum(known)
        if not len(known) or math.isnan(total):
            return None
        means.append(total / len(known))
    return min(means), max(means)


def count_cases(meta: RunMeta, columns: Columns, gate: GateOptions) -> Totals:
    """Count the outcomes of the cases; the numbers of trials and times are not known here.

    Accepted and quarantined cases count neither as passed nor as failed.
    """
    excuses = excused(meta, gate, columns)
    ended = columns.ended(meta.criteria, excuses)
    unjudged = list(columns.unjudged(meta.criteria))
    allowed = {place: None for place in unjudged if allows_unjudged(gate, *place)}
    return Totals(
        cases=ended.passed + ended.failed + ended.errors + ended.skipped,
        **dict(ended),
        incomplete=columns.incomplete(meta.criteria, excuses),
        accepted=_accepted(meta, columns, gate, excuses) if gate.accept else 0,
        unjudged=_first(place for place in unjudged if place not in allowed),
        allowed=_first(allowed),
        # In a filtered suite, a criterion may well apply to no case.
        unmeasured=() if meta.filtered else tuple(columns.unmeasured(meta.criteria)),
    )


def _first(places: Iterable[Place]) -> Named:
    names = [f"{evalset}/{case}" for _, evalset, case in places]
    return Named(count=len(names), first=tuple(dict.fromkeys(names))[:MAX_UNJUDGED])


def _accepted(meta: RunMeta, columns: Columns, gate: GateOptions, excuses: Excuses) -> int:
    """Return the number of cases that only `gate.accept` keeps from being judged."""
    statuses = dict(columns.statuses(meta.criteria, excuses))
    quarantined = excused(meta, gate.model_copy(update={"accept": ()}), columns)
    return sum(
        statuses[place] is Status.SKIPPED and status in (Status.PASSED, Status.FAILED)
        for place, status in columns.statuses(meta.criteria, quarantined)
    )
