"""How well the gate decides: thousands of simulated pull requests, beside the rules of peers.

    python benchmarks/gate.py [--prs N] [--seed N] [--only TEXT] [--check]

Each row is one kind of pull request.  Each pull request draws a suite, a baseline and a run
(`populations.py`), and all rules judge the same draws (`pull_requests.py`).  Rates are shown with
their 95 % confidence intervals.  `--check` exits with 1 if a row misses a bound.
"""

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import groupby, product
from statistics import fmean
from typing import NamedTuple

import measure
from pull_requests import Counts, Scene, simulate

from ci_eval.stats.intervals import mean_interval, wilson_interval

PRS = 200
SEED = 20260101
CHUNK = 25
"""How many pull requests a process simulates at a time."""
SIZES = (30, 100, 300)
DROP_10, ALL_DROP, DROP_5, BREAK, TWO_BREAK = (
    "10 points in one criterion",
    "5 points in all four",
    "5 points in one criterion",
    "a solid case breaks",
    "two solid cases break",
)


class Bound(NamedTuple):
    """A bound that a row must meet."""

    rule: str
    """One of `RULES`, or of `AMOUNTS`."""
    least: float = 0.0
    most: float = math.inf
    roughly: bool = False
    """Whether a rate is only missed where its 95 % interval lies beyond, too: for rows that are
    many, of few pull requests each."""

    def met(self, counts: Counts) -> bool:
        """Return True if the estimate lies within the bound."""
        low = high = estimate(self.rule, counts)
        if self.roughly:
            low, high = wilson_interval(*tally(self.rule, counts)) or (None, None)
        if low is None or high is None:
            return False
        return self.least <= high and low <= self.most

    def judged(self, counts: Counts) -> str:
        """Return the bound and whether it is met."""
        form = "{:g}" if self.rule in AMOUNTS else "{:.0%}"
        least = f"at least {form.format(self.least)}" * (self.least > 0)
        most = f"at most {form.format(self.most)}" * math.isfinite(self.most)
        wanted = " and ".join(filter(None, (least, most)))
        wanted = f"{self.rule} {'roughly ' * self.roughly}{wanted}"
        return f"{wanted}: {'met' if self.met(counts) else '**missed**'}"


class Row(NamedTuple):
    """One kind of pull request, with its bounds."""

    part: str
    """Under which heading it stands."""
    scene: Scene
    bounds: tuple[Bound, ...] = ()
    times: int = 1
    """So many times more pull requests than others, where the bound is narrow."""


# --- What is simulated ------------------------------------------------------------------------

QUIET = Bound("blocked", most=0.02)
ROUGHLY_QUIET = QUIET._replace(roughly=True)
KEY_TIMES = 5
"""Factor for the number of pull requests in the rows that judge the default settings."""
COST = (Bound("trials", most=1.5),)
"""With both arms, on average for an unchanged agent."""
NEVER = Bound("blocked", most=0.0)
ALWAYS = Bound("blocked", least=1.0)
COVERS = Bound("interval", least=0.90, most=0.98)
"""On days that vary as the prior assumes; if days vary less, intervals are wider than needed."""
BUDGET = Bound("most trials", most=3.0)
REACHED = {
    "unchanged": (QUIET,),
    DROP_10: (Bound("blocked", least=0.45),),
    BREAK: (Bound("named", least=0.99),),
}
"""For 100 noisy cases, compared only with stored runs, whose days may have differed."""
REACHED_WITH_RERUNS = {
    "unchanged": (QUIET, Bound("trials", most=1.3)),
    DROP_10: (Bound("blocked", least=0.70),),
    BREAK: (Bound("blocked", least=0.99),),
}


ALL_CHANGES = ("unchanged", DROP_10, ALL_DROP, DROP_5, BREAK)
FEW_CHANGES = ("unchanged", DROP_10, BREAK)
MEDIUM = SIZES[1]


