"""Stores many runs in one data branch at the same time, and checks that none is lost.

python benchmarks/concurrent_saves.py [JOBS]

Each job is a separate process.  There are three scenarios: from one clone; from two clones whose
histories have nothing in common; and to a remote that refuses the first two pushes.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

CONFIG = """\
name: Shop
agents: {bot: {recorded: traces.jsonl}}
evalsets: {smoke: smoke.evalset.json}
criteria: {response_match_score: 0.5}
baseline: {store: branch}
"""
TURN = {
    "user_content": {"role": "user", "parts": [{"text": "Hello"}]},
    "final_response": {"role": "model", "parts": [{"text": "Hello, how can I help?"}]},
}
SHARING = 3
"""This many jobs store runs of the same commit, in the same file."""
REFUSING = """\
#!/bin/sh
for number in 1 2; do
    if mkdir "$GIT_DIR/refused-$number" 2>/dev/null; then
        echo "not now" >&2
        exit 1
    fi
done
"""
BRANCH = "ci-eval-data"


class Outcome(NamedTuple):
    """The result of several saves."""

    name: str
    jobs: int
    saved: int
    """Runs that the branch holds, with their values."""
    wall_s: float
    problems: tuple[str, ...]
    """What should not be; nothing where all went well."""


def one_clone(folder: Path, jobs: int) -> Outcome:
    """Store from one clone."""
    hub = make_hub(folder)
    return _together("one clone", hub, [_clone(hub, folder / "one")], jobs)


def two_histories(folder: Path, jobs: int) -> Outcome:
    """Store from two clones that have no commit in common."""
    hub = make_hub(folder)
    clones = [_clone(hub, folder / name, f"{name}-main") for name in ("one", "two")]
    return _together("two histories", hub, clones, jobs)


def refused_twice(folder: Path, jobs: int) -> Outcome:
    """Store where the first two pushes are refused."""
    hub = make_hub(folder)
    clones = [_clone(hub, folder / "one")]
    hook = hub / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(REFUSING)
    hook.chmod(0o755)
    outcome = _together("refused twice", hub, clones, jobs)
    refusals = len(list(hub.glob("refused-*")))
    more = () if refusals == 2 else (f"the remote refused {refusals} times",)
    return outcome._replace(problems=outcome.problems + more)


SCENARIOS: tuple[Callable[[Path, int], Outcome], ...] = (one_clone, two_histories, refused_twice)


def make_hub(folder: Path) -> Path:
    """Return a new bare repository that sends any requested object, as GitHub's do."""
    folder.mkdir(parents=True, exist_ok=True)
    hub = folder / "hub.git"
    git(folder, "init", "--quiet", "--bare", hub.name)
    git(hub, "config", "uploadpack.allowFilter", "true")
    return hub


