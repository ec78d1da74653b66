"""A suite in shards: whether the merge equals a run in one job, and how balanced the shards are.

python benchmarks/shards.py [--trials 2000] [--suites 200] [--seed 2] [--check]

`--check` exits with 1 if the documents differ in more than times and ids, or if in more than 1 % of
simulated suites the longest shard takes more than 1.15 times the ideal time: cases have log-normal
durations, no two trials of a case take the same time, and five runs are stored.  If the durations
are known in advance, each suite stays within 1.01; the rest is noise that no plan can foresee.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from ci_eval.records.trials import Place
from ci_eval.run.shards import dealt, noise_of

SHARDS = 7
MOST = 1.15
MOST_KNOWN = 1.01
RUNS, REPEATS = 5, 3
"""Stored runs of each simulated suite, and trials of each case."""
VARIES = re.compile(r"\d{8}T\d{6}Z-\w{8}| \d+ (m?s|min)( \d+ s)? older,|[\d.]+ (m?s|min)\b")
TIMES = ("duration_s", "duration", "created", "baseline_created")
CONFIG = """\
name: bench
agents:
  live: {python: "bot:answer"}
  tape: {recorded: tape.jsonl}
evalsets: {one: one.csv, two: two.csv}
criteria: {response_match_score: 0.8}
baseline: {store: file}
run: {repeats: 2}
"""
BEFORE = "def answer(text):\n    return 'yes'\n"
# With the live agent, one case breaks and others raise errors; the recording differs, too.
AFTER = """\
def answer(text):
    number = int(text.split()[-1])
    if number % 101 == 7:
        raise ValueError(f"no answer to {number}")
    return "no" if number == 44 else "yes"
"""


def write_suite(folder: Path, trials: int) -> None:
    """Write a repository whose main branch has a stored run, and a change of the agents."""
    cases = trials // 8  # of two evalsets, each by two agents, twice
    git(folder, "init", "--quiet", "--initial-branch=main")
    (folder / "ci-eval.yaml").write_text(CONFIG)
    (folder / ".gitignore").write_text("__pycache__\n/whole\n/shards\n/merged\n/ci-eval-report\n")
    for name in ("one", "two"):
        rows = [f"{name}{number},question {number},yes" for number in range(cases)]
        (folder / f"{name}.csv").write_text("\n".join(["id,prompt,expected", *rows]) + "\n")
    write_agents(folder, BEFORE, cases, fails=0)
    commit(folder)
    ci_eval(folder, "run", codes=(0,))
    ci_eval(folder, "baseline", "save", codes=(0,))
    commit(folder)
    git(folder, "checkout", "--quiet", "-b", "change")
    write_agents(folder, AFTER, cases, fails=1)
    commit(folder)


def write_agents(folder: Path, code: str, cases: int, *, fails: int) -> None:
    """Write the agent that runs, and the recording, in which the first cases fail."""
    (folder / "bot.py").write_text(code)
    with (folder / "tape.jsonl").open("w") as file:
        for name in ("one", "two"):
            for number in range(cases):
                said = "no" if number < fails else "yes"
                turn = {
                    "user_content": {"role": "user", "parts": [{"text": f"question {number}"}]},
                    "final_response": {"role": "model", "parts": [{"text": said}]},
                }
                row = {"evalset": name, "eval_id": f"{name}{number}", "invocations": [turn]}
                file.write(f"{json.dumps(row)}\n{json.dumps(row)}\n")


def git(folder: Path, *arguments: str) -> None:
    """Run a git command."""
    who = ("-c", "user.name=b", "-c", "user.email=b@b")
    command = [shutil.which("git") or "git", *who, *arguments]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def commit(folder: Path) -> None:
    """Commit all files."""
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "a change")


def ci_eval(folder: Path, *arguments: str, codes: tuple[int, ...]) -> None:
    """Run a command, which must exit with one of `codes`."""
    command = [sys.executable, "-m", "ci_eval", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode not in codes:
        raise SystemExit(f"{' '.join(arguments)} ended with {done.returncode}: {done.stderr}")


def essence(folder: Path) -> dict[str, Any]:
    """Return the documents of a run without times and ids."""
    found: dict[str, Any] = {}
    for name in ("run.json", "base/run.json", "report.json"):
        found[name] = timeless(json.loads((folder / name).read_text()))
    for name in ("comment.md", "summary.md", "annotations.txt"):
        found[name] = timeless((folder / name).read_text())
    return found


def timeless(value: Any) -> Any:
    """Return a JSON value without times and ids."""
    if isinstance(value, dict):
        return {key: timeless(each) for key, each in value.items() if key not in TIMES}
    if isinstance(value, str):
        return VARIES.sub("", value)
    return [timeless(each) for each in value] if isinstance(value, list) else value


def differences(trials: int) -> list[str]:
    """Run a suite whole and in shards, and return the documents that differ."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_suite(folder, trials)
        ci_eval(folder, "run", "--out", "whole", codes=(1,))
        order = np.random.default_rng(1).permutation(SHARDS) + 1
        for number in order:
            shard = ("--shard", f"{number}/{SHARDS}", "--out", f"shards/{number}")
            ci_eval(folder, "run", *shard, codes=(0, 6))
        names = [f"shards/{number}" for number in order]
        ci_eval(folder, "merge", *names, "--out", "merged", codes=(1,))
        whole, merged = essence(folder / "whole"), essence(folder / "merged")
        base = len(whole["base/run.json"]["results"])
        count = len(whole["run.json"]["results"])
        print(f"{count} trials of the change and {base} of the merge base, {SHARDS} shards")
        return [name for name in whole if whole[name] != merged[name]]


