"""The values of a run by criterion and case; compact enough for 100,000 cases."""

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from ci_eval.records.cases import Status
from ci_eval.records.findings import GroupKey
from ci_eval.records.model_usage import ModelUsage
from ci_eval.records.model_versions import ServedModel, merged
from ci_eval.records.results import CriterionFacts, RunMeta, Score, TrialResult


@dataclass(eq=False, slots=True)
class Cell:
    """All observations of one case under one criterion."""

    units: tuple[tuple[float, ...], ...] = ()
    """The measured values, grouped by run and rerun round: repeats of one group may be
    correlated."""
    confirming: tuple[float, ...] = ()
    """The values of confirming trials."""
    unconfirmed: int = 0
    """The number of confirming trials that ended in an error."""
    lost: tuple[int, ...] = ()
    """The group of each observation that ended in an error."""
    skipped: int = 0
    seconds: float = 0.0
    """The duration of all trials together."""

    def add(self, score: Score, result: TrialResult) -> None:
        """Add one observation."""
        self.seconds += result.duration_s
        value = score.value
        if value is None and score.status is not Status.ERROR:
            self.skipped += 1
        elif value is None and result.confirms:
            self.unconfirmed += 1
        elif value is None:
            self.lost += (result.round,)
        elif result.confirms:
            self.confirming += (value,)
        elif not self.units and not result.round:
            self.units = _one(value)
        else:
            units = [*self.units, *[()] * (result.round + 1 - len(self.units))]
            units[result.round] += (value,)
            self.units = tuple(units)

    def pooled(self, other: "Cell") -> "Cell":
        """Return the observations of both cells."""
        lost = self.lost + tuple(unit + len(self.units) for unit in other.lost)
        units, skipped = self.units + other.units, self.skipped + other.skipped
        return Cell(units, lost=lost, skipped=skipped, seconds=self.seconds + other.seconds)

    def as_one_unit(self) -> "Cell":
        """Return a copy with all observations in one group."""
        values = tuple(self.observations)
        units, lost = (values,) if values else (), (0,) * self.errors
        return Cell(units, lost=lost, skipped=self.skipped, seconds=self.seconds)

    def filled(self, value: float) -> "Cell":
        """Return a copy with `value` for every missing observation."""
        units = [*self.units, *[()] * (max(self.lost, default=-1) + 1 - len(self.units))]
        for unit in self.lost:
            units[unit] += (value,)
        return replace(self, units=tuple(units), lost=())

    @property
    def errors(self) -> int:
        """The number of observations that ended in an error."""
        return len(self.lost)

    @property
    def confirmations(self) -> int:
        """The number of confirming trials, whether they could be observed or not."""
        return len(self.confirming) + self.unconfirmed

    @property
    def observations(self) -> Sequence[float]:
        """All measured values, without those of confirming trials."""
        if len(self.units) == 1:
            return self.units[0]
        return [value for unit in self.units for value in unit]

    @property
    def trials(self) -> int:
        """The number of trials."""
        return self.measured + self.errors + self.confirmations + self.skipped

    @property
    def measured(self) -> int:
        """The number of measured values."""
        return sum(map(len, self.units))

    @property
    def applies(self) -> bool:
        """True if something was measured, or should have been."""
        return bool(self.measured or self.lost)

    @property
    def value(self) -> float | None:
        """The mean of the measured values; exact if they are all equal."""
        values = self.observations
        return mean(values) if values else None

    @property
    def varied(self) -> bool:
        """True if the observations differ."""
        return len({*self.observations}) > 1

    def lacks(self, facts: CriterionFacts) -> bool:
        """Return True if missing observations could change the findings on the case."""
        return bool(self.errors or (self.unconfirmed and self.status(facts) is Status.FAILED))

    def with_missing(self, value: float | None) -> float | None:
        """Return the mean with `value` for every missing observation.

        `None` if observations are missing and `value` is `None`, as for unbounded measures.
        """
        if not self.errors:
            return self.value
        if value is None:
            return None
        values = [*self.observations, *[value] * self.errors]
        return math.fsum(values) / len(values)

    def status(self, facts: CriterionFacts) -> Status:
        """Return the status; failed if it fails whatever the missing observations."""
        if self.errors:
            best_mean = self.with_missing(best_of(facts))
            fails = self.measured and best_mean is not None and not passes(best_mean, facts)
            return Status.FAILED if fails else Status.ERROR
        value = self.value
        if value is None:
            return Status.SKIPPED
        return Status.PASSED if passes(value, facts) else Status.FAILED


@lru_cache(maxsize=1024)
def _one(value: float) -> tuple[tuple[float, ...], ...]:
    """Return the units of a single value, which thousands of cells share."""
    return ((value,),)