def rows() -> Iterator[Row]:
    """Yield every row of the table."""
    for reruns in (False, True):
        yield from _default_rows(reruns=reruns)
        for runs in (1, 5):
            yield from _one_repeat_rows(runs, reruns=reruns)
        yield from _related_rows(reruns=reruns)
    for change in ALL_CHANGES:
        scene = Scene("five marks", change)
        yield Row("scores with five marks", scene, _quiet(scene))
    yield from _flaking_rows()
    yield from _deterministic_rows()
    yield from _arms_rows()
    yield from _stored_rows()
    for (repeats, runs), cases in product(((3, 5), (1, 1)), SIZES):
        scene = Scene(change=DROP_10, cases=cases, repeats=repeats, runs=runs, day=0.03)
        yield Row("what the intervals cover", scene, (COVERS,), times=KEY_TIMES)


def _default_rows(*, reruns: bool) -> Iterator[Row]:
    reached = REACHED_WITH_RERUNS if reruns else REACHED
    for cases, change in product(SIZES, ALL_CHANGES):
        scene = Scene(change=change, cases=cases, reruns=reruns)
        is_key = cases == MEDIUM and change in reached
        bounds = reached[change] if is_key else _quiet(scene)
        times = KEY_TIMES if is_key else 1
        yield Row(_part("3 repeats, 5 runs", scene), scene, (*bounds, *_budget(scene)), times)


def _one_repeat_rows(runs: int, *, reruns: bool) -> Iterator[Row]:
    sizes = (MEDIUM,) if reruns else SIZES
    for cases, change in product(sizes, FEW_CHANGES):
        scene = Scene(change=change, cases=cases, repeats=1, runs=runs, reruns=reruns)
        part = _part(f"1 repeat, {runs} run{'s' * (runs > 1)}", scene)
        yield Row(part, scene, (*_quiet(scene), *_budget(scene)))


def _related_rows(*, reruns: bool) -> Iterator[Row]:
    """Yield the rows in which criteria, or trials, are more or less correlated."""
    for part, scene in (
        ("criteria with a correlation of 0", Scene(correlation=0.0)),
        ("criteria with a correlation of 0.8", Scene(correlation=0.8)),
        ("trials of one run that go together", Scene(within=0.5)),
    ):
        for change in FEW_CHANGES:
            row = replace(scene, change=change, reruns=reruns)
            yield Row(_part(part, row), row, (*_quiet(row), *_budget(row)))


def _flaking_rows() -> Iterator[Row]:
    """Yield the rows of agents that nearly always pass."""
    for agent, (repeats, runs), cases in product(
        ("flakes 1 in 300", "flakes 1 in 1000"), ((3, 5), (1, 5), (1, 1)), SIZES
    ):
        scene = Scene(agent, cases=cases, repeats=repeats, runs=runs)
        # With one repeat and a steady history, a single failing trial counts as a flip: no rule
        # finds every flip of a deterministic agent and never one of these.
        yield Row(agent, scene, () if (repeats, runs) == (1, 5) else _quiet(scene))
        if cases == MEDIUM:
            yield Row(agent, replace(scene, reruns=True), (ROUGHLY_QUIET, BUDGET))
            yield Row(agent, replace(scene, change=BREAK))


def _deterministic_rows() -> Iterator[Row]:
    """Yield the rows of agents that always do the same."""
    for (repeats, runs), cases in product(((3, 5), (1, 5), (1, 1)), SIZES):
        scene = Scene("deterministic", cases=cases, repeats=repeats, runs=runs)
        yield Row("deterministic", scene, (NEVER,))
        yield Row("deterministic", replace(scene, reruns=True), (NEVER, BUDGET))
        # One observation of the baseline cannot show that nothing varies.
        found = (ALWAYS if runs > 1 else Bound("named", least=1.0),)
        broken = replace(scene, change=BREAK)
        yield Row("deterministic", broken, found)
        yield Row("deterministic", replace(broken, reruns=True), (*found, BUDGET))


