"""Power analysis: the drops that the gate detects with its baseline, and the cost of more."""

import math
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import Literal

from ci_eval.cli.gate.power_both_arms import ArmsSetting
from ci_eval.cli.gate.power_costs import Cost
from ci_eval.cli.gate.power_detectable_drop import MOST, Noise, Setting, fewest, noise_of
from ci_eval.config.config_schema import GateOptions
from ci_eval.gate import hard_break
from ci_eval.gate.between_runs import between_runs
from ci_eval.gate.both_arms import LOOKS, TOGETHER, ArmDrops, unlikely
from ci_eval.gate.exemptions import excused
from ci_eval.gate.mean_drop import Drifts
from ci_eval.gate.pairing import Group, groups_of, pool
from ci_eval.records.cases import Record
from ci_eval.records.comparisons import GroupKey
from ci_eval.records.errors import UsageError
from ci_eval.records.results import Tier
from ci_eval.run.baseline_choice import Baseline
from ci_eval.run_files.file_names import command_line
from ci_eval.run_files.score_cell import Cell
from ci_eval.stats.intervals import at_least, most_probable_break

MOST_REPEATS = 1000
"""Maximum repeats in a configuration."""


class Break(Record):
    """Trials needed to prove that a case that always passed is broken."""

    trials: int | None
    """Number of trials that must all fail; `None` if even the maximum is too few."""
    drawn: bool
    """Whether they are extra trials, added by `on_inconclusive: rerun`."""
    proven: bool
    """Whether the gate proves it with its current settings."""


class Wanted(Record):
    """Repeats or cases needed to detect a drop of a given size."""

    repeats: int | None
    """Repeats of each case; `None` if no number is enough."""
    cases: int | None
    """Number of cases; `None` if no number is enough."""
    reason: str = ""
    """Why no number is enough."""


class Sensitivity(Record):
    """Detectable drop of one criterion on one evalset with one agent."""

    group: GroupKey
    tier: Tier
    cases: int
    mean: float
    """The mean of the baseline."""
    trial_sd: float | None
    """The standard deviation of a single trial; `None` if unknown."""
    run_sd: float | None
    """The standard deviation between runs; `None` if unknown."""
    steady: bool
    """Whether the baseline never varied."""
    level: float
    """The significance level at the first look."""
    drop: float | None
    """The smallest detectable drop, in the criterion's own unit; `None` if none is detectable, or
    unknown."""
    share: float | None
    """The same as a share of the criterion's interval, or of the mean if it has none."""
    single: Break | None
    """`None` for a criterion without a threshold."""
    arms: bool
    """Whether the merge base is run in the same job if a drop is in doubt."""
    wanted: Wanted | None = None


class Outlook(Record):
    """The drops that the gate can detect, and the cost of detecting more."""

    suite: str
    runs: int
    """Number of runs in the baseline."""
    window: int
    """Maximum number of runs that are pooled."""
    repeats: int
    cases: int
    power: float
    """The required probability of detecting a drop."""
    wanted_drop: float | None
    """The smallest drop to detect, as a share of the interval."""
    false_block: float
    hypotheses: Mapping[Tier, int]
    """Number of hypotheses that are tested together, by tier."""
    looks: int
    """Maximum number of looks at the data."""
    budget: float
    """Maximum number of trials of a run, as a multiple of the planned ones."""
    criteria: tuple[Sensitivity, ...]
    together: float | None
    """The smallest detectable drop if all blocking criteria drop alike, as a share of their
    intervals; `None` if there are not several, or it is unknown."""
    cost: Cost
    """Cost of a run as planned."""
    cost_of_repeats: Cost | None = None
    """Cost of a run with the wanted repeats."""
    cost_of_cases: Cost | None = None
    """Cost of a run with the wanted cases."""


@dataclass(frozen=True)
class Asked:
    """The question: which drop, at which power, with which settings."""

    suite: str
    gate: GateOptions
    repeats: int
    """Planned repeats of each case."""
    window: int
    power: float
    drop: float | None
    """A share of each criterion's interval."""
    arms: Container[str] = ()
    """The agents whose merge base is run in the same job in doubt."""
    config: str = ""
    """The configuration, as the user named it."""