def _clone(hub: Path, folder: Path, branch: str = "main") -> Path:
    """Return a clone with a project, one commit and one run."""
    git(hub.parent, "init", "--quiet", folder.name)
    git(folder, "checkout", "--quiet", "-b", branch)
    git(folder, "remote", "add", "origin", hub.as_uri())
    case = {"eval_id": "hello", "conversation": [TURN]}
    (folder / "ci-eval.yaml").write_text(CONFIG)
    (folder / ".gitignore").write_text("runs\n")
    (folder / "smoke.evalset.json").write_text(
        json.dumps({"eval_set_id": "smoke", "eval_cases": [case]})
    )
    (folder / "traces.jsonl").write_text(
        json.dumps({"eval_id": "hello", "invocations": [TURN]}) + "\n"
    )
    git(folder, "add", "--all")
    git(folder, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", branch)
    git(folder, "push", "--quiet", "origin", branch)
    process = _ci_eval(folder, "run", "--out", "runs")
    _, err = process.communicate()
    if process.returncode:
        raise SystemExit(err)
    return folder


def _together(name: str, hub: Path, clones: Sequence[Path], jobs: int) -> Outcome:
    """Store several runs at once, and check what the branch and the clones hold afterwards."""
    expected: dict[str, str] = {}
    given = []
    for number in range(jobs):
        clone = clones[number % len(clones)]
        path, run_id, commit = _another(clone, number)
        expected[run_id] = commit
        given.append((clone, path))
    before = {clone: state(clone) for clone in clones}
    begun = time.perf_counter()
    started = [_ci_eval(clone, "baseline", "save", str(path)) for clone, path in given]
    problems = []
    for process in started:
        _, err = process.communicate()
        if process.returncode:
            problems.append(f"exit code {process.returncode}: {err.strip()}")
    wall_s = time.perf_counter() - begun
    saved = stored(hub)
    problems += [f"lost: {run_id}" for run_id in expected.keys() - saved.keys()]
    problems += [f"changed: {clone}" for clone in clones if state(clone) != before[clone]]
    if any(saved[run_id] != commit for run_id, commit in expected.items() if run_id in saved):
        problems.append("a run is in the file of another commit")
    return Outcome(name, jobs, len(saved), wall_s, tuple(problems))


def _another(clone: Path, number: int) -> tuple[Path, str, str]:
    """Write a different run, and return its file, id and commit."""
    run = json.loads((clone / "runs" / "run.json").read_text())
    run_id, commit = f"run-{number}", f"{number - (number % SHARING == 1):040x}"
    run["meta"] |= {"run_id": run_id, "commit": commit}
    path = clone / "runs" / f"{run_id}.json"
    path.write_text(json.dumps(run))
    return path, run_id, commit


def stored(hub: Path) -> dict[str, str]:
    """Return the commits of the runs on the branch: those in the index, and those with values."""
    paths = git(hub, "ls-tree", "-r", "--name-only", BRANCH).split()
    index: dict[str, Any] = {}
    held: dict[str, str] = {}
    for path in paths:
        if path.endswith("/index.json"):
            index = json.loads(git(hub, "cat-file", "blob", f"{BRANCH}:{path}"))
        elif "/runs/" in path:
            document = json.loads(git(hub, "cat-file", "blob", f"{BRANCH}:{path}"))
            measured = {position for position, _ in document["results"]}
            held |= {
                meta["run_id"]: Path(path).stem
                for position, meta in enumerate(document["runs"])
                if position in measured
            }
    noted = {each["run_id"] for each in index.get("runs", ())}
    return {run_id: commit for run_id, commit in held.items() if run_id in noted}


def state(clone: Path) -> str:
    """Return a digest of every file in a clone, including those in `.git`."""
    digest = hashlib.sha256()
    for path in sorted(clone.rglob("*")):
        digest.update(str(path).encode())
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()


def git(folder: Path, *args: str) -> str:
    """Return the output of a git command."""
    command = ["git", *args]  # the caller's own
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def _ci_eval(folder: Path, *args: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "ci_eval", *args],
        cwd=folder,
        env=without_ci(os.environ),  # noqa: TID251  # a benchmark is a command of its own
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def without_ci(env: "os._Environ[str]") -> dict[str, str]:
    """Return an environment without the variables by which a CI names the checked-out commit."""
    return {key: env[key] for key in env if not key.startswith(("GITHUB_", "CI_", "GIT_"))}


def main(jobs: int) -> int:
    """Print the results of the saves, and return the number of scenarios that failed."""
    print(f"{jobs} saves at the same time, Python {sys.version.split()[0]}, {os.cpu_count()} CPUs")
    wrong = 0
    for scenario in SCENARIOS:
        with tempfile.TemporaryDirectory() as name:
            each = scenario(Path(name) / "all", jobs)
        print(f"{each.name:<14} {each.saved:3} of {each.jobs} saved in {each.wall_s:4.1f} s")
        for problem in each.problems:
            print(f"    {problem}")
        wrong += bool(each.problems) or each.saved != each.jobs
    return wrong


if __name__ == "__main__":
    sys.exit(min(main(int(sys.argv[1]) if len(sys.argv) > 1 else 12), 1))
