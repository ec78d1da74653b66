"""The values of a run by criterion and case."""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from ci_eval.records.cases import Status
from ci_eval.records.findings import GroupKey
from ci_eval.records.model_usage import ModelUsage
from ci_eval.records.model_versions import ServedModel, merged
from ci_eval.records.results import CriterionFacts, RunMeta, Score, TrialResult
from ci_eval.records.trials import Place
from ci_eval.run_files.score_cases import Cases
from ci_eval.run_files.score_column import (
    CONFIRMING,
    LOST,
    MEASURED,
    SKIPPED,
    UNCONFIRMED,
    Column,
)

Facts = Mapping[str, CriterionFacts]
"""The settings of each criterion."""
Exempted = Mapping[tuple[str, str, str], Container[str]]
"""The cases that do not count, by agent, evalset and criterion."""
_NO_CASES: Exempted = MappingProxyType({})
_RANKS = {Status.SKIPPED: 0, Status.PASSED: 1, Status.ERROR: 2, Status.FAILED: 3}
"""The status with the highest rank decides a case: a failure is certain, an error is not."""


@dataclass
class Columns:
    """The values of one or several runs."""

    groups: dict[tuple[str, str, str], Column] = field(default_factory=dict)
    """By agent, evalset and criterion."""
    evalsets: dict[str, Cases] = field(default_factory=dict)
    """The cases of each evalset."""
    models: tuple[ServedModel, ...] = ()
    """The model versions that answered."""
    metered: ModelUsage = field(default_factory=ModelUsage)
    """Usage of the agents' models, where it is metered."""
    metered_trials: int = 0

    def add(self, result: TrialResult) -> None:
        """Add the scores of one trial."""
        key = result.key
        if result.metered:
            self.metered += result.metered.alone
            self.metered_trials += 1
        if served := [*result.served]:
            self.models = merged(self.models, served)
        number = self.cases(key.evalset).number_of(key.case, result.case_fingerprint)
        for score in result.scores:
            column = self.column((key.agent, key.evalset, score.name))
            kind = _kind(score, result)
            column.put(number, score.value, kind, result.round, result.duration_s)

    def cases(self, evalset: str) -> Cases:
        """Return the cases of an evalset, to which more can be added."""
        if evalset not in self.evalsets:
            self.evalsets[evalset] = Cases()
        return self.evalsets[evalset]

    def column(self, group: tuple[str, str, str]) -> Column:
        """Return the column of an agent, evalset and criterion, to which more can be added."""
        if group not in self.groups:
            self.groups[group] = Column(self.cases(group[1]))
        return self.groups[group]

    @classmethod
    def of(cls, results: Iterable[TrialResult]) -> "Columns":
        """Return the columns of `results`."""
        columns = cls()
        for result in results:
            columns.add(result)
        return columns

    def group_keys(self) -> Iterator[GroupKey]:
        """Yield the key of each group."""
        for agent, evalset, criterion in self.groups:
            yield GroupKey(agent=agent, evalset=evalset, criterion=criterion)

    def filled(self, criteria: Facts) -> "Columns":
        """Return a copy in which every missing observation just passes."""
        found = Columns(evalsets=self.evalsets)
        for key, column in self.groups.items():
            threshold = criteria[key[2]].threshold
            found.groups[key] = column if threshold is None else column.filled(threshold)
        return found

    def incomplete(self, criteria: Facts, excused: Exempted = _NO_CASES) -> int:
        """Return the number of cases whose missing observations could change what blocks."""
        places = set()
        for (agent, evalset, name), column in self.groups.items():
            facts = criteria[name]
            judged = not facts.informational or facts.max_growth is not None
            if judged and facts.tier == "block":
                left_out = excused.get((agent, evalset, name), ())
                places |= {
                    (agent, evalset, case) for case in column.lacking(facts) if case not in left_out
                }
        return len(places)

    def statuses(
        self, criteria: Facts, excused: Exempted = _NO_CASES
    ) -> Iterator[tuple[Place, Status]]:
        """Yield each case, with its overall status.

        A case passes if all blocking criteria pass. Criteria that only inform or warn do not
        count, nor do `excused` cases of a group. A case without any counting criterion is skipped.
        """
        for (agent, evalset), groups in self._by_pair().items():
            worst: list[Status | None] = [None] * len(self.evalsets[evalset].numbers)
            for group in groups:
                column, facts = self.groups[group], criteria[group[2]]
                left_out = excused.get(group, ())
                statuses = (
                    column.statuses(facts) if facts.judges else [Status.SKIPPED] * len(column)
                )
                for number, case, status in zip(
                    column.numbers.tolist(), column, statuses, strict=True
                ):
                    counts = Status.SKIPPED if case in left_out else status
                    worst[number] = max(
                        worst[number] or Status.SKIPPED, counts, key=_RANKS.__getitem__
                    )
            for case, found in zip(self.evalsets[evalset].numbers, worst, strict=True):
                if found is not None:
                    yield Place(agent, evalset, case), found

    def unjudged(self, criteria: Facts) -> Iterator[Place]:
        """Yield each case to which no blocking criterion applies.

        An error does not count: the criterion applies, but could not measure the case.
        """
        for (agent, evalset), groups in self._by_pair().items():
            judged: dict[int, bool] = {}
            names = [*self.evalsets[evalset].numbers]
            for group in groups:
                column, judges = self.groups[group], criteria[group[2]].judges
                applies = (column.counts(MEASURED, LOST) > 0).tolist()
                for number, found in zip(column.numbers.tolist(), applies, strict=True):
                    judged[number] = judged.get(number, False) or (judges and found)
            yield from (
                Place(agent, evalset, names[each]) for each, found in judged.items() if not found
            )

    def _by_pair(self) -> dict[tuple[str, str], list[tuple[str, str, str]]]:
        """Return the groups of each agent and evalset."""
        found: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
        for group in self.groups:
            found.setdefault(group[:2], []).append(group)
        return found

    def unmeasured(self, criteria: Facts) -> Iterator[str]:
        """Yield the blocking criteria that apply to no case."""
        applies: dict[str, bool] = {}
        for (_, _, name), column in self.groups.items():
            if criteria[name].judges and not applies.get(name):
                applies[name] = bool(column.counts(MEASURED, LOST).any())
        yield from (name for name, found in applies.items() if not found)


def _kind(score: Score, result: TrialResult) -> int:
    """Return the kind of observation that a score is."""
    if score.value is not None:
        return CONFIRMING if result.confirms else MEASURED
    if score.status is not Status.ERROR:
        return SKIPPED
    return UNCONFIRMED if result.confirms else LOST


class Past(NamedTuple):
    """One baseline run, with its values."""

    meta: RunMeta
    columns: Columns