def outlook(asked: Asked, before: Baseline, of_trial: Cost) -> Outlook:
    """Estimate the drops that the gate can detect, from the variance of the baseline.

    Raises:
        UsageError: the baseline is empty, or the variance of all cases is unknown.

    """
    runs = before.runs
    if not runs:
        raise UsageError(
            f"no run of {asked.suite!r} is stored, so the variance of its cases is unknown",
            hint=f"store a run: `{command_line(asked.config, 'run', '--baseline-save')}`",
        )
    nearest = runs[0]
    pooled = pool(nearest.meta, nearest.columns, runs)
    left_out = excused(nearest.meta, asked.gate, nearest.columns)
    groups = [
        each
        for each in groups_of(nearest.meta, nearest.columns, pooled, asked.gate.max_drop, left_out)
        if each.tested
    ]
    cases = len({(e.key.agent, e.key.evalset, case) for e in groups for case in e.now})
    families = [*_families(groups, asked, cases)]
    found = tuple(family.sensitivity(group) for family in families for group in family.groups)
    if found and all(each.trial_sd is None for each in found):
        raise UsageError(
            "the variance of the cases is unknown: the baseline has one run, with each case "
            "run once",
            hint="store another run, or run each case at least twice: `run: {repeats: 2}`",
        )
    wanted = [(each.wanted, each.cases) for each in found if each.tier == "block" and each.wanted]
    repeats = _most(each.repeats for each, _ in wanted)
    factor = _most(each.cases / count if each.cases else None for each, count in wanted)
    return Outlook(
        suite=asked.suite,
        runs=len(runs),
        window=asked.window,
        repeats=asked.repeats,
        cases=cases,
        power=asked.power,
        wanted_drop=asked.drop,
        false_block=asked.gate.false_block,
        hypotheses=_sizes(families),
        looks=asked.gate.looks,
        budget=asked.gate.rerun_budget if asked.gate.looks > 1 else 1.0,
        criteria=found,
        together=max(
            (drop for each in families if each.tier == "block" and (drop := each.together())),
            default=None,
        ),
        cost=of_trial.times(cases * asked.repeats),
        cost_of_repeats=of_trial.times(cases * int(repeats)) if repeats else None,
        cost_of_cases=of_trial.times(math.ceil(cases * factor) * asked.repeats) if factor else None,
    )


_TIERS: tuple[Literal["block", "warn"], ...] = ("block", "warn")


def _most(values: Iterator[float | None]) -> float | None:
    """Return the greatest of `values`; `None` if there is none, or one is unknown."""
    found = list(values)
    known = [each for each in found if each is not None]
    return max(known) if known and len(known) == len(found) else None


def _families(groups: Sequence[Group], asked: Asked, cases: int) -> Iterator["_Family"]:
    """Yield the criteria whose tests are corrected together, with their share of the rate."""
    planned = cases * asked.repeats
    budget = asked.gate.budget(planned) / max(planned, 1)
    beside = asked.arms if budget >= sum(LOOKS[0]) else ()
    for tier in _TIERS:
        tested = [each for each in groups if each.facts.tier == tier]
        for arms in (True, False):
            part = [each for each in tested if (each.key.agent in beside) is arms]
            if part:
                rate = asked.gate.false_block * (len(part) / len(tested))
                yield _Family(tier, part, asked, rate, budget if arms else 0.0)


def _sizes(families: Iterable["_Family"]) -> Mapping[Tier, int]:
    """Return the number of hypotheses of each tier."""
    found: dict[Tier, int] = {}
    for each in families:
        found[each.tier] = found.get(each.tier, 0) + each.size
    return found


