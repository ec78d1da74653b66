"""One simulated pull request: the draws, the verdict of the gate, and the verdicts of peers.

Trials that the gate wants to draw again are drawn from the agent as it is now.
"""

import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import cast

import numpy as np
from numpy.random import Generator
from peers import Draws, peers
from populations import CHANGES, CRITERIA, POPULATIONS, THRESHOLD, Agents, Chances, Observer, Values

from ci_eval.config.config_schema import GateOptions
from ci_eval.records.findings import Report
from ci_eval.records.results import CriterionFacts, Run, RunMeta
from ci_eval.run.baseline_choice import Baseline
from ci_eval.run.collect import Collected, Tally
from ci_eval.run.confirmation import NOT_CONFIRMED, Confirmation
from ci_eval.run.plan import Plan
from ci_eval.run.report_assembly import compare_and_decide
from ci_eval.run.rerun import Plans, Redraw, Redraws, next_round
from ci_eval.run_files.score_cell import CONFIRMING
from ci_eval.run_files.score_column import Column
from ci_eval.run_files.score_table import Columns, Past

_NAMES = tuple(f"c{number}" for number in range(CRITERIA))
_META = RunMeta(
    run_id="simulated",
    suite="simulated",
    created="2026-01-01T00:00:00+00:00",
    version="0",
    agents=("a",),
    criteria=dict.fromkeys(
        _NAMES,
        CriterionFacts(criterion="ci/c", threshold=THRESHOLD, interval=(0.0, 1.0), fingerprint="f"),
    ),
)


@dataclass(frozen=True)
class Scene:
    """One kind of pull request."""

    agent: str = "noisy"
    """One of `POPULATIONS`."""
    change: str = "unchanged"
    """One of `CHANGES`."""
    cases: int = 100
    repeats: int = 3
    """How often each run tries each case."""
    runs: int = 5
    """How many runs the baseline pools."""
    correlation: float = 0.5
    """Between criteria: of the chances of a case, and of the outcomes of a trial."""
    within: float = 0.0
    """What the trials of a case in one run have in common."""
    reruns: bool = False
    """Whether more is drawn where a verdict is in doubt (`gate.on_inconclusive: rerun`)."""
    arms: bool = False
    """Whether the merge base is run, too, where a verdict is in doubt (`gate.confirm: both`)."""
    criteria: int = CRITERIA
    """How many of the criteria count."""
    day: float = 0.0
    """Standard deviation of what a day adds to the chances of all cases in a run."""
    stuck: float = 0.0
    """Share of the cases that fail throughout the job, with any agent."""
    merged: float = 0.0
    """What the newest commit of the base branch added to the chances: only the newest of the stored
    runs has seen it."""

    @property
    def planned(self) -> int:
        """The number of trials of a run, without those that are drawn again."""
        return self.cases * self.repeats

    def rng(self, seed: int, number: int) -> Generator:
        """Return the random generator of a pull request, the same for each change and setting."""
        drawn: tuple[object, ...] = (
            *(self.agent, self.cases, self.repeats, self.runs, self.correlation, self.within),
        )
        if self.arms or self.day or self.merged:
            drawn += (self.criteria, self.day, self.stuck, self.merged)
        return np.random.default_rng([seed, zlib.crc32(repr(drawn).encode()), number])


@dataclass
class Counts:
    """The results of several pull requests of one kind."""

    prs: int = 0
    found: Counter[str] = field(default_factory=Counter)
    """In how many of them, by rule."""
    trials: list[float] = field(default_factory=list)
    """Of each pull request, in shares of those that were planned."""
    intervals: int = 0
    covering: int = 0
    """Intervals that hold the true effect."""

    def add(self, other: "Counts") -> None:
        """Add results of the same kind."""
        self.prs += other.prs
        self.found += other.found
        self.trials += other.trials
        self.intervals += other.intervals
        self.covering += other.covering


def simulate(scene: Scene, seed: int, numbers: range) -> Counts:
    """Simulate the pull requests with these numbers."""
    counts = Counts()
    for number in numbers:
        counts.add(_simulate_one(scene, scene.rng(seed, number)))
    return counts


def _simulate_one(scene: Scene, rng: Generator) -> Counts:
    tried = _PullRequest(scene, rng)
    if scene.reruns:
        tried.rerun()
    report = tried.report()
    covering = list(_covering(report, tried.draws.agents))
    return Counts(
        prs=1,
        found=Counter([*_said(report), *peers(tried.draws)]),
        trials=[(tried.tally.trials + tried.base.trials) / scene.planned],
        intervals=len(covering),
        covering=sum(covering),
    )


def draw(scene: Scene, rng: Generator) -> Draws:
    """Draw a suite, a baseline and a run."""
    population = POPULATIONS[scene.agent]
    chances = population.chances(rng, scene.cases, scene.correlation)
    agents = CHANGES[scene.change](chances)

    def observer(chances: Chances, shift: float, stuck: Chances | None = None) -> Observer:
        # A case that always passes, or never does, does so on any day.
        varies = (chances > 0) & (chances < 1)
        moved = np.where(varies, np.clip(chances + shift, 0, 1), chances)
        shown = moved if stuck is None else moved * (1 - stuck)
        return Observer(shown, population.levels, scene.correlation, within=scene.within)

    days = rng.normal(0, scene.day, scene.runs + 1) if scene.day else np.zeros(scene.runs + 1)
    earlier = [0.0, *[scene.merged] * (scene.runs - 1)] if scene.runs > 1 else [scene.merged]
    past = [
        observer(agents.before, day - gained).observe(rng, scene.repeats)
        for day, gained in zip(days, earlier, strict=False)
    ]
    stuck = (rng.random(scene.cases) < scene.stuck).astype(np.float64) if scene.stuck else None
    before, after = (observer(each, days[-1], stuck) for each in agents)
    return Draws(agents, past, after.observe(rng, scene.repeats), after, before)