def _arms_rows() -> Iterator[Row]:
    """Yield the rows in which the merge base is run, too."""
    for day in (0.0, 0.03, 0.05):
        both = Scene(reruns=True, arms=True, day=day)
        for cases in (30, MEDIUM):
            first = replace(both, cases=cases, repeats=1, runs=1, criteria=1)
            part = f"both arms, 1 repeat, 1 run, 1 criterion, days vary by {day:g}"
            found = (Bound("blocked", least=0.70),) if cases == MEDIUM else ()
            yield from _arm_rows(part, first, found, Bound("blocked", least=0.95))
        part = f"both arms, 3 repeats, 5 runs, days vary by {day:g}"
        found = (Bound("blocked", least=0.95),)
        yield from _arm_rows(part, both, found, Bound("blocked", least=0.99))
        yield Row(part, replace(both, change=ALL_DROP))
    for merged in (-0.1, 0.1):
        scene = Scene(reruns=True, arms=True, day=0.03, merged=merged)
        part = f"both arms, the newest commit of main changed the scores by {merged:+g}"
        found = (Bound("blocked", least=0.85),)
        yield from _arm_rows(part, scene, found, Bound("blocked", least=0.95), most=0.03)
    stuck = Scene(reruns=True, arms=True, stuck=0.01)
    yield Row("both arms, 1 case in 100 stuck", stuck, (Bound("blocked", most=0.03), *COST))
    for cases in (5, 10, 20):
        scene = Scene("deterministic", cases=cases, repeats=1, runs=1, reruns=True, arms=True)
        yield Row("both arms, deterministic", scene, (NEVER,))
        found = (Bound("blocked", least=0.99),)
        yield Row("both arms, deterministic", replace(scene, change=BREAK), found)
    scene = replace(scene, change=TWO_BREAK, cases=50, runs=5, criteria=1)
    yield Row("both arms, deterministic", scene, (*found, Bound("trials", most=2.0)))


def _stored_rows() -> Iterator[Row]:
    """Yield the rows in which days differ and no merge base can be run."""
    for day in (0.0, 0.03, 0.05):
        scene = Scene(reruns=True, day=day)
        part = f"stored runs alone, days vary by {day:g}"
        reached = day <= 0.03  # five runs cannot show a variance above the prior's
        quiet = (Bound("blocked", most=0.04, roughly=True),) if reached else ()
        found = (Bound("blocked", least=0.60),) if reached else ()
        yield Row(part, scene, quiet, KEY_TIMES)
        yield Row(part, replace(scene, change=DROP_10), found)
        yield Row(part, replace(scene, repeats=1, runs=1), quiet, KEY_TIMES)
    merged = Scene(reruns=True, day=0.03, merged=-0.1)
    yield Row("stored runs alone, the newest commit of main lost 10 points", merged)


def _arm_rows(
    part: str, scene: Scene, found: tuple[Bound, ...], named: Bound, *, most: float = 0.02
) -> Iterator[Row]:
    quiet = Bound("blocked", most=most, roughly=True)
    yield Row(part, scene, (quiet, *COST), KEY_TIMES)
    yield Row(part, replace(scene, change=DROP_10), found)
    yield Row(part, replace(scene, change=BREAK), (named,))


def _quiet(scene: Scene) -> tuple[Bound, ...]:
    return (ROUGHLY_QUIET,) if scene.change == "unchanged" else ()


def _budget(scene: Scene) -> tuple[Bound, ...]:
    return (BUDGET,) if scene.reruns else ()


def _part(named: str, scene: Scene) -> str:
    return f"{named}, with reruns" if scene.reruns else named


# --- What is found ----------------------------------------------------------------------------


def count(row: Row, prs: int, seed: int, pool: ProcessPoolExecutor) -> Counts:
    """Simulate pull requests of a row; the number of processes does not affect the results."""
    numbers = range(prs * row.times)
    chunks = [numbers[begin : begin + CHUNK] for begin in range(0, len(numbers), CHUNK)]
    counts = Counts()
    for each in pool.map(partial(simulate, row.scene, seed), chunks):
        counts.add(each)
    return counts


