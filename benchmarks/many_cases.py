"""Recorded cases by the thousand: whether time is linear, and what memory they take.

python benchmarks/many_cases.py [CASES …]        (default: 25000 50000 100000)
"""

import sys
import tempfile
from pathlib import Path

import measure


def main(sizes: list[int]) -> None:
    """Measure each size."""
    print(measure.environment())
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


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or [25_000, 50_000, 100_000])