# --- The gate ---------------------------------------------------------------------------------


@dataclass
class _Arm:
    """One version of the agent, with the trials drawn so far."""

    observer: Observer
    tally: Tally
    scene: Scene
    rng: Generator

    def draw(self, redraw: Redraw) -> None:
        """Try it again."""
        for _ in redraw.rounds if redraw.pairs else ():
            self._draw_round()
        for (_, _, case), numbers in redraw.confirming.items():
            self._confirm(case, len(numbers))

    def _draw_round(self) -> None:
        values = self.observer.observe(self.rng, self.scene.repeats)
        for column, observed in zip(self._columns(), _by_case(values), strict=False):
            for case, unit in enumerate(observed):
                _add_round(column, str(case), unit)
        self.tally.trials += self.scene.planned

    def _confirm(self, case: str, count: int) -> None:
        values = self.observer.observe(self.rng, count)[:, :, int(case)]
        for column, observed in zip(self._columns(), values.T.tolist(), strict=False):
            for value in observed:
                column.add(case, value, CONFIRMING)
        self.tally.trials += count

    def _columns(self) -> list[Column]:
        names = _NAMES[: self.scene.criteria]
        return [self.tally.columns.column(("a", "e", name)) for name in names]


class _PullRequest:
    """The gate's view of a version, with the trials drawn so far."""

    def __init__(self, scene: Scene, rng: Generator) -> None:
        self.draws = draw(scene, rng)
        self._scene = scene
        self._gate = GateOptions(
            mode="regression",
            on_inconclusive="rerun" if scene.reruns else "warn",
            rerun_budget=10 if scene.arms else 3,
        )
        before = [Past(_META, columns_of(values, scene)) for values in self.draws.past]
        self._before = Baseline(before)
        tally = Tally(columns=columns_of(self.draws.now, scene), trials=scene.planned)
        self._change = _Arm(self.draws.after, tally, scene, rng)
        columns = Columns(evalsets=tally.columns.evalsets)
        self._base = _Arm(self.draws.before, Tally(columns=columns), scene, rng)
        self.tally, self.base = tally, self._base.tally

    def report(self) -> Report:
        """Compare and decide."""
        run = Run(_META, lambda: iter(()))
        confirmation = (
            Confirmation(Past(_META, self.base.columns), self.base.trials)
            if self._scene.arms
            else NOT_CONFIRMED
        )
        return compare_and_decide(
            Collected(run, self.tally), self._gate, self._before, confirmation
        )

    def rerun(self) -> None:
        """Draw the trials that the gate wants and can afford, until it wants no more."""
        plan = _plan(self._scene, self._gate)
        plans = Plans(plan, plan if self._scene.arms else None)
        base = (_META, self.base) if self._scene.arms else None
        runs = self._before.runs
        while isinstance(redraws := next_round(plans, _META, runs, self.tally, base), Redraws):
            self._change.draw(redraws.change)
            self._base.draw(redraws.base)


def _plan(scene: Scene, gate: GateOptions) -> Plan:
    """Return a substitute for a plan, from which the budget is computed."""
    plan = SimpleNamespace(
        config=SimpleNamespace(gate=gate, agents={"a": SimpleNamespace(converses=True)}),
        pairs={("a", "e"): {}},
        repeats=scene.repeats,
        count=scene.planned,
        cases_of=lambda _: scene.cases,
        holds=lambda _: True,
    )
    return cast("Plan", plan)


def columns_of(values: Values, scene: Scene) -> Columns:
    """Return the measurements in the gate's form, without a record for each trial."""
    columns = Columns()
    for name, cases in zip(_NAMES[: scene.criteria], _by_case(values), strict=False):
        column = columns.column(("a", "e", name))
        for case, observed in enumerate(cases):
            columns.cases("e").number_of(str(case), "same")
            _add_round(column, str(case), observed)
    return columns


def _by_case(values: Values) -> list[list[list[float]]]:
    """Return the values by criterion, case and trial."""
    ordered: list[list[list[float]]] = values.transpose(1, 2, 0).tolist()
    return ordered


def _add_round(column: Column, case: str, observed: Sequence[float]) -> None:
    cell = column.get(case)
    for value in observed:
        column.add(case, value, unit=len(cell.units) if cell else 0)


def _said(report: Report) -> Iterator[str]:
    """Yield the gate's findings: it blocks, it is in doubt, it suspects the first case."""
    if report.verdict.outcome == "failed":
        yield "blocked"
    elif any(reason.severity == "warns" for reason in report.verdict.reasons):
        yield "in doubt"
    changes = report.comparison.changes if report.comparison else ()
    if any(
        change.case == "0"
        and change.group.criterion == _NAMES[0]
        and (change.suspected or change.certain)
        for change in changes
    ):
        yield "named"


def _covering(report: Report, agents: Agents) -> Iterator[bool]:
    """Return for each interval whether it contains the true effect."""
    deltas = report.comparison.deltas if report.comparison else ()
    effects = (agents.after - agents.before).mean(axis=1).tolist()
    for delta, effect in zip(deltas, effects, strict=False):
        if delta.interval:
            yield delta.interval[0] <= effect <= delta.interval[1]
