"""Verdicts of whole jobs: the command runs real agents in git repositories.

    python benchmarks/whole_jobs.py [--jobs N] [--only TEXT] [--check]

Each job commits an agent to a new repository, stores one run with one repeat, changes the agent on
a branch, and runs the suite on the branch with the default settings.  `--check` exits with 1 if a
job ends with the wrong verdict.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import measure

CONFIG = """\
name: whole-jobs
agents: {{bot: {{{agent}}}}}
evalsets: {{smoke: smoke.csv}}
criteria: {{ci/regex: {{pattern: right}}}}
baseline: {{store: file}}
"""
PYTHON = 'python: "bot:answer"'
COMMAND = f"command: [{sys.executable}, bot.py]"
BOT = """\
import json, sys, time

def answer(message):
    return f"{WORD} at {time.time_ns()}"

if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps({"response": answer(json.loads(line)["message"])}), flush=True)
"""
RIGHT = "'right'"


class Kind(NamedTuple):
    """One kind of job."""

    name: str
    cases: int
    word: str
    """The answer of the changed agent, as Python."""
    exit_code: int
    agent: str = PYTHON


KINDS = (
    Kind("nothing changed but the clock", 20, RIGHT, 0),
    Kind("all of five broken", 5, "'wrong'", 1),
    Kind("one of five broken", 5, "'wrong' if message.endswith(' 3') else 'right'", 1),
    Kind("one of ten broken", 10, "'wrong' if message.endswith(' 7') else 'right'", 1),
    Kind("one of twenty broken", 20, "'wrong' if message.endswith(' 7') else 'right'", 1),
    Kind(
        "one of twenty broken, a command",
        20,
        "'wrong' if message.endswith(' 7') else 'right'",
        1,
        COMMAND,
    ),
)


def job(kind: Kind, _: int) -> bool:
    """Run one job, and return True if it ended as it should."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        run = partial(_run, root)
        rows = "".join(f"question {number},right\n" for number in range(kind.cases))
        (root / "smoke.csv").write_text(f"prompt,expected\n{rows}", encoding="utf-8")
        (root / "ci-eval.yaml").write_text(CONFIG.format(agent=kind.agent), encoding="utf-8")
        (root / ".gitignore").write_text("ci-eval-report\n__pycache__\n", encoding="utf-8")
        _write_bot(root, RIGHT)
        run("git", "init", "--quiet", "--initial-branch=main")
        _commit(root, "agent")
        run(sys.executable, "-m", "ci_eval", "run", "--baseline-save")
        _commit(root, "baseline")
        run("git", "checkout", "--quiet", "-b", "change")
        _write_bot(root, kind.word)
        _commit(root, "change")
        return run(sys.executable, "-m", "ci_eval", "run") == kind.exit_code


def _write_bot(root: Path, word: str) -> None:
    text = BOT.replace("WORD", word)
    (root / "bot.py").write_text(text, encoding="utf-8")


def _commit(root: Path, name: str) -> None:
    _run(root, "git", "add", "--all")
    who = ("-c", "user.name=benchmark", "-c", "user.email=benchmark@example.com")
    _run(root, "git", *who, "commit", "--quiet", "--allow-empty", "-m", name)


def _run(root: Path, *command: str) -> int:
    return subprocess.run(command, cwd=root, capture_output=True, check=False).returncode


def main(jobs: int, only: str, *, check: bool) -> int:
    """Print how many jobs of each kind ended as they should; return the exit code."""
    begun, missed = measure.now(), 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for kind in (each for each in KINDS if only in each.name):
            right = sum(pool.map(partial(job, kind), range(jobs)))
            missed += right < jobs
            print(f"{kind.name}: {right} of {jobs} end with {kind.exit_code}", flush=True)
    print(f"took {measure.now() - begun:.0f} s")
    return int(check and missed > 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=measure.positive, default=20, help="jobs of each kind")
    parser.add_argument("--only", default="", help="kinds whose name contains this")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a job ends wrongly")
    given = parser.parse_args()
    sys.exit(main(given.jobs, given.only, check=given.check))
