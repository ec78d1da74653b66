"""How often the 95 % interval of a mean difference holds it: within a point of 95 %.

    python benchmarks/intervals.py [--runs N] [--check]

Cases pass with probabilities from Beta(8,2), and drop by nothing or by 10 points.  The rate has a
95 % interval of its own (Wilson); `--check` ends with 1 where the rate lies outside of 94 to 96.
"""

import argparse
import sys
from itertools import product

from ci_eval.stats.intervals import mean_interval, wilson_interval

RUNS = 4_000
SEED = 20260101
NOMINAL, MARGIN = 0.95, 0.01


def covered(runs: int, cases: int, repeats: int, stored: int, drop: float) -> int:
    """Return in how many of `runs` simulated runs the interval holds the mean difference."""
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
    return int(check and missed > 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    sys.exit(main(given.runs, check=given.check))