def best_of(facts: CriterionFacts) -> float | None:
    """Return the best possible value; `None` if unbounded."""
    greatest = max if facts.better == "higher" else min
    return greatest(facts.interval) if facts.interval else None


def worst_of(facts: CriterionFacts) -> float | None:
    """Return the worst possible value; `None` if unbounded."""
    least = min if facts.better == "higher" else max
    return least(facts.interval) if facts.interval else None


def passes(value: float, facts: CriterionFacts) -> bool:
    """Return True if `value` meets the threshold, or if there is none."""
    if facts.threshold is None:
        return True
    return value >= facts.threshold if facts.better == "higher" else value <= facts.threshold


def mean(values: Sequence[float]) -> float:
    """Return the mean of at least one value; exact if they are all equal."""
    if len(values) == 1 or len({*values}) == 1:
        return values[0]
    return math.fsum(values) / len(values)


Column = dict[str, Cell]
"""One criterion on one evalset with one agent: a cell for each case."""
Facts = Mapping[str, CriterionFacts]
"""The settings of each criterion."""
Exempted = Mapping[tuple[str, str, str], Container[str]]
"""The cases that do not count, by agent, evalset and criterion."""
_NO_CASES: Exempted = MappingProxyType({})


def mean_of(column: Column) -> float | None:
    """Return the mean over the measured cases; `None` if there are none."""
    values = [cell.value for cell in column.values() if cell.value is not None]
    return math.fsum(values) / len(values) if values else None


@dataclass
class Columns:
    """The values of one or several runs."""

    groups: dict[tuple[str, str, str], Column] = field(default_factory=dict)
    """By agent, evalset and criterion."""
    fingerprints: dict[tuple[str, str], str] = field(default_factory=dict)
    """Fingerprint of each case, by evalset and case."""
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
        self.fingerprints[key.evalset, key.case] = result.case_fingerprint
        self.models = merged(self.models, result.served)
        for score in result.scores:
            column = self.groups.setdefault((key.agent, key.evalset, score.name), {})
            if key.case not in column:
                column[key.case] = Cell()
            column[key.case].add(score, result)

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
        found = Columns(fingerprints=self.fingerprints)
        for key, column in self.groups.items():
            threshold = criteria[key[2]].threshold
            found.groups[key] = {
                case: cell.filled(threshold) if cell.lost and threshold is not None else cell
                for case, cell in column.items()
            }
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
                    (agent, evalset, case)
                    for case, cell in column.items()
                    if case not in left_out and cell.lacks(facts)
                }
        return len(places)

    def cases(
        self, criteria: Facts, excused: Exempted = _NO_CASES
    ) -> Iterator[tuple[tuple[str, str, str], Status]]:
        """Yield each case, by agent, evalset and id, with its overall status.

        A case passes if all blocking criteria pass. Criteria that only inform or warn do not
        count, nor do `excused` cases of a group. A case without any counting criterion is skipped.
        """
        worst: dict[tuple[str, str], dict[str, list[Status]]] = {}
        for (agent, evalset, name), column in self.groups.items():
            facts = criteria[name]
            left_out = excused.get((agent, evalset, name), ())
            cases = worst.setdefault((agent, evalset), {})
            for case, cell in column.items():
                statuses = cases.setdefault(case, [])
                if facts.judges and case not in left_out:
                    statuses.append(cell.status(facts))
        for (agent, evalset), cases in worst.items():
            for case, statuses in cases.items():
                failed = Status.FAILED in statuses
                yield (agent, evalset, case), Status.FAILED if failed else Status.worst(statuses)

    def unjudged(self, criteria: Facts) -> Iterator[tuple[str, str, str]]:
        """Yield each case, by agent, evalset and id, to which no blocking criterion applies.

        An error does not count: the criterion applies, but could not measure the case.
        """
        judged: dict[tuple[str, str, str], bool] = {}
        for (agent, evalset, name), column in self.groups.items():
            judges = criteria[name].judges
            for case, cell in column.items():
                place = agent, evalset, case
                judged[place] = judged.get(place, False) or (judges and cell.applies)
        yield from (place for place, found in judged.items() if not found)

    def unmeasured(self, criteria: Facts) -> Iterator[str]:
        """Yield the blocking criteria that apply to no case."""
        applies: dict[str, bool] = {}
        for (_, _, name), column in self.groups.items():
            if criteria[name].judges and not applies.get(name):
                applies[name] = any(cell.applies for cell in column.values())
        yield from (name for name, found in applies.items() if not found)


class Past(NamedTuple):
    """One baseline run, with its values."""

    meta: RunMeta
    columns: Columns