@dataclass
class _Family:
    """Criteria of one tier, whose tests are corrected together."""

    tier: Tier
    groups: Sequence[Group]
    asked: Asked
    rate: float
    budget: float

    def __post_init__(self) -> None:
        self._arms = self.budget > 0
        kind = ArmDrops if self._arms else Drifts
        self._drifts = kind(self.groups, self.asked.gate, 0, (1 - hard_break.SHARE) * self.rate)
        self.size = self._drifts.size

    def together(self) -> float | None:
        """Return the detectable drop if all criteria with an interval drop by the same share."""
        groups = [self.groups[number] for number in self._drifts.together]
        cells = [*_means(groups).values()]
        noise = noise_of(cells)
        if noise is None or not self._drifts.visible:
            return None
        # The drop is a share of each interval, and the cases are those of all criteria.
        one = self._setting(groups[0], noise, self.asked.repeats)
        day = fmean(between_runs(each).spread for each in groups)
        setting = replace(one, cases=len(cells), least=self.asked.gate.max_drop, day=day)
        if self._arms:
            setting = replace(setting, doubts=(TOGETHER, *setting.doubts[1:]))
        return setting.detectable(self.asked.power, 1.0)

    def sensitivity(self, group: Group) -> Sensitivity:
        """Return the detectable drop of one of the criteria."""
        noise = noise_of(pair.before for pair in group.pairs.values())
        setting = self._setting(group, noise or Noise(0.0, 0.0, runs=False), self.asked.repeats)
        allowed = (group.facts.max_growth or 0.0) * group.scale
        drop = None
        if noise and self._drifts.visible:
            drop = setting.detectable(self.asked.power, group.scale or 1.0)
        drop = None if drop is None else drop + allowed
        return Sensitivity(
            group=group.key,
            tier=group.facts.tier,
            cases=len(group.pairs),
            mean=math.fsum(each.base for each in group.pairs.values()) / len(group.pairs),
            trial_sd=math.sqrt(noise.within) if noise else None,
            run_sd=math.sqrt(noise.between) if noise and noise.runs else None,
            steady=group.steady,
            level=setting.levels()[0],
            drop=drop,
            share=drop / group.scale if drop is not None and group.scale else None,
            single=self._break(group),
            arms=self._arms,
            wanted=self._wanted(group, noise) if noise and self.asked.drop else None,
        )

    def _setting(
        self, group: Group, noise: Noise, repeats: int, *, all_alike: bool = False
    ) -> Setting:
        """Return the test of a group; with `all_alike`, its baseline has the same repeats."""
        units = [len(unit) for pair in group.pairs.values() for unit in pair.before.units if unit]
        runs = len(units) / max(len(group.pairs), 1)
        # Tolerated growth multiplies the old values.
        growth = 1 + (group.facts.max_growth or 0.0)
        old = repeats if all_alike else max(round(sum(units) / max(len(units), 1)), 1)
        days = between_runs(group)
        looks = len(LOOKS) if self._arms else self.asked.gate.looks - 1
        kind = partial(ArmsSetting, budget=self.budget) if self._arms else Setting
        return kind(
            cases=len(group.pairs),
            runs=max(round(runs), 1),
            now=noise.of_run(repeats),
            before=noise.of_run(old) * growth**2,
            rate=self._drifts.rate / self.size,
            least=0.0 if group.facts.max_growth else group.least,
            # A drop that a day hides shows beside other criteria, or no day is assumed.
            day=0.0 if self._arms else days.spread * group.scale,
            freedom=days.freedom,
            doubts=tuple(self._drifts.doubt(look, self.size) for look in range(looks)),
        )

    def _wanted(self, group: Group, noise: Noise) -> Wanted:
        asked, growth = self.asked, group.facts.max_growth or 0.0
        drop = ((asked.drop or 0.0) - growth) * group.scale
        if drop <= (0.0 if growth else group.least):
            name = "max_growth" if growth else "gate.max_drop"
            return Wanted(repeats=None, cases=None, reason=f"{name} ignores drops this small")
        now = self._setting(group, noise, asked.repeats)

        def enough(repeats: int) -> bool:
            alike = self._setting(group, noise, repeats, all_alike=True)
            return alike.power(drop) >= asked.power

        cases = fewest(lambda count: replace(now, cases=count).power(drop) >= asked.power, MOST)
        repeats = fewest(enough, MOST_REPEATS)
        reason = "" if repeats else "variance between runs is too large for repeats to average out"
        if not repeats and not cases and self._arms:
            reason = "too close to gate.max_drop, which ignores smaller drops"
        elif not repeats and not cases:
            reason = "days may differ by as much; only the merge base in the same job can tell"
        elif not repeats and not noise.between:
            reason = "too few cases, whatever the number of repeats"
        return Wanted(repeats=repeats, cases=cases, reason=reason)

    def _break(self, group: Group) -> Break | None:
        if group.facts.informational:
            return None
        gate, repeats = self.asked.gate, self.asked.repeats
        judged = sum(not each.facts.informational for each in self.groups)
        rate = self.rate - self._drifts.rate if self._drifts.visible else self.rate
        if self._arms:
            cases = len(group.all_pairs)
            trials = fewest(
                lambda count: cases * unlikely(count, count, 0) <= rate / judged,
                repeats + hard_break.MAX_CONFIRMING,
            )
            return Break(trials=trials, drawn=True, proven=trials is not None)
        shapes = Counter(pair.before.measured for pair in group.pairs.values())

        def enough(trials: int) -> bool:
            chances = [(many, most_probable_break(old, trials)) for old, many in shapes.items()]
            return at_least(1, chances) <= rate / judged

        drawn = not gate.never_confirms
        most = repeats + hard_break.MAX_CONFIRMING if drawn else MOST_REPEATS
        trials = fewest(enough, most)
        proven = group.steady or (trials is not None and (drawn or trials <= repeats))
        return Break(trials=trials, drawn=drawn, proven=proven)


def _means(groups: Sequence[Group]) -> Mapping[tuple[str, str, str], Cell]:
    """Return each case's share of the mean over all groups, times the number of cases.

    The sum for a case keeps the correlation between its criteria.
    """
    found: dict[tuple[str, str, str], tuple[tuple[float, ...], ...]] = {}
    for group in groups:
        for case, pair in group.pairs.items():
            place = (group.key.agent, group.key.evalset, case)
            share = 1 / (group.scale * len(group.pairs) * len(groups))
            units = [tuple(value * share for value in unit) for unit in pair.before.units]
            known = found.get(place)
            found[place] = tuple(_added(known, units)) if known else tuple(units)
    return {
        place: Cell(units=tuple(tuple(value * len(found) for value in unit) for unit in units))
        for place, units in found.items()
    }


def _added(
    units: Sequence[tuple[float, ...]], more: Sequence[tuple[float, ...]]
) -> Iterator[tuple[float, ...]]:
    """Yield the sums of the trials in which both were measured."""
    for one, other in zip(units, more, strict=False):
        yield tuple(map(sum, zip(one, other, strict=False)))
