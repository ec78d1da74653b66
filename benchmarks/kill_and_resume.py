"""Kills a run at random moments, resumes it, and compares it with an uninterrupted run.

python benchmarks/kill_and_resume.py [MOMENTS [SEED]]

Conversations have several messages, keep a state, and stop to wait for answers.  The agent writes
each of its calls to a file, which shows what ran twice.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random  # noqa: TID251  # seeded
from typing import Any, NamedTuple

AGENT = """
import fcntl
import os
import time

alive = open("alive", "w")
fcntl.flock(alive, fcntl.LOCK_SH)


def answer(message, history, session):
    state = session["state"]
    given = None
    if isinstance(message, str):
        state["asked"] = said = message
    else:
        said = state["asked"] + " answered"
        given = message["parts"][0]["function_response"]["response"]
    log = os.open("calls.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(log, f"{os.getpid()} {said}\\n".encode())
    os.close(log)
    time.sleep(0.03)
    state["calls"] = state.get("calls", 0) + 1
    if said.endswith("refund"):
        return {"response": "May I?", "waits_for": [{"name": "approve", "args": {"of": said}}]}
    return {
        "response": f"{said} as call {state['calls']} after {len(history)}: {given}",
        "tool_calls": [{"name": "look", "args": {"before": len(history)}}],
    }
"""
CONFIG = """
agents: {bot: {python: "bot:answer"}}
evalsets: {talks: talks.json}
criteria: {ci/regex: {pattern: as call}, ci/final_state: 1.0, ci/tool_calls: 10}
run: {concurrency: 3}
"""
TURNS = ("hello", "refund", "again", "refund", "thanks")
KILLS = 2
"""Maximum number of kills of one run."""


class Outcome(NamedTuple):
    """The outcome of one killed run."""

    killed_after_s: tuple[float, ...]
    """Seconds since its agent was called first; one for each time."""
    taken_over: int
    """How many calls of the agent did not have to be made again."""
    problems: tuple[str, ...]
    """What should not be; nothing where all went well."""


def write(folder: Path, cases: int) -> None:
    """Write a project with this number of cases."""
    folder.mkdir(parents=True)
    (folder / "bot.py").write_text(AGENT)
    (folder / "ci-eval.yaml").write_text(CONFIG)
    (folder / "talks.json").write_text(
        json.dumps({"name": "talks", "cases": [_case(number) for number in range(cases)]})
    )


def _case(number: int) -> dict[str, Any]:
    turns = TURNS[: 1 + number % len(TURNS)]
    return {
        "id": f"case-{number}",
        "turns": [{"prompt": f"case-{number} {at} {turn}"} for at, turn in enumerate(turns)],
        "final_state": {"calls": len(turns) + turns.count("refund")},
        "human_answers": {"approve": {"results": ["first", "second"]}},
    }


def killed(folder: Path, whole: Path, works_s: float, chance: Random) -> Outcome:
    """Run the project in `folder`, kill it, resume it, and compare it with the run in `whole`."""
    moments, problems = [], []
    for number in range(chance.randint(1, KILLS)):
        moments.append(chance.uniform(0, works_s))
        process = _started(folder, *(["--resume"] if number else []))
        time.sleep(moments[-1])
        process.kill()
        process.communicate()
        _settle(folder)
    before = _calls(folder)
    known = _journalled(folder)
    ended = _started(folder, "--resume")
    _, err = ended.communicate()
    again = _calls(folder)[len(before) :]
    problems += [f"ran again: {said}" for _, said in again if said in known]
    if ended.returncode:
        problems.append(f"exit code {ended.returncode}: {err[-200:]}")
    elif _observed(folder) != _observed(whole):
        problems.append("not the same was observed")
    elif _run(folder) != _run(whole):
        problems.append("run.json differs")
    if (folder / "ci-eval-report" / "underway.jsonl").exists():
        problems.append("underway.jsonl is left")
    return Outcome(tuple(moments), len(known), tuple(problems))


def _started(folder: Path, *more: str) -> "subprocess.Popen[str]":
    """Start a run, and return it once the agent was called or the run ended."""
    before = len(_calls(folder))
    process = subprocess.Popen(
        [sys.executable, "-m", "ci_eval", "run", *more],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    while len(_calls(folder)) == before and process.poll() is None:
        time.sleep(0.01)
    return process


def _settle(folder: Path) -> None:
    """Wait until the orphaned worker ends; it holds a lock as long as it runs."""
    with (folder / "alive").open() as alive:
        fcntl.flock(alive, fcntl.LOCK_EX)


def _calls(folder: Path) -> list[tuple[str, str]]:
    """Return the agent's calls: the process and the message of each."""
    path = folder / "calls.log"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in lines]


