"""Thousands of recorded cases: checks that time is linear, and measures memory.

python benchmarks/many_cases.py [--check] [CASES …]        (default: 25000 50000 100000)

`--check` exits with 1 if, comparing the largest size with the smallest, a case takes more than 1.1
times the CPU time, or each additional case takes more than 600 bytes of memory per criterion.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import measure

MOST_CPU, MOST_BYTES = 1.1, 600 * 2


def main(sizes: list[int], *, check: bool) -> int:
    """Measure each size, and return the exit code."""
    print(measure.environment())
    costs = {}
    for cases in sizes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            measure.write_evalset(folder / "bench.evalset.json", cases)
            measure.write_recording(folder / "traces.jsonl", cases)
            (folder / "ci-eval.yaml").write_text(
                "agents: {bench: {recorded: traces.jsonl}}\n"
                "evalsets: {bench: bench.evalset.json}\n"
                "baseline: {store: file}\n" + measure.CRITERIA
            )
            saved = measure.ci_eval("run", "--baseline-save", folder=folder)
            measure.report(f"{cases} cases, no baseline yet, stored as one", saved)
            cost = measure.ci_eval("run", folder=folder)
            measure.report(f"{cases} cases, compared", cost)
            print(f"{'':<44} {cost.cpu_s / cases * 1e6:7.0f} µs CPU a case")
            costs[cases] = cost
    least, most = min(costs), max(costs)
    if least == most:
        return 0
    cpu = costs[most].cpu_s / most / (costs[least].cpu_s / least)
    held = (costs[most].peak_mb - costs[least].peak_mb) * 2**20 / (most - least)
    met = cpu <= MOST_CPU and held <= MOST_BYTES
    print(f"a case of {most}: {cpu:.2f} of the CPU time of one of {least}; {held:.0f} bytes more")
    print(f"at most {MOST_CPU:g} and {MOST_BYTES} bytes: {'met' if met else 'NOT met'}")
    return int(check and not met)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sizes", nargs="*", type=measure.positive, metavar="CASES")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    sys.exit(main(given.sizes or [25_000, 50_000, 100_000], check=given.check))
