"""The cases of a report that a reader should look at, with what shows why."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Literal, NamedTuple

from ci_eval.records import (
    CaseChange,
    GroupKey,
    GroupSummary,
    Report,
    RunMeta,
    Status,
    TrialKey,
    TrialResult,
)
from ci_eval.reporters._evidence import Exhibit, exhibits_of

MAX_NAMED = 5
"""Cases that one reason for an error names."""


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


@dataclass(frozen=True)
class Bounds:
    """How much of each thing a document shows."""

    evidence: int
    """Cases shown with what was expected and what was done."""
    lines: int
    """Of each piece of evidence."""
    rows: int
    """Entries of each list."""


@dataclass(frozen=True)
class Line:
    """What one criterion says of one case."""

    criterion: str
    what: Literal["regressed", "suspected", "failed"]
    value: float | None
    baseline: float | None
    threshold: float | None
    better: Literal["higher", "lower"]
    reason: str = ""


@dataclass(frozen=True)
class Finding:
    """One case that got worse or failed."""

    place: Place
    name: str
    """The case, with evalset and agent where there is more than one."""
    lines: tuple[Line, ...]
    source: str = ""
    """The file of the case, with its line where that is known."""
    exhibits: tuple[Exhibit, ...] = ()


@dataclass(frozen=True)
class Trouble:
    """One reason why something could not be measured."""

    kind: str
    """The kind of failure, or the criterion that failed to measure."""
    message: str
    cases: tuple[str, ...]
    """The first cases it struck."""
    more: bool
    """Whether there are others."""


@dataclass(frozen=True)
class Findings:
    """Finds the cases of one report that matter."""

    report: Report
    bounds: Bounds

    @cached_property
    def _results(self) -> Mapping[Place, TrialResult]:
        """The worst result of each case that the report has one of."""
        found: dict[Place, TrialResult] = {}
        for result in self.report.worst:
            found.setdefault(Place.of(result.key), result)
        return found

    @cached_property
    def _groups(self) -> Mapping[GroupKey, GroupSummary]:
        return {summary.group: summary for summary in self.report.groups}

    @cached_property
    def _changes(self) -> Mapping[Place, tuple[CaseChange, ...]]:
        """The changes to the worse of each case, the most certain and largest first."""
        comparison = self.report.comparison
        if not comparison:
            return {}
        changes = [
            each for each in comparison.changes if each.change in ("newly_failing", "dropped")
        ]
        changes.sort(key=lambda each: (not self._is_certain(each), -_size(each)))
        found: dict[Place, tuple[CaseChange, ...]] = {}
        for change in changes:
            place = Place.of_change(change)
            found[place] = (*found.get(place, ()), change)
        return found

    @cached_property
    def _regressed(self) -> frozenset[GroupKey]:
        comparison = self.report.comparison
        deltas = comparison.deltas if comparison else ()
        return frozenset(delta.group for delta in deltas if delta.outcome == "regressed")

    def _is_certain(self, change: CaseChange) -> bool:
        return change.certain or change.group in self._regressed

    @property
    def worse_total(self) -> int:
        """How many cases got worse."""
        return len(self._changes)

    def worse(self) -> Iterator[Finding]:
        """Yield the first cases that got worse."""
        shown = islice(self._changes.items(), self.bounds.rows)
        for number, (place, changes) in enumerate(shown):
            lines = tuple(self._changed_line(change) for change in changes)
            yield self._finding(place, lines, with_evidence=number < self.bounds.evidence)

    def failing(self, evidence: int) -> Iterator[Finding]:
        """Yield the first cases that failed and did not get worse, `evidence` with evidence."""
        failed = (
            (place, result)
            for place, result in self._results.items()
            if result.status is Status.FAILED and place not in self._changes
        )
        for number, (place, result) in enumerate(islice(failed, self.bounds.rows)):
            yield self._finding(
                place, tuple(_failed_lines(result)), with_evidence=number < evidence
            )

    def _changed_line(self, change: CaseChange) -> Line:
        group = self._groups.get(change.group)
        return Line(
            criterion=change.group.criterion,
            what="regressed" if self._is_certain(change) else "suspected",
            value=change.value,
            baseline=change.baseline,
            threshold=group.threshold if group else None,
            better=group.better if group else "higher",
        )

    def _finding(self, place: Place, lines: tuple[Line, ...], *, with_evidence: bool) -> Finding:
        result = self._results.get(place)
        meta = self.report.meta
        return Finding(
            place=place,
            name=place.named(meta),
            lines=lines,
            source=_source(meta, place, result),
            exhibits=tuple(self._exhibits(result, lines)) if result and with_evidence else (),
        )

    def _exhibits(self, result: TrialResult, lines: tuple[Line, ...]) -> Iterator[Exhibit]:
        """Yield what shows why these criteria did not pass, the same thing once."""
        names = {line.criterion for line in lines}
        seen = set()
        for score in result.scores:
            if score.name in names:
                for exhibit in exhibits_of(score, max_lines=self.bounds.lines):
                    if exhibit not in seen:
                        seen.add(exhibit)
                        yield exhibit

    def troubles(self) -> Iterator[Trouble]:
        """Yield the first reasons why something could not be measured."""
        struck: dict[tuple[str, str], dict[str, None]] = {}
        for place, result in self._results.items():
            for kind, message in _errors(result):
                struck.setdefault((kind, message), {})[place.named(self.report.meta)] = None
        known = sum(map(len, struck.values()))
        for (kind, message), names in islice(struck.items(), self.bounds.rows):
            more = len(names) > MAX_NAMED or known < self.report.totals.errors
            yield Trouble(kind, message, tuple(islice(names, MAX_NAMED)), more)

    def first(self) -> Place | None:
        """Return the case to look at first."""
        failed = (p for p, r in self._results.items() if r.status in (Status.FAILED, Status.ERROR))
        return next(iter(self._changes), None) or next(failed, None)


def _size(change: CaseChange) -> float:
    if change.value is None or change.baseline is None:
        return 0.0
    return abs(change.value - change.baseline)


def _failed_lines(result: TrialResult) -> Iterator[Line]:
    for score in result.scores:
        if score.status is Status.FAILED:
            yield Line(
                criterion=score.name,
                what="failed",
                value=score.value,
                baseline=None,
                threshold=score.threshold,
                better=score.better,
                reason=score.reason,
            )


def _errors(result: TrialResult) -> Iterable[tuple[str, str]]:
    if result.error:
        return [(result.error.kind, result.error.message)]
    return [(each.name, each.reason) for each in result.scores if each.status is Status.ERROR]


def _source(meta: RunMeta, place: Place, result: TrialResult | None) -> str:
    evalset = meta.evalsets.get(place.evalset)
    if not evalset:
        return ""
    return f"{evalset.path}:{result.line}" if result and result.line else evalset.path
