"""Pairing of the cases of a run with the same cases of its baseline.

Only the same question, judged in the same way, is compared: a case whose content changed, or a
criterion whose options, prompt or judge changed, is reported instead.
"""

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple, Self

from ci_eval.config.config_schema import Excuse
from ci_eval.gate.case_pairs import Pair, Pairs
from ci_eval.gate.exemptions import Excuses, GroupName, covers, in_force
from ci_eval.records.comparisons import GroupKey, Vanished
from ci_eval.records.results import CriterionFacts, RunMeta
from ci_eval.run_files.score_cases import Cases
from ci_eval.run_files.score_cell import LOST, MEASURED, Cell, best_of, mean
from ci_eval.run_files.score_column import Column, passing
from ci_eval.run_files.score_table import Columns, Past
from ci_eval.stats.intervals import mean_interval
from ci_eval.stats.permutation import Sample, Samples

if TYPE_CHECKING:
    from ci_eval.run_files.score_column import Chosen, Floats, Whole

ROUNDING = 1e-9
"""Smaller differences, as a share of the scale, count as zero."""
_FEW = 4
"""Up to this many differing cases, all of them worse, permutation may fail to raise a doubt."""
_ENOUGH = 50
"""With this many cases there are more than enough exchanges."""


class Pooled(NamedTuple):
    """The runs of a baseline, pooled."""

    columns: Columns
    """The comparable values."""
    changed: list[str]
    """Why the other values are not comparable, in words."""
    beside: Mapping[GroupName, Column]
    """Cases that this run lacks or whose content changed: history, but not compared."""


def pool(
    meta: RunMeta, now: Columns, before: Sequence[Past], *, is_same_job: bool = False
) -> Pooled:
    """Pool the values of all runs of the baseline, separating those that are not comparable.

    A drop that a baseline run accepted starts a new level: earlier runs of that case are left out.
    The rounds of a run are of the same day, so they count as one unit, except for rounds of the
    merge base in the same job.
    """
    pooled, beside = Columns(evalsets=now.evalsets), Columns()
    changed: dict[str, None] = {}
    accepted: list[Excuse] = []
    for past in before:
        for evalset, ids in past.meta.changed_cases.items():
            changed |= dict.fromkeys(_changed(evalset, case) for case in ids)
        own = in_force(past.meta)
        behind = [each for each in accepted if each not in own]
        accepted += [each for each in own if each not in accepted]
        meant = {
            name: _Meant.of(cases, now.evalsets.get(name, Cases()))
            for name, cases in past.columns.evalsets.items()
        }
        for key, column in past.columns.groups.items():
            if key not in now.groups:
                continue
            name = key[2]
            facts = past.meta.criteria.get(name)
            if facts is None or facts.fingerprint != meta.criteria[name].fingerprint:
                changed[f"criterion {name}: its definition changed"] = None
                continue
            numbers = meant[key[1]].numbers[column.numbers]
            same = meant[key[1]].same[column.numbers]
            is_there = now.groups[key].rows_of(numbers) >= 0
            for case in column.named(is_there & ~same):
                changed[_changed(key[1], case)] = None
            counts = _uncovered(column, key, behind)
            numbers[~(is_there & same & counts)] = -1
            pooled.column(key).pool(column, numbers, as_unit=not is_same_job)
            if (others := ~(is_there & same) & counts).any():
                numbers[:] = -1
                cases = beside.cases(key[1])
                numbers[others] = [cases.number_of(case) for case in column.named(others)]
                beside.column(key).pool(column, numbers, as_unit=not is_same_job)
    return Pooled(pooled, list(changed), beside.groups)


def _changed(evalset: str, case: str) -> str:
    return f"case {evalset}/{case}: its content changed"


class _Meant(NamedTuple):
    """The cases of an evalset in an earlier run, mapped to this run."""

    numbers: "Whole"
    """The number of each in this run; -1 if this run lacks it."""
    same: "Chosen"
    """Whether the content of each is the same."""

    @classmethod
    def of(cls, earlier: Cases, now: Cases) -> Self:
        numbers = earlier.numbers_in(now)
        return cls(numbers, earlier.same_in(now, numbers))


def _uncovered(column: Column, key: GroupName, excuses: Sequence[Excuse]) -> "Chosen":
    """Return which rows no excuse covers."""
    import numpy as np

    found = np.ones(len(column), bool)
    if excuses:
        found[:] = [not any(covers(each, key, case) for each in excuses) for case in column]
    return found


def vanished(meta: RunMeta, now: Columns, past: Past) -> Iterator[Vanished]:
    """Yield the largest things that vanished since the nearest baseline run, each once."""
    old = past.columns
    agents, evalsets, criteria = ({key[position] for key in now.groups} for position in range(3))
    seen: set[Vanished] = set()
    for key in dict.fromkeys((*old.groups, *past.meta.gone_groups)):
        agent, evalset, criterion = key
        before, column = old.groups.get(key, Column()), now.groups.get(key)
        is_here = column is not None and not _is_silent(meta.criteria[criterion], before, column)
        if is_here or criterion in meta.disabled:
            continue
        if agent not in agents:
            gone = Vanished(kind="agent", name=agent)
        elif evalset not in evalsets:
            gone = Vanished(kind="evalset", name=evalset)
        elif criterion not in criteria:
            gone = Vanished(kind="criterion", name=criterion)
        else:
            gone = Vanished(kind="criterion", name=criterion, where=f"{evalset} with {agent}")
        if gone not in seen:
            seen.add(gone)
            yield gone
    yield from (each for each in _cases_gone(now, past, evalsets) if each not in seen)


