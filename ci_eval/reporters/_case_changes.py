"""Cases of a report that got worse."""

from typing import Literal, NamedTuple

from ci_eval.records.comparisons import CaseChange, Delta
from ci_eval.records.findings import Report
from ci_eval.records.results import RunMeta, Tier
from ci_eval.records.trials import Place
from ci_eval.text.html_templates import fragment

Kind = Literal["broke", "lower", "suspected", "noise", "in_base"]
KINDS: tuple[Kind, ...] = ("broke", "lower", "suspected", "noise", "in_base")


def named(place: Place, meta: RunMeta) -> str:
    """Return the name of a case, with evalset and agent if there are several."""
    parts = (
        place.agent if len(meta.agents) > 1 else "",
        place.evalset if len(meta.evalsets) > 1 else "",
        place.case,
    )
    return "/".join(part for part in parts if part)


def page_of_case(meta: RunMeta, place: Place) -> str:
    """Return the address of a case in `report.html`; empty if the page has no known one."""
    return f"{meta.page_url}{fragment(place)}" if meta.page_url else ""


class Worsening(NamedTuple):
    """One case that got worse under one criterion."""

    change: CaseChange
    kind: Kind
    """Proven by itself, part of a proven drop, perhaps broken, probably noise, or not caused by the
    change because the merge base fails, too."""
    tier: Tier
    """Effect of a regression of its criterion."""


def worsened(report: Report) -> dict[Place, tuple[Worsening, ...]]:
    """Return the worsenings of each case: certain, blocking and large ones first.

    Accepted and quarantined cases are left out.
    """
    comparison = report.comparison
    if not comparison:
        return {}
    drifted = {delta.group for delta in comparison.deltas if has_dropped(delta)}
    tiers = {delta.group: delta.tier for delta in comparison.deltas}
    found = []
    for change in comparison.changes:
        if change.change in ("newly_failing", "dropped") and not change.excused:
            kind: Kind = "noise"
            if change.certain:
                kind = "broke"
            elif change.in_base:
                kind = "in_base"
            elif change.group in drifted:
                kind = "lower"
            elif change.suspected:
                kind = "suspected"
            found.append(Worsening(change, kind, tiers.get(change.group, "block")))
    found.sort(key=_rank)
    by_place: dict[Place, tuple[Worsening, ...]] = {}
    for each in found:
        place = each.change.place
        by_place[place] = (*by_place.get(place, ()), each)
    return by_place


def has_dropped(delta: Delta) -> bool:
    """Return True if a criterion regressed over all its cases, not only in single ones."""
    by_test = delta.p_value is None or delta.level is None or delta.p_value <= delta.level
    return delta.outcome == "regressed" and by_test


def _rank(worsening: Worsening) -> tuple[int, bool, bool, float]:
    change = worsening.change
    size = 0.0
    if change.value is not None and change.baseline is not None:
        size = abs(change.value - change.baseline)
    blocks = worsening.tier == "block"
    return KINDS.index(worsening.kind), not blocks, not change.suspected, -size