def simulated(suites: int, seed: int) -> np.ndarray:
    """Return the factors of simulated suites, planned from stored durations and from the true ones.

    A factor is the longest shard's time divided by the ideal time.
    """
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(suites):
        total = int(rng.integers(2, 41))
        cases = total * int(rng.integers(50, 201))
        usual = rng.lognormal(1.0, 1.0, size=(cases, 1))
        # No two trials of a case take the same time.
        trials = usual * rng.lognormal(0.0, 0.3, size=(cases, REPEATS * (RUNS + 1)))
        now, *runs = np.split(trials, RUNS + 1, axis=1)
        takes, stored = now.sum(axis=1), np.array([each.mean(axis=1) for each in runs])
        noise = noise_of(stored.T.tolist())
        planned = dealt(places(np.median(stored, axis=0)), total, noise)
        found.append([factor(each, takes) for each in (planned, dealt(places(takes), total))])
    return np.array(found)


def places(seconds: np.ndarray) -> dict[Place, float]:
    """Return the durations of cases, by place."""
    return {Place("a", "e", str(number)): each for number, each in enumerate(seconds.tolist())}


def factor(shards: list[list[Place]], takes: np.ndarray) -> float:
    """Return the longest shard's time divided by the best possible one."""
    taken = [float(sum(takes[int(case)] for _, _, case in shard)) for shard in shards]
    return max(taken) / max(sum(taken) / len(shards), float(takes.max()))


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--suites", type=int, default=200)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    differ = differences(options.trials)
    print(f"documents that differ: {', '.join(differ) or 'none'}")
    planned, known = simulated(options.suites, options.seed).T
    for what, factors in (("stored durations", planned), ("known durations", known)):
        print(
            f"{options.suites} simulated suites of 2 to 40 shards, planned from {what}: the "
            f"longest takes {np.median(factors):.3f} times the ideal (median; 95 % of them at most "
            f"{np.quantile(factors, 0.95):.3f}, 99 % {np.quantile(factors, 0.99):.3f}, all "
            f"{factors.max():.3f}; {np.sum(factors > MOST)} more than {MOST})"
        )
    is_uneven = np.quantile(planned, 0.99) > MOST or known.max() > MOST_KNOWN
    if options.check and (differ or is_uneven):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
