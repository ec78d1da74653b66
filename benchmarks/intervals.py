"""How often intervals contain the true mean difference, and floors block suites exactly at them.

    python benchmarks/intervals.py [--runs N] [--check]

Cases pass with probabilities from Beta(8,2), and either do not change or drop by 10 points.  Each
rate is shown with a 95 % interval (Wilson).  For floors, the probability is computed, because
passes are binomial.  `--check` exits with 1 if the interval contains the difference in less than 94
or more than 96 % of runs, or if a floor blocks a suite exactly at it in more than 2 %.
"""

import argparse
import math
import sys
from itertools import product

from ci_eval.gate.floors import Allowance, pass_rate
from ci_eval.records.findings import Totals
from ci_eval.stats.intervals import mean_interval, wilson_interval

RUNS = 4_000
SEED = 20260101
NOMINAL, MARGIN = 0.95, 0.01
ALLOWED = Allowance(0.02, point=False)


def covered(runs: int, cases: int, repeats: int, stored: int, drop: float) -> int:
    """Return the number of simulated runs whose interval contains the mean difference."""
    import numpy as np

    draws = np.random.default_rng([SEED, cases, repeats, stored, int(drop * 100)])
    before = draws.beta(8, 2, (runs, cases))
    after = np.clip(before - drop, 0, 1)
    old = draws.binomial(repeats * stored, before) / (repeats * stored)
    differences = draws.binomial(repeats, after) / repeats - old
    true = (after - before).mean(axis=1)
    found = 0
    for row, mean in zip(differences.tolist(), true.tolist(), strict=True):
        interval = mean_interval(row)
        found += interval is not None and interval[0] <= mean <= interval[1]
    return found


def blocked(cases: int, rate: float) -> float:
    """Return the probability that the floor `rate` blocks a suite with that true pass rate."""
    chances = []
    for passed in range(cases + 1):
        totals = Totals(cases=cases, passed=passed, failed=cases - passed)
        if pass_rate(totals, rate, ALLOWED).best == "missed":
            ways = math.comb(cases, passed)
            chances.append(ways * rate**passed * (1 - rate) ** (cases - passed))
    return math.fsum(chances)


def main(runs: int, *, check: bool) -> int:
    """Print the rate of each kind of suite, and return the exit code."""
    missed = 0
    print("| cases | repeats | stored runs | drop | the interval holds it |")
    print("| --- | --- | --- | --- | --- |")
    shapes = product((30, 100, 300), ((3, 5), (1, 1)), (0.0, 0.1))
    for cases, (repeats, stored), drop in shapes:
        count = covered(runs, cases, repeats, stored, drop)
        low, high = wilson_interval(count, runs) or (0.0, 1.0)
        missed += abs(count / runs - NOMINAL) > MARGIN
        rate = f"{count / runs:.1%} [{low:.1%}, {high:.1%}]"
        print(f"| {cases} | {repeats} | {stored} | {drop:.0%} | {rate} |", flush=True)
    print("\n| cases | floor | blocked with the true pass rate at the floor |")
    print("| --- | --- | --- |")
    for cases, floor in product((10, 30, 100, 300), (0.5, 0.8, 0.9, 0.95)):
        chance = blocked(cases, floor)
        missed += chance > ALLOWED.rate
        print(f"| {cases} | {floor:.0%} | {chance:.2%} |")
    return int(check and missed > 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    sys.exit(main(given.runs, check=given.check))
