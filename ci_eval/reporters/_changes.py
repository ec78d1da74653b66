"""The changes to the worse of a report, by case."""

from typing import NamedTuple

from ci_eval.findings import CaseChange, Report
from ci_eval.results import RunMeta
from ci_eval.trials import TrialKey


class Place(NamedTuple):
    """One case with one agent."""

    agent: str
    evalset: str
    case: str

    @classmethod
    def of(cls, key: TrialKey) -> "Place":
        """Return the place of a trial."""
        return cls(key.agent, key.evalset, key.case)

    @classmethod
    def of_change(cls, change: CaseChange) -> "Place":
        """Return the place of a change."""
        return cls(change.group.agent, change.group.evalset, change.case)

    def named(self, meta: RunMeta) -> str:
        """Return the case, with evalset and agent where there is more than one of them."""
        parts = (
            self.agent if len(meta.agents) > 1 else "",
            self.evalset if len(meta.evalsets) > 1 else "",
            self.case,
        )
        return "/".join(part for part in parts if part)


class Worsening(NamedTuple):
    """One case that got worse under one criterion."""

    change: CaseChange
    is_regression: bool
    """Whether it is part of a regression; else it may be noise."""


def worsened(report: Report) -> dict[Place, tuple[Worsening, ...]]:
    """Return the changes to the worse of each case, regressions and large drops first."""
    comparison = report.comparison
    if not comparison:
        return {}
    regressed = {delta.group for delta in comparison.deltas if delta.outcome == "regressed"}
    found = [
        Worsening(change, change.certain or change.group in regressed)
        for change in comparison.changes
        if change.change in ("newly_failing", "dropped")
    ]
    found.sort(key=lambda each: (not each.is_regression, -_size(each.change)))
    by_place: dict[Place, tuple[Worsening, ...]] = {}
    for each in found:
        place = Place.of_change(each.change)
        by_place[place] = (*by_place.get(place, ()), each)
    return by_place


def _size(change: CaseChange) -> float:
    if change.value is None or change.baseline is None:
        return 0.0
    return abs(change.value - change.baseline)
