"""The cases of a report that a reader should look at, with their evidence."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from typing import Generic, Literal, Self, TypeVar

from ci_eval.records.cases import Status
from ci_eval.records.findings import Report
from ci_eval.records.results import RunMeta, Score, Tier, TrialResult
from ci_eval.records.trials import Place
from ci_eval.reporters._case_changes import KINDS, Kind, Worsening, named, page_of_case, worsened
from ci_eval.reporters._evidence import Exhibit, different_calls, differing, exhibits_of
from ci_eval.run_files import report_phrases

T = TypeVar("T")

_NOT_IN_CASES = frozenset({"no_baseline", "unconfirmed", "vanished", "weakened_gate"})
"""Kinds of reasons that no case of the run shows."""
MAX_NAMED = 5
"""Maximum number of cases named with one cause of errors."""


@dataclass(frozen=True)
class Bounds:
    """Limits on the content of a document."""

    evidence: int
    """Maximum number of cases with evidence."""
    lines: int
    """Maximum number of lines of each piece of evidence."""
    rows: int
    """Maximum number of entries of each list."""


@dataclass(frozen=True)
class Some(Generic[T]):
    """The first entries of a list."""

    shown: tuple[T, ...]
    total: int

    @classmethod
    def of(cls, entries: Iterable[T], limit: int) -> Self:
        """Return the first `limit` entries."""
        found = tuple(entries)
        return cls(found[:limit], len(found))

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
    what: Literal["broke", "lower", "suspected", "noise", "in_base", "failed"]
    value: float | None
    baseline: float | None = None
    threshold: float | None = None
    better: Literal["higher", "lower"] = "higher"
    trials: str = ""
    """The number of failing trials, now and in the baseline."""
    tier: str = ""
    """The effect of a criterion that does not block."""
    about: tuple[str, ...] = ()
    """What differs, such as `response`; if the evidence does not show it, the criterion's name."""
    reason: str = ""
    exhibits: tuple[Exhibit, ...] = ()


@dataclass(frozen=True)
class Finding:
    """One case that got worse or failed."""

    place: Place
    name: str
    """The case, with evalset and agent if there are several."""
    lines: tuple[Line, ...]
    asked: str = ""
    """The user's message of the first failed invocation; empty without evidence."""
    source: str = ""
    """The file of the case, with its line if known."""
    cut_off: str = ""
    """The number of incomplete responses, and the reasons."""
    url: str = ""
    """Its address in `report.html`, if known."""
    alike: tuple[str, ...] = ()
    """The other cases with the same cause, which have no entry of their own."""

    @property
    def has_evidence(self) -> bool:
        """True if there is more to show than values."""
        return bool(self.cut_off) or any(line.exhibits or line.reason for line in self.lines)

    @property
    def about(self) -> tuple[str, ...]:
        """What differs, over all its criteria."""
        return tuple(
            dict.fromkeys(word for line in self.lines for word in line.about or (line.criterion,))
        )

    def without_evidence(self) -> Self:
        """Return the case with its values only."""
        lines = tuple(replace(line, reason="", exhibits=()) for line in self.lines)
        return replace(self, lines=lines, cut_off="")

    @property
    def cause(self) -> tuple[object, ...]:
        """What the agent did wrong: equal for cases that fail alike; empty if unknown.

        These are the names of the tools that were called too often or not often enough or, if no
        tool calls differ, the whole actual responses.
        """
        exhibits = [each for line in self.lines for each in line.exhibits]
        did = [*chain.from_iterable(map(different_calls, exhibits))] or [
            text
            for each in exhibits
            if each.compared == "response"
            for text in each.lines
            if text.startswith("+ ")
        ]
        return (tuple((line.criterion, line.tier) for line in self.lines), *did) if did else ()


@dataclass(frozen=True)
class Cases(Some[Finding]):
    """Cases, each with those that fail alike."""

    @property
    def more(self) -> int:
        """The number of cases neither shown nor named."""
        return self.total - sum(1 + len(each.alike) for each in self.shown)


