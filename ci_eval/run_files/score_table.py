"""The values of a run by criterion and case."""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from ci_eval.records.cases import Status
from ci_eval.records.comparisons import GroupKey
from ci_eval.records.findings import Counts
from ci_eval.records.model_usage import ModelUsage
from ci_eval.records.model_versions import ServedModel, merged
from ci_eval.records.results import CriterionFacts, RunMeta
from ci_eval.records.trials import Place
from ci_eval.run_files.score_cases import Cases
from ci_eval.run_files.score_cell import CONFIRMING, LOST, MEASURED, SKIPPED, UNCONFIRMED
from ci_eval.run_files.score_column import RANKED, Column, counted

if TYPE_CHECKING:
    from ci_eval.records.compared_trials import AnyTrial
    from ci_eval.run_files.score_column import Whole

Facts = Mapping[str, CriterionFacts]
"""The settings of each criterion."""
Exempted = Mapping[tuple[str, str, str], Container[str]]
"""The cases that do not count, by agent, evalset and criterion."""
_KINDS = dict.fromkeys(Status, MEASURED) | {Status.ERROR: LOST, Status.SKIPPED: SKIPPED}
_CONFIRMING_KINDS = _KINDS | dict.fromkeys((Status.PASSED, Status.FAILED), CONFIRMING)
_CONFIRMING_KINDS[Status.ERROR] = UNCONFIRMED
_NO_CASES: Exempted = MappingProxyType({})


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

    def add(self, result: "AnyTrial") -> None:
        """Add the scores of one trial."""
        agent, evalset, served = result.key.agent, result.key.evalset, [*result.models]
        kinds = _CONFIRMING_KINDS if result.confirms else _KINDS
        if result.metered:
            self.metered += result.metered.alone
            self.metered_trials += 1
        if result.simulation:
            served += result.simulation.models
        number = self.cases(evalset).number_of(result.key.case, result.case_fingerprint)
        for score in result.scores:
            column = self.column((agent, evalset, score.name))
            column.put(number, score.value, kinds[score.status], result.round, result.duration_s)
            if score.judging:
                served += score.judging.models
        if served:
            self.models = merged(self.models, served)

    def cases(self, evalset: str) -> Cases:
        """Return the cases of an evalset, to which more can be added."""
        found = self.evalsets.get(evalset)
        if found is None:
            found = self.evalsets[evalset] = Cases()
        return found

    def column(self, group: tuple[str, str, str]) -> Column:
        """Return the column of an agent, evalset and criterion, to which more can be added."""
        found = self.groups.get(group)
        if found is None:
            found = self.groups[group] = Column(self.cases(group[1]))
        return found

    @classmethod
    def of(cls, results: "Iterable[AnyTrial]") -> "Columns":
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
        for agent, evalset, numbers, ranks in self._ranks(criteria, excused):
            cases = self.evalsets[evalset].ids
            for number, rank in zip(numbers.tolist(), ranks.tolist(), strict=True):
                yield Place(agent, evalset, cases[number]), RANKED[rank]

    def ended(self, criteria: Facts, excused: Exempted = _NO_CASES) -> Counts:
        """Count the cases by their overall status (see `statuses`)."""
        import numpy as np

        ranks = [ranks for _, _, _, ranks in self._ranks(criteria, excused)]
        return counted(np.concatenate([np.zeros(0, np.int64), *ranks]))

    def _ranks(
        self, criteria: Facts, excused: Exempted
    ) -> "Iterator[tuple[str, str, Whole, Whole]]":
        """Yield, for each agent and evalset, the numbers and the ranks of the cases."""
        import numpy as np

        for (agent, evalset), groups in self._by_pair().items():
            worst = np.full(len(self.evalsets[evalset].ids), -1)
            for group in groups:
                column, facts = self.groups[group], criteria[group[2]]
                ranks = column.ranks(facts) if facts.judges else np.zeros(len(column), np.int64)
                if left_out := excused.get(group):
                    ranks[[case in left_out for case in column]] = RANKED.index(Status.SKIPPED)
                worst[column.numbers] = np.maximum(worst[column.numbers], ranks)
            (numbers,) = (worst >= 0).nonzero()
            yield agent, evalset, numbers, worst[numbers]

    def unjudged(self, criteria: Facts) -> Iterator[Place]:
        """Yield each case to which no blocking criterion applies.

        An error does not count: the criterion applies, but could not measure the case.
        """
        import numpy as np

        for (agent, evalset), groups in self._by_pair().items():
            names = self.evalsets[evalset].ids
            known, judged = np.zeros((2, len(names)), bool)
            for column, facts in ((self.groups[each], criteria[each[2]]) for each in groups):
                known[column.numbers] = True
                if facts.judges:
                    judged[column.numbers] |= column.counts(MEASURED, LOST) > 0
            for number in np.flatnonzero(known & ~judged).tolist():
                yield Place(agent, evalset, names[number])

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


class Past(NamedTuple):
    """One baseline run, with its values."""

    meta: RunMeta
    columns: Columns
