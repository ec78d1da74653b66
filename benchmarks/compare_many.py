"""Compares two runs of 100,000 trials and two criteria: at most 10 s and 250 MB.

python benchmarks/compare_many.py [--check] [TRIALS …]        (default: 100000)

Once with many repeats of few cases, once with many cases; in one run a tenth of the cases broke.
`--check` exits with 1 if the command takes more.  With several sizes, ten times as many trials may
take 8 times the CPU time, plus the CPU time of comparing two runs of one trial.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import measure

from ci_eval.records.cases import Status
from ci_eval.records.errors import ExitCode
from ci_eval.records.results import CriterionFacts, InvocationScore, RunMeta, Score, TrialResult
from ci_eval.records.trials import TrialKey
from ci_eval.run_files.run_file import writing_run

TRIALS = 100_000
REPEATS = (5, 1)
MOST_S, MOST_MB = 10.0, 250.0
MOST_GROWTH = 0.8
RUNS = 3
CRITERIA = {
    "tool_trajectory_avg_score": CriterionFacts(
        criterion="adk/tool_trajectory_avg_score", threshold=1.0, interval=(0.0, 1.0)
    ),
    "response_match_score": CriterionFacts(
        criterion="adk/response_match_score", threshold=0.5, interval=(0.0, 1.0)
    ),
}


def write_run(path: Path, trials: int, repeats: int, *, broken: int = 0) -> None:
    """Write a run of an agent that fails now and then, and always in the `broken` cases."""
    meta = RunMeta(
        run_id=path.stem,
        suite="bench",
        created="2026-01-01T00:00:00+00:00",
        version="0",
        agents=("bench",),
        criteria=CRITERIA,
        repeats=repeats,
    )
    with writing_run(path, meta) as write:
        for number in range(trials):
            case, repeat = divmod(number, repeats)
            write(_result(case, repeat, number, broken=case < broken))


def _result(case: int, repeat: int, number: int, *, broken: bool) -> TrialResult:
    """Return one trial: every seventh calls the wrong tool, every eleventh says too little."""
    values = (float(number % 7 > 0 and not broken), 0.4 if number % 11 == 0 else 0.8)
    scores = tuple(map(_score, CRITERIA.items(), values))
    return TrialResult(
        key=TrialKey(agent="bench", evalset="bench", case=f"case_{case}", repeat=repeat),
        status=Status.worst([score.status for score in scores]),
        scores=scores,
        duration_s=0.25,
        line=case + 2,
        case_fingerprint=f"{case:032x}",
    )


def _score(named: tuple[str, CriterionFacts], value: float) -> Score:
    """Return a score of one invocation, with evidence if it failed, as criteria do."""
    name, facts = named
    passed = facts.passes(value)
    status = Status.PASSED if passed else Status.FAILED
    evidence = None if passed else {"expected": measure.question(1), "actual": "Sunny."}
    return Score(
        criterion=facts.criterion,
        name=name,
        status=status,
        value=value,
        threshold=facts.threshold,
        invocations=(InvocationScore(status=status, value=value, evidence=evidence),),
    )


def compared(trials: int, repeats: int) -> measure.Cost:
    """Write two runs, compare them several times, and return the fastest."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_run(folder / "before.json", trials, repeats)
        write_run(folder / "after.json", trials, repeats, broken=trials // repeats // 10)
        size_mb = (folder / "after.json").stat().st_size / 1e6
        tries = [
            measure.ci_eval("compare", "before.json", "after.json", folder=folder)
            for _ in range(RUNS if trials <= TRIALS else 1)
        ]
    cost = min(tries, key=lambda cost: cost.wall_s)
    title = f"{trials // repeats} cases, {repeats} repeats, {size_mb:.0f} MB each"
    measure.report(title, cost)
    return cost


def main(sizes: list[int], *, check: bool) -> int:
    """Measure each size, and return the exit code."""
    print(measure.environment())
    costs = {size: [compared(size, repeats) for repeats in REPEATS] for size in sizes}
    least, most = min(costs), max(costs)
    met = all(
        cost.exit_code == ExitCode.PASSED and cost.wall_s <= MOST_S and cost.peak_mb <= MOST_MB
        for cost in costs[least]
    )
    print(f"{least}: at most {MOST_S:g} s and {MOST_MB:g} MB: {'met' if met else 'NOT met'}")
    if least < most:
        start = compared(1, 1).cpu_s
        for few, many in zip(costs[least], costs[most], strict=True):
            growth = (many.cpu_s - start) / few.cpu_s / (most / least)
            met &= growth <= MOST_GROWTH
            print(f"a trial of {most}: {growth:.2f} of one of {least}, at most {MOST_GROWTH:g}")
    return int(check and not met)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sizes", nargs="*", type=measure.positive, metavar="TRIALS")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    sys.exit(main(given.sizes or [TRIALS], check=given.check))