def blocks(facts: CriterionFacts) -> bool:
    """Return True if a criterion can block."""
    return facts.tier == "block" and not (facts.informational and facts.max_growth is None)


def _is_silent(facts: CriterionFacts, before: Column, now: Column) -> bool:
    """Return True if a criterion that can block measured cases before and measures none now."""
    did = bool(before.counts(MEASURED).any())
    return blocks(facts) and did and not now.counts(MEASURED, LOST).any()


def _cases_gone(now: Columns, past: Past, evalsets: Container[str]) -> Iterator[Vanished]:
    """Yield the cases that are gone, or the whole evalset."""
    old, gone = past.columns.evalsets, past.meta.gone
    for evalset in {**old, **gone}:
        if evalset not in evalsets:
            yield Vanished(kind="evalset", name=evalset)
            continue
        for case in (*old.get(evalset, Cases()).ids, *gone.get(evalset, ())):
            if case not in now.evalsets[evalset].numbers:
                yield Vanished(kind="case", name=case, where=evalset)


@dataclass(frozen=True)
class Group:
    """One criterion on one evalset with one agent, now and before."""

    key: GroupKey
    facts: CriterionFacts
    now: Column
    before: Column
    max_drop: float
    left_out: Mapping[str, Excuse] = field(default_factory=dict)
    """Exempted cases: quarantined or accepted."""
    beside: Column = field(default_factory=Column)
    """Cases of the baseline that are part of history but not compared."""

    @property
    def sign(self) -> float:
        """1 where higher is better, -1 where lower is."""
        return 1.0 if self.facts.better == "higher" else -1.0

    @property
    def tested(self) -> bool:
        """Whether a drop can block or warn, rather than only be shown."""
        judged = not self.facts.informational or self.facts.max_growth is not None
        return judged and self.facts.tier != "inform" and bool(self.pairs)

    @cached_property
    def pairs(self) -> Pairs:
        """The cases that both runs measured, without exempted ones."""
        if not self.left_out:
            return self.all_pairs
        return self.all_pairs.where(~self.all_pairs.among(self.left_out))

    @cached_property
    def all_pairs(self) -> Pairs:
        """The cases that both runs measured, including exempted ones."""
        return Pairs.of(self.now, self.before, best_of(self.facts))

    def changed(self, suspects: Iterable[str]) -> Pairs:
        """Return the cases whose outcome may have changed, and the suspects."""
        pairs = self.all_pairs
        was, now = (passing(each, self.facts) for each in (pairs.bases, pairs.means))
        lacks = self.now.counts(LOST)[pairs.rows] > 0
        return pairs.where((was != now) | lacks | pairs.among(suspects))

    def unpaired(self) -> Iterator[tuple[str, Cell]]:
        """Yield the cases of this run without a counterpart, with their cells."""
        import numpy as np

        rows = np.delete(np.arange(len(self.now)), self.all_pairs.rows)
        return zip(self.now.named(rows), self.now.cells(rows), strict=True)

    @cached_property
    def failing(self) -> Pairs:
        """The cases of `pairs` whose measurements in this run all fail, with none missing."""
        return self.pairs.where(self.now.failing(self.facts)[self.pairs.rows])

    @cached_property
    def scale(self) -> float:
        """The unit of drops: the width of the range, else the mean of the baseline."""
        if self.facts.interval:
            return self.facts.interval[1] - self.facts.interval[0]
        return abs(math.fsum(self.all_pairs.bases)) / max(len(self.all_pairs), 1)

    @property
    def least(self) -> float:
        """The smallest mean drop that counts."""
        growth = self.facts.max_growth
        return (self.max_drop if growth is None else growth) * self.scale

    @cached_property
    def differences(self) -> "Floats":
        """The difference now minus before of each case; below 0 is worse."""
        return self.sign * (self.pairs.means - self.pairs.bases)

    @cached_property
    def drop(self) -> float:
        """The mean drop; below 0 if it got better."""
        return -math.fsum(self.differences.tolist()) / len(self.pairs) if self.pairs else 0.0

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % confidence interval of the mean difference, in the criterion's own direction."""
        return mean_interval((self.sign * self.differences).tolist())

    @property
    def complete(self) -> bool:
        """True if every compared case has all its measurements."""
        return not self.now.counts(LOST)[self.pairs.rows].any()

    @cached_property
    def steady(self) -> bool:
        """Whether history shows no variance at all, although it is long enough to show some.

        A flaky case remains part of history: exempting it, changing it or leaving it out of a run
        does not make the other cases steady.
        """
        rows = self.all_pairs.rows_before
        # A single run is not enough: its repeats may be correlated.
        could = bool((self.before.units[rows] > 1).any())
        return could and not (self.before.varied[rows].any() or self.beside.varied.any())

    @cached_property
    def barely_differs(self) -> bool:
        """Whether few cases differ from the baseline, and none of them for the better.

        An agent that varies differs in many cases, so it is more likely that these few got worse,
        which no exchange of runs can distinguish from noise.
        """
        least = ROUNDING * self.scale
        differing = self.differences[abs(self.differences) > least]
        return 0 < len(differing) <= _FEW and bool(max(differing) < 0)

    @cached_property
    def stored_means(self) -> "Sequence[Floats]":
        """For each stored run, the mean of each case in all runs, as a share of the scale."""
        means = self.before.unit_means(self.all_pairs.rows_before)
        return [*(means.T / (self.scale or 1.0))]

    @cached_property
    def sampling(self) -> float:
        """The variance of a stored run's mean that the variances of its cases explain.

        Requires several stored runs.
        """
        cases = zip(*(run.tolist() for run in self.stored_means), strict=True)
        return math.fsum(map(_variance, cases)) / len(self.stored_means[0]) ** 2

    @property
    def exchanges(self) -> int:
        """The number of ways to exchange its runs, or a lower bound that is large enough.

        Exempted cases count, so that an exemption does not shift the budget to another guard.
        """
        ways = 1
        for sample in self.samples_of(self.all_pairs.where(slice(_ENOUGH)), 0):
            ways *= math.comb(len(sample.new) + len(sample.old), len(sample.new))
        return ways

    def passed(self, value: float) -> bool:
        """Return True if `value` passes."""
        return self.facts.passes(value)

    def failures(self, values: Sequence[float]) -> int:
        """Return the number of `values` that do not pass."""
        return sum(not self.passed(each) for each in values)

    def all_fail(self, cases: Iterable[str]) -> bool:
        """Return True if the mean of each of these cases fails now."""
        return not any(self.passed(self.all_pairs[case].value) for case in cases)

    def samples(self, look: int, before: int | None = None) -> Samples:
        """Return the samples to permute, with the rounds up to `look`, as shares of the scale.

        `before` limits the rounds of the baseline; by default there is no limit.
        """
        single = self.pairs.single
        paired, others = self.pairs.where(single), self.pairs.where(~single)
        samples = zip(others, self.samples_of(others, look, before), strict=True)
        old = paired.bases * self._shares * self._margin
        return Samples.of(
            (self.key.agent, self.key.evalset),
            samples,
            paired=([*paired], paired.means * self._shares, old),
        )

    @property
    def _shares(self) -> float:
        """The factor that turns a value into a share of the scale, of which more is better."""
        return self.sign / (self.scale or 1.0)

    @property
    def _margin(self) -> float:
        """The factor that adds the allowed growth to a value of the baseline."""
        return 1 + self.sign * -(self.facts.max_growth or 0.0)

    def samples_of(self, pairs: Pairs, look: int, before: int | None = None) -> Iterator[Sample]:
        """Yield the sample of each case."""
        best = best_of(self.facts)
        options = map(repeat, (look, before, best, self._shares, self._margin))
        return map(_sample, pairs.values(), *options)