def _rows(path: Path) -> list[dict[str, Any]]:
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith(b"\n")]


def _journalled(folder: Path) -> set[str]:
    """Return the journal's answers to messages, in the format of the agent's own notes."""
    report = folder / "ci-eval-report"
    last = {row["eval_id"]: row for row in _rows(report / "underway.jsonl")}
    # A finished one that was killed before its trace was written starts again.
    last = {case: row for case, row in last.items() if "over" not in row}
    last |= {row["eval_id"]: row for row in _rows(report / "traces.jsonl")}
    return {
        turn["user_content"]["parts"][0]["text"] + answered
        for row in last.values()
        for turn in row["invocations"]
        for answered in ("", " answered")
        if not answered or turn["user_content"]["parts"][0]["text"].endswith("refund")
    }


def _observed(folder: Path) -> dict[str, Any]:
    """Return the observations of each case, without times."""
    rows = _rows(folder / "ci-eval-report" / "traces.jsonl")
    return {
        row["eval_id"]: [
            row.get("final_state"),
            [{**turn, "duration": None} for turn in row["invocations"]],
        ]
        for row in rows
    }


def _run(folder: Path) -> Any:
    """Return `run.json` without times, ids and attempts."""
    run = json.loads((folder / "ci-eval-report" / "run.json").read_text())
    for name in ("run_id", "created"):
        del run["meta"][name]
    for result in run["results"]:
        result |= {"duration_s": None, "attempts": None}
    return run


def try_moments(moments: int, seed: int, *, cases: int = 20) -> list[Outcome]:
    """Kill runs at this number of random moments, and return the outcomes."""
    chance = Random(seed)  # noqa: S311  # no secret
    with tempfile.TemporaryDirectory() as name:
        whole = Path(name) / "project"
        write(whole, cases)
        process = _started(whole)
        begun = time.perf_counter()
        _, err = process.communicate()
        works_s = time.perf_counter() - begun
        if process.returncode:
            raise SystemExit(err)
        kept = whole.rename(Path(name) / "whole")
        outcomes = []
        for _ in range(moments):
            # Always in the same folder, because its name is the suite's.
            write(whole, cases)
            outcomes.append(killed(whole, kept, works_s, chance))
            shutil.rmtree(whole)
        return outcomes


def main(moments: int, seed: int) -> int:
    """Print the outcomes of the runs, and return the number of failures."""
    print(f"{moments} runs, killed at moments of the seed {seed}, Python {sys.version.split()[0]}")
    outcomes = try_moments(moments, seed)
    for number, each in enumerate(outcomes, 1):
        at = ", ".join(f"{moment:.2f} s" for moment in each.killed_after_s)
        print(f"{number}: killed after {at}; {each.taken_over} calls taken over", *each.problems)
    wrong = sum(bool(each.problems) for each in outcomes)
    print(f"{wrong} of {moments} went wrong")
    return wrong


if __name__ == "__main__":
    given = [int(each) for each in sys.argv[1:]]
    seed = given[1] if len(given) > 1 else int.from_bytes(os.urandom(4), "big")
    sys.exit(min(main(given[0] if given else 50, seed), 1))
