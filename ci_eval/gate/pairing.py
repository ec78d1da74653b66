"""Pairing of the cases of a run with those of its baseline, if they mean the same.

Only the same question, judged in the same way, is compared: a case whose content changed, or a
criterion whose options, prompt or judge changed, is reported instead.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from typing import NamedTuple

from ci_eval.config.config_schema import Excuse
from ci_eval.gate.exemptions import Excuses, GroupName, covers, in_force
from ci_eval.records.findings import GroupKey, Vanished
from ci_eval.records.results import CriterionFacts, RunMeta
from ci_eval.run_files.score_table import Cell, Column, Columns, Past, best_of, mean, passes
from ci_eval.stats.intervals import mean_interval
from ci_eval.stats.permutation import Place, Sample

ROUNDING = 1e-9
"""Smaller differences, as a share of the scale, are none."""
_FEW = 4
"""With this many cases that differ, all for the worse, no permutation need raise a doubt."""
_ENOUGH = 50
"""With this many cases there are more than enough exchanges."""


class Pooled(NamedTuple):
    """The runs of a baseline, pooled."""

    columns: Columns
    """The comparable values."""
    changed: list[str]
    """Why other values are not comparable, in words."""
    beside: Mapping[GroupName, Column]
    """Cases that this run lacks or whose content changed: history, but not compared."""


def pool(
    meta: RunMeta, now: Columns, before: Sequence[Past], *, is_same_job: bool = False
) -> Pooled:
    """Pool the values of all runs of the baseline, separating those that are not comparable.

    A drop that a baseline run had accepted starts a new level: earlier runs of that case are left
    out.  The rounds of a run have its day in common, so they count as one unit, except for rounds
    of the merge base in the same job.
    """
    pooled = Columns()
    changed: dict[str, None] = {}
    beside: dict[GroupName, Column] = {}
    accepted: list[Excuse] = []
    for past in before:
        own = in_force(past.meta)
        behind = [each for each in accepted if each not in own]
        accepted += [each for each in own if each not in accepted]
        for key, column in past.columns.groups.items():
            if key not in now.groups:
                continue
            name = key[2]
            facts = past.meta.criteria.get(name)
            if facts is None or facts.fingerprint != meta.criteria[name].fingerprint:
                changed[f"criterion {name}: its options changed"] = None
                continue
            target = pooled.groups.setdefault(key, {})
            for case, cell in column.items():
                place = (key[1], case)
                if behind and any(covers(each, key, case) for each in behind):
                    continue
                same = case in now.groups[key]
                if same and past.columns.fingerprints[place] != now.fingerprints[place]:
                    changed[f"case {key[1]}/{case}: its content changed"] = None
                    same = False
                into = target if same else beside.setdefault(key, {})
                # The cells of a single run are shared, not copied: nothing modifies them.
                one = cell if is_same_job or len(cell.units) == 1 else cell.as_one_unit()
                into[case] = into[case].pooled(one) if case in into else one
    return Pooled(pooled, list(changed), beside)


def added(now: Columns, before: Sequence[Past]) -> Iterator[str]:
    """Yield the cases that no run of the baseline has."""
    known = {place for past in before for place in past.columns.fingerprints}
    for evalset, case in now.fingerprints:
        if (evalset, case) not in known:
            yield f"{evalset}/{case}"


def vanished(meta: RunMeta, now: Columns, old: Columns) -> Iterator[Vanished]:
    """Yield the largest things that vanished since the nearest baseline run, each once."""
    agents, evalsets, criteria = ({key[position] for key in now.groups} for position in range(3))
    seen: set[Vanished] = set()
    for agent, evalset, criterion in old.groups:
        if criterion in meta.disabled or (agent, evalset, criterion) in now.groups:
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
    for evalset, case in old.fingerprints:
        if evalset in evalsets and (evalset, case) not in now.fingerprints:
            yield Vanished(kind="case", name=case, where=evalset)


@dataclass(frozen=True, slots=True)
class Pair:
    """One case now and before, under one criterion."""

    now: Cell
    before: Cell
    value: float
    """The mean now; missing values count as the best possible, so that a regression holds whatever
    they would have been."""
    base: float

    def rounds(self, look: int) -> list[tuple[float, ...]]:
        """Return the measurements of this run, by round, up to a look."""
        # Skips rounds in which nothing of the case was measured.
        return [unit for unit in self.now.units if unit][: look + 1]

    @property
    def runs_before(self) -> list[tuple[float, ...]]:
        """The measurements of each baseline run."""
        return [unit for unit in self.before.units if unit]


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
    beside: Column = field(default_factory=dict)
    """Cases of the baseline that are not compared."""
    kept: dict[tuple[int, int | None], Mapping[Place, Sample]] = field(
        default_factory=dict, repr=False
    )
    """Cache of the samples by their arguments."""

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
    def pairs(self) -> Mapping[str, Pair]:
        """The cases that both runs measured, without exempted ones."""
        if not self.left_out:
            return self.all_pairs
        return {case: pair for case, pair in self.all_pairs.items() if case not in self.left_out}

    @cached_property
    def all_pairs(self) -> Mapping[str, Pair]:
        """The cases that both runs measured, including exempted ones."""
        best = best_of(self.facts)
        found: dict[str, Pair] = {}
        for case, cell in self.now.items():
            before = self.before.get(case)
            base = before.value if before else None
            value = cell.with_missing(best)
            if before and base is not None and value is not None:
                found[case] = Pair(cell, before, value, base)
        return found

    @cached_property
    def scale(self) -> float:
        """The unit of drops: the width of the range, else the mean of the baseline."""
        if self.facts.interval:
            return self.facts.interval[1] - self.facts.interval[0]
        bases = [each.base for each in self.all_pairs.values()]
        return abs(math.fsum(bases)) / max(len(bases), 1)

    @property
    def least(self) -> float:
        """The smallest mean drop that counts."""
        growth = self.facts.max_growth
        return (self.max_drop if growth is None else growth) * self.scale

    @cached_property
    def differences(self) -> Sequence[float]:
        """The difference now minus before of each case; below 0 is worse."""
        return [self.sign * (each.value - each.base) for each in self.pairs.values()]

    @property
    def drop(self) -> float:
        """The mean drop; below 0 if it got better."""
        return -math.fsum(self.differences) / len(self.differences) if self.differences else 0.0

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % confidence interval of the mean difference, in the criterion's own direction."""
        return mean_interval([self.sign * each for each in self.differences])

    @property
    def complete(self) -> bool:
        """Whether no case that is compared lacks a measurement."""
        return not any(each.now.errors for each in self.pairs.values())

    @cached_property
    def steady(self) -> bool:
        """Whether history shows no variance at all, although it could have.

        A flaky case remains part of history: exempting it, changing it or leaving it out of a run
        does not make the others steady.
        """
        cells = [each.before for each in self.all_pairs.values()]
        # A single run is not enough: its repeats may be correlated.
        return any(len(each.units) > 1 for each in cells) and not any(
            each.varied for each in chain(cells, self.beside.values())
        )

    @cached_property
    def barely_differs(self) -> bool:
        """Whether few cases differ from the baseline, and none of them for the better.

        An agent that varies differs in many cases, so this is more likely a fall of these few,
        which no exchange of runs could tell from noise.
        """
        least = ROUNDING * self.scale
        differing = [each for each in self.differences if abs(each) > least]
        return 0 < len(differing) <= _FEW and max(differing) < 0

    @cached_property
    def stored_means(self) -> Sequence[Sequence[float]]:
        """For each stored run, the mean of each case in all runs, as a share of the scale."""
        cells = [pair.before for pair in self.all_pairs.values()]
        longest = max((len(cell.units) for cell in cells), default=0)
        scale = self.scale or 1.0
        means = [
            [mean(unit) / scale for unit in cell.units]
            for cell in cells
            if len(cell.units) == longest and all(cell.units)
        ]
        return [*zip(*means, strict=True)]

    @cached_property
    def sampling(self) -> float:
        """The variance of a stored run's mean that the variances of its cases explain.

        There are several stored runs.
        """
        cases = [*zip(*self.stored_means, strict=True)]
        return math.fsum(map(_variance, cases)) / len(cases) ** 2

    @property
    def exchanges(self) -> int:
        """The number of ways to exchange its runs, or a number that is large enough.

        Exempted cases count, so that an exemption does not shift the budget to another guard.
        """
        ways = 1
        best = best_of(self.facts)
        for pair in islice(self.all_pairs.values(), _ENOUGH):
            sample = self._sample(pair, 0, best)
            ways *= math.comb(len(sample.new) + len(sample.old), len(sample.new))
        return ways

    def passed(self, value: float) -> bool:
        """Return True if `value` passes."""
        return passes(value, self.facts)

    def failures(self, values: Sequence[float]) -> int:
        """Return the number of `values` that do not pass."""
        return sum(not self.passed(each) for each in values)

    def all_fail(self, cases: Iterable[str]) -> bool:
        """Return True if the mean of each of these cases fails now."""
        return not any(self.passed(self.all_pairs[case].value) for case in cases)

    def samples(self, look: int, before: int | None = None) -> Mapping[Place, Sample]:
        """Return the samples to permute, with the rounds up to `look`, as shares of the scale.

        `before` limits the rounds of what is compared with; by default there is no limit.
        """
        if (look, before) not in self.kept:
            best = best_of(self.facts)
            self.kept[look, before] = {
                (self.key.agent, self.key.evalset, case): self._sample(pair, look, best, before)
                for case, pair in self.pairs.items()
            }
        return self.kept[look, before]

    def _sample(
        self, pair: Pair, look: int, best: float | None, before: int | None = None
    ) -> Sample:
        rounds, runs = pair.rounds(look), pair.runs_before[:before]
        # Runs are exchanged as a whole.  Means of fewer repeats vary more, so of each run as many
        # count as the shortest has.
        if not pair.now.errors and rounds:
            size = min(len(each) for each in (*rounds, *runs))
            new, old = ([mean(each[:size]) for each in units] for units in (rounds, runs))
        else:
            missing = [best] * pair.now.errors if best is not None else []
            new = [*(value for each in rounds for value in each), *missing]
            old = [value for each in runs for value in each]
        shares = self.sign / (self.scale or 1.0)
        margin = 1 + self.sign * -(self.facts.max_growth or 0.0)
        return Sample(
            tuple(value * shares for value in new),
            tuple(value * shares * margin for value in old),
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
            before.columns.groups.get(name, {}),
            max_drop,
            left_out.get(name, {}),
            before.beside.get(name, {}),
        )
        for key in now.group_keys()
        for name in [(key.agent, key.evalset, key.criterion)]
    ]


def _variance(values: Sequence[float]) -> float:
    """Return the sample variance; much faster than the exact one of `statistics`."""
    middle = sum(values) / len(values)
    return sum((value - middle) ** 2 for value in values) / (len(values) - 1)