@lru_cache(maxsize=4096)
def _sample(  # noqa: PLR0913, PLR0917  # everything that a sample depends on
    pair: Pair, look: int, before: int | None, best: float | None, shares: float, margin: float
) -> Sample:
    """Return the sample of a case; cached, because thousands of cases have equal ones."""
    rounds, runs = pair.rounds(look), pair.runs_before[:before]
    # Runs are exchanged as a whole.  Means of fewer repeats vary more, so each run is cut to the
    # number of repeats of the shortest run.
    if not pair.now.errors and rounds:
        size = min(len(each) for each in (*rounds, *runs))
        new, old = ([mean(each[:size]) for each in units] for units in (rounds, runs))
    else:
        missing = [best] * pair.now.errors if best is not None else []
        new = [*(value for each in rounds for value in each), *missing]
        old = [value for each in runs for value in each]
    return Sample(
        tuple(value * shares for value in new), tuple(value * shares * margin for value in old)
    )


def groups_of(
    meta: RunMeta, now: Columns, before: Pooled, max_drop: float, left_out: Excuses
) -> list[Group]:
    """Return every group of a run, with the values of the baseline for it."""
    return [
        Group(
            key,
            meta.criteria[key.criterion],
            now.groups[name],
            before.columns.groups.get(name, Column(now.groups[name].cases)),
            max_drop,
            left_out.get(name, {}),
            before.beside.get(name, Column()),
        )
        for key in now.group_keys()
        for name in [(key.agent, key.evalset, key.criterion)]
    ]


def _variance(values: Sequence[float]) -> float:
    """Return the sample variance; much faster than the exact one of `statistics`."""
    middle = sum(values) / len(values)
    return sum((value - middle) ** 2 for value in values) / (len(values) - 1)
