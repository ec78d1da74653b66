"""The cases of a report that a reader should look at, with their evidence."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Generic, Literal, TypeVar

from ci_eval.records.cases import Status
from ci_eval.records.findings import Report
from ci_eval.records.results import RunMeta, Score, TrialResult
from ci_eval.reporters._case_changes import KINDS, Kind, Place, Worsening, worsened
from ci_eval.reporters._criteria_rows import judged_by_threshold
from ci_eval.reporters._evidence import Exhibit, exhibits_of
from ci_eval.run_files import report_phrases

T = TypeVar("T")

MAX_NAMED = 5
"""The most cases named with one cause of errors."""


@dataclass(frozen=True)
class Bounds:
    """Limits on the content of a document."""

    evidence: int
    """Cases with evidence."""
    lines: int
    """Of each piece of evidence."""
    rows: int
    """Entries of each list."""


@dataclass(frozen=True)
class Some(Generic[T]):
    """The first entries of a list."""

    shown: tuple[T, ...]
    total: int

    @property
    def more(self) -> int:
        """The number of entries not shown."""
        return self.total - len(self.shown)

    def __bool__(self) -> bool:
        return self.total > 0


@dataclass(frozen=True)
class Line:
    """One criterion on one case."""

    criterion: str
    what: Literal["regressed", "suspected", "noise", "failed"]
    value: float | None
    baseline: float | None = None
    threshold: float | None = None
    better: Literal["higher", "lower"] = "higher"
    trials: str = ""
    """The number of failing trials, now and in the baseline."""
    tier: str = ""
    """The effect of a criterion that does not block."""
    reason: str = ""
    exhibits: tuple[Exhibit, ...] = ()


@dataclass(frozen=True)
class Finding:
    """One case that got worse or failed."""

    place: Place
    name: str
    """The case, with evalset and agent if there are several."""
    lines: tuple[Line, ...]
    source: str = ""
    """The file of the case, with its line if known."""
    excuse: str = ""
    """Why the gate ignores it: `accepted` or `quarantined`."""
    cut_off: str = ""
    """The number of incomplete responses, and the reasons."""

    @property
    def has_evidence(self) -> bool:
        """True if there is more to show than values."""
        return bool(self.cut_off) or any(line.exhibits or line.reason for line in self.lines)


@dataclass(frozen=True)
class Trouble:
    """One cause of errors."""

    kind: str
    """The kind of failure, or the criterion that failed to measure."""
    message: str
    cases: tuple[str, ...]
    """The first cases it affects."""
    more: bool
    """Whether there are other cases."""


@dataclass(frozen=True)
class Findings:
    """Finds the relevant cases of one report."""

    report: Report
    bounds: Bounds

    @cached_property
    def _results(self) -> Mapping[Place, TrialResult]:
        """The worst result of each case with a result in the report."""
        found: dict[Place, TrialResult] = {}
        for result in self.report.worst:
            found.setdefault(Place.of(result.key), result)
        return found

    @cached_property
    def _worsened(self) -> Mapping[Place, tuple[Worsening, ...]]:
        return worsened(self.report)

    def worse(self, kind: Kind) -> Some[Finding]:
        """Return the cases that got worse and whose most serious worsening is of this kind."""
        found = self._of_kind(kind)
        shown = enumerate(islice(found.items(), self.bounds.rows))
        return Some(
            tuple(
                self._worse(place, changes, with_evidence=number < self.bounds.evidence)
                for number, (place, changes) in shown
            ),
            len(found),
        )

    def noise(self) -> Iterator[str]:
        """Yield the names of the cases that got worse, probably by chance."""
        yield from (place.named(self.report.meta) for place in self._of_kind("noise"))

    def _of_kind(self, kind: Kind) -> Mapping[Place, tuple[Worsening, ...]]:
        return {p: changes for p, changes in self._worsened.items() if changes[0].kind == kind}

    def failing(self, evidence: int) -> Some[Finding]:
        """Return the cases that failed but did not get worse, the first ones with evidence.

        The total counts only cases with a result in the report.
        """
        failed = [
            place
            for place, result in self._results.items()
            if not self._shown_as_worse(place)
            # The result may also be an error, because of another criterion.
            and any(score.status is Status.FAILED for score in result.scores)
        ]
        failed.sort(key=lambda place: not self._counts(place))
        shown = enumerate(failed[: self.bounds.rows])
        return Some(
            tuple(self._failed(place, with_evidence=number < evidence) for number, place in shown),
            len(failed),
        )

    def _shown_as_worse(self, place: Place) -> bool:
        changes = self._worsened.get(place, ())
        # If a failure blocks by itself, list it as failed rather than as noise.
        shown = ("regressed", "suspected") if judged_by_threshold(self.report) else KINDS
        return any(each.kind in shown for each in changes)

    def _counts(self, place: Place) -> bool:
        """Return True if the verdict counts the failure of a case."""
        criteria = self.report.meta.criteria
        blocking = any(
            score.status is Status.FAILED
            and (score.name not in criteria or criteria[score.name].tier == "block")
            for score in self._results[place].scores
        )
        return blocking and not self._excuse(place)

    @cached_property
    def _excuses(self) -> Mapping[str, str]:
        """Why the gate ignores some cases, by case."""
        comparison = self.report.comparison
        found: dict[str, str] = {}
        for each in comparison.excused if comparison else ():
            if not each.expired:
                found |= dict.fromkeys(each.cases, each.kind)
        return found

    def _excuse(self, place: Place) -> str:
        return self._excuses.get(f"{place.evalset}/{place.case}", "")

    def _scores(self, place: Place) -> Mapping[str, Score]:
        result = self._results.get(place)
        return {score.name: score for score in result.scores} if result else {}

    def _worse(self, place: Place, changes: Iterable[Worsening], *, with_evidence: bool) -> Finding:
        scores = self._scores(place) if with_evidence else {}
        lines = [
            self._explained(_worse_line(each), scores.get(each.change.group.criterion))
            for each in changes
        ]
        return self._finding(place, lines)

    def _failed(self, place: Place, *, with_evidence: bool) -> Finding:
        failed = [each for each in self._scores(place).values() if each.status is Status.FAILED]
        lines = [
            self._explained(self._failed_line(each), each if with_evidence else None)
            for each in failed
        ]
        return self._finding(place, lines, self._excuse(place))

    def _failed_line(self, score: Score) -> Line:
        facts = self.report.meta.criteria.get(score.name)
        return Line(
            criterion=score.name,
            what="failed",
            value=score.value,
            threshold=score.threshold,
            better=score.better,
            tier=report_phrases.tier(facts.tier) if facts else "",
        )

    def _explained(self, line: Line, score: Score | None) -> Line:
        """Return `line` with the evidence of `score`, if any."""
        if score is None:
            return line
        exhibits = tuple(exhibits_of(score, max_lines=self.bounds.lines))
        return replace(line, reason=score.reason, exhibits=exhibits)

    def _finding(self, place: Place, lines: Iterable[Line], excuse: str = "") -> Finding:
        meta, result = self.report.meta, self._results.get(place)
        return Finding(
            place=place,
            name=place.named(meta),
            lines=tuple(_without_repeats(lines)),
            source=_source(meta, place, result),
            excuse=excuse,
            cut_off=report_phrases.cut_off(result.cut_off) if result else "",
        )

    def troubles(self) -> Some[Trouble]:
        """Return the causes of errors among the results in the report."""
        affected: dict[tuple[str, str], dict[str, None]] = {}
        messages: dict[tuple[str, str], str] = {}
        for place, result in self._results.items():
            for cause, message in _errors(result):
                affected.setdefault(cause, {})[place.named(self.report.meta)] = None
                messages.setdefault(cause, message)
        all_known = sum(map(len, affected.values())) >= self.report.totals.errors
        shown = tuple(
            Trouble(
                cause[0],
                messages[cause],
                cases=tuple(islice(names, MAX_NAMED)),
                more=len(names) > MAX_NAMED or not all_known,
            )
            for cause, names in islice(affected.items(), self.bounds.rows)
        )
        return Some(shown, len(affected))

    def first(self) -> Place | None:
        """Return the case to look at first."""
        order = [Status.FAILED, Status.ERROR]
        if self.report.verdict.outcome == "incomplete":
            order.reverse()
        elif self._worsened:
            return next(iter(self._worsened))
        places = (p for status in order for p, r in self._results.items() if r.status is status)
        return next(places, None)


def _worse_line(worsening: Worsening) -> Line:
    change = worsening.change
    return Line(
        criterion=change.group.criterion,
        what=worsening.kind,
        value=change.value,
        baseline=change.baseline,
        trials=report_phrases.trials(change),
        tier=report_phrases.tier(worsening.tier),
    )


def _without_repeats(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield `lines` without evidence that an earlier criterion has shown."""
    seen: set[Exhibit] = set()
    for line in lines:
        new = tuple(exhibit for exhibit in line.exhibits if exhibit not in seen)
        seen.update(new)
        yield replace(line, exhibits=new)


def _errors(result: TrialResult) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield the cause and the message of each error."""
    if result.error:
        error = result.error
        yield error.cause or (error.kind, error.message), error.gist
        return
    for each in result.scores:
        if each.status is Status.ERROR:
            yield (each.name, each.reason), each.reason


def _source(meta: RunMeta, place: Place, result: TrialResult | None) -> str:
    evalset = meta.evalsets.get(place.evalset)
    if not evalset:
        return ""
    return f"{evalset.path}:{result.line}" if result and result.line else evalset.path