@dataclass(frozen=True)
class Trouble:
    """One cause of errors."""

    kind: str
    """The kind of failure, or the criterion that failed to measure."""
    message: str
    asked: str
    """The user's message in the first case."""
    source: str
    """The file of the first case, with its line if known."""
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
            found.setdefault(result.key.place, result)
        return found

    @cached_property
    def _worsened(self) -> Mapping[Place, tuple[Worsening, ...]]:
        return worsened(self.report)

    def worse(self, kind: Kind, *, tier: Tier | None = None) -> Cases:
        """Return the cases whose most serious worsening is of this kind, and of this tier if given.

        Those that block are shown first.
        """
        found = {
            place: changes
            for place, changes in self._of_kind(kind).items()
            if tier in (None, changes[0].tier)
        }
        shown = islice(found.items(), self.bounds.rows)
        findings = (self._worse(place, changes) for place, changes in shown)
        return Cases(tuple(self._grouped(findings, self.bounds.evidence)), len(found))

    @property
    def newly_failing(self) -> int:
        """The number of cases that fail, and failed less often in the baseline."""
        return sum(
            any(e.change.change == "newly_failing" and e.tier == "block" for e in changes)
            for changes in self._worsened.values()
        )

    def names(self, kind: Kind) -> Iterator[str]:
        """Yield the names of the cases whose most serious worsening is of this kind."""
        return (named(place, self.report.meta) for place in self._of_kind(kind))

    def _of_kind(self, kind: Kind) -> Mapping[Place, tuple[Worsening, ...]]:
        return {p: changes for p, changes in self._worsened.items() if changes[0].kind == kind}

    def failing(self, evidence: int) -> Cases:
        """Return the cases that failed but did not get worse, the first ones with evidence.

        The total counts only cases with a result in the report.
        """
        failed = [
            place
            for place, result in self._results.items()
            if not self._shown_as_worse(place)
            # The result may also be an error, caused by another criterion.
            and any(score.status is Status.FAILED for score in result.scores)
        ]
        failed.sort(key=lambda place: not self._blocks(place))
        findings = map(self._failed, failed[: self.bounds.rows])
        return Cases(tuple(self._grouped(findings, evidence)), len(failed))

    @staticmethod
    def _grouped(findings: Iterable[Finding], evidence: int) -> Iterator[Finding]:
        """Yield cases that fail alike as one, and `evidence` of them with evidence."""
        groups: dict[object, list[Finding]] = {}
        for each in findings:
            groups.setdefault(each.cause or each.place, []).append(each)
        for number, (first, *others) in enumerate(groups.values()):
            found = replace(first, alike=tuple(each.name for each in others))
            yield found if number < evidence else found.without_evidence()

    def _shown_as_worse(self, place: Place) -> bool:
        changes = self._worsened.get(place, ())
        # If a failure blocks by itself, list it as failed rather than as noise.
        by_threshold = self.report.verdict.by_threshold
        return any(not by_threshold or each.kind not in ("noise", "in_base") for each in changes)

    def _blocks(self, place: Place) -> bool:
        """Return True if a case failed a blocking criterion."""
        criteria = self.report.meta.criteria
        return any(
            score.status is Status.FAILED
            and (score.name not in criteria or criteria[score.name].tier == "block")
            for score in self._results[place].scores
        )

    def _scores(self, place: Place) -> Mapping[str, Score]:
        result = self._results.get(place)
        return {score.name: score for score in result.scores} if result else {}

    def _worse(self, place: Place, changes: Iterable[Worsening]) -> Finding:
        scores = self._scores(place)
        lines = [
            self._explained(
                _worse_line(each, self.report.meta), scores.get(each.change.group.criterion)
            )
            for each in changes
        ]
        return self._finding(place, lines)

    def _failed(self, place: Place) -> Finding:
        failed = [each for each in self._scores(place).values() if each.status is Status.FAILED]
        lines = [self._explained(self._failed_line(each), each) for each in failed]
        return self._finding(place, lines)

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
        about = differing(score) or (line.criterion,)
        return replace(line, reason=score.reason, exhibits=exhibits, about=about)

    def _finding(self, place: Place, lines: Iterable[Line]) -> Finding:
        meta, result = self.report.meta, self._results.get(place)
        return Finding(
            place=place,
            name=named(place, meta),
            lines=tuple(_without_repeats(lines)),
            asked=_asked(result) if result else "",
            source=_source(meta, place, result),
            cut_off=report_phrases.cut_off(result.cut_off) if result else "",
            url=page_of_case(meta, place),
        )

    def troubles(self) -> Some[Trouble]:
        """Return the causes of errors among the results in the report."""
        affected: dict[tuple[str, str], dict[str, None]] = {}
        first: dict[tuple[str, str], tuple[str, str, str]] = {}
        for place, result in self._results.items():
            for cause, message in _errors(result):
                affected.setdefault(cause, {})[named(place, self.report.meta)] = None
                source = _source(self.report.meta, place, result)
                first.setdefault(cause, (message, _asked(result), source))
        all_known = sum(map(len, affected.values())) >= self.report.totals.errors
        shown = tuple(
            Trouble(
                cause[0],
                *first[cause],
                tuple(names if len(names) == MAX_NAMED + 1 else islice(names, MAX_NAMED)),
                more=len(names) > MAX_NAMED + 1 or not all_known,
            )
            for cause, names in islice(affected.items(), self.bounds.rows)
        )
        return Some(shown, len(affected))

    def first(self) -> Place | None:
        """Return the case to look at first; `None` if no case shows what blocks."""
        verdict = self.report.verdict
        blocks = {each.kind for each in verdict.reasons if each.severity == "blocks"}
        if blocks and blocks <= _NOT_IN_CASES:
            return None
        order = [Status.FAILED, Status.ERROR]
        if verdict.outcome == "incomplete":
            order.reverse()
        elif worse := [each for each in self._worsened if self._shown_as_worse(each)]:
            return min(worse, key=self._weight)
        ran = {
            p: r.status
            for p, r in self._results.items()
            if r.status in order and not (r.error and r.error.kind == "not_run")
        }
        return min(ran, key=lambda p: (order.index(ran[p]), not self._blocks(p)), default=None)

    def _weight(self, place: Place) -> tuple[bool, int]:
        """Rank a case that got worse: the lowest does most for the verdict."""
        return min((e.tier != "block", KINDS.index(e.kind)) for e in self._worsened[place])


def _worse_line(worsening: Worsening, meta: RunMeta) -> Line:
    change = worsening.change
    facts = meta.criteria.get(change.group.criterion)
    return Line(
        criterion=change.group.criterion,
        what=worsening.kind,
        value=change.value,
        baseline=change.baseline,
        threshold=facts.threshold if facts else None,
        better=facts.better if facts else "higher",
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


def _asked(result: TrialResult) -> str:
    """Return the user's message of the first failed invocation, else the first one."""
    failed = (
        number
        for score in result.scores
        for number, each in enumerate(score.invocations)
        if each.status is Status.FAILED
    )
    number = min(failed, default=0)
    return result.messages[number] if number < len(result.messages) else ""


def _errors(result: TrialResult) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield the cause and the message of each error."""
    if result.error:
        error = result.error
        yield error.likeness, error.gist
        return
    for each in result.scores:
        if each.status is Status.ERROR:
            yield (each.name, each.reason), each.reason


def _source(meta: RunMeta, place: Place, result: TrialResult | None) -> str:
    evalset = meta.evalsets.get(place.evalset)
    if not evalset:
        return ""
    return f"{evalset.path}:{result.line}" if result and result.line else evalset.path