def tally(rule: str, counts: Counts) -> tuple[int, int]:
    """Return how often `rule` held, and out of how many."""
    if rule == "interval":
        return counts.covering, counts.intervals
    return counts.found[rule], counts.prs


def estimate(rule: str, counts: Counts) -> float | None:
    """Return a rate or an amount, or None if nothing was counted."""
    if rule in AMOUNTS:
        return AMOUNTS[rule](counts.trials) if counts.trials else None
    held, total = tally(rule, counts)
    return held / total if total else None


def rate(held: int, total: int) -> str:
    """Return a rate in percent with its 95 % interval."""
    low, high = wilson_interval(held, total) or (0.0, 1.0)
    return f"{held / total * 100:.1f} [{low * 100:.1f}, {high * 100:.1f}]" if total else "-"


RULES = {
    "blocked": "blocked",
    "in doubt": "in doubt",
    "named": "named",
    "interval": "interval holds the effect",
    "any case flips": "any case flips",
    "mean 5 points below": "a mean 5 points below the true one",
    "mean below 0.8": "a mean below 0.8",
    "mean dropped": "a mean dropped",
    "paired t-test": "paired t-test",
}
"""The columns: what is counted, and its heading; ci-eval's columns first, then those of peers."""
AMOUNTS: dict[str, Callable[[list[float]], float]] = {"trials": fmean, "most trials": max}
"""Another bounded quantity: trials, relative to the planned ones."""


def head() -> str:
    """Return the head of a table."""
    columns = [
        "agent",
        "change",
        "cases",
        "repeats",
        "runs",
        "reruns",
        *RULES.values(),
        "trials",
        "bound",
    ]
    return f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}"


def line(row: Row, counts: Counts) -> str:
    """Return the line of a row in a table."""
    scene = row.scene
    rates = [
        "-" if rule == "named" and scene.change != BREAK else rate(*tally(rule, counts))
        for rule in RULES
    ]
    reruns = "yes" if scene.reruns else "no"
    cells = [scene.agent, scene.change, scene.cases, scene.repeats, scene.runs, reruns, *rates]
    bounds = "; ".join(bound.judged(counts) for bound in row.bounds)
    return "".join(f"| {cell} " for cell in (*cells, amounts(counts.trials), bounds)) + "|"


def amounts(trials: list[float]) -> str:
    """Return the mean of shares with its 95 % interval, and the largest of them."""
    low, high = mean_interval(trials) or (0.0, math.inf)
    return f"{fmean(trials):.2f} [{low:.2f}, {high:.2f}], most {max(trials):.2f}"


def main(prs: int, seed: int, only: str, *, check: bool) -> int:
    """Print the tables and return the exit code."""
    begun = measure.now()
    print(f"{prs} pull requests a row, {KEY_TIMES} times as many in some; seed {seed}.")
    print("Rates in percent with 95 % intervals (Wilson); trials in shares of those planned.")
    missed = 0
    chosen = [row for row in rows() if only in repr(row)]
    if not chosen:
        print(f"no row's description contains {only!r}")
        return 1
    with ProcessPoolExecutor() as pool:
        for part, members in groupby(chosen, key=lambda row: row.part):
            print(f"\n## {part[0].upper()}{part[1:]}\n\n{head()}")
            for row in members:
                counts = count(row, prs, seed, pool)
                missed += not all(bound.met(counts) for bound in row.bounds)
                print(line(row, counts), flush=True)
    print(f"\n{missed} of {len(chosen)} rows miss a bound; took {measure.now() - begun:.0f} s")
    return int(check and missed > 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--prs", type=measure.positive, default=PRS, help="pull requests per row")
    parser.add_argument("--seed", type=measure.positive, default=SEED)
    parser.add_argument("--only", default="", help="rows whose description contains this")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a bound is missed")
    given = parser.parse_args()
    sys.exit(main(given.prs, given.seed, given.only, check=given.check))
