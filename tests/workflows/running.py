"""Workflow files, run by the runner in `runner/`; .ci/run bundles it and says where it is.

What it knows of GitHub is in GitHub's own packages (`@actions/workflow-parser`,
`@actions/expressions`) and in the source of the runner, https://github.com/actions/runner.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from servers.github import REPOSITORY, TOKEN, FakeGitHub, sha
from support.copied_examples import LEFT_BEHIND
from support.git_repositories import Repo

ROOT = Path(__file__).parents[2]
RUNNER = os.environ.get("CI_EVAL_WORKFLOW_RUNNER", "")
IMAGE = os.environ.get("CI_EVAL_IMAGE", "")
OWNER = 1001
"""The user of GitHub's runners, to whom the workspace belongs; only root can give it away."""
_OF_THE_ACTION = (
    *("action.yml", "host", "ci_eval", "templates", "examples", "pyproject.toml", "README.md"),
    *("LICENSE", "requirements.lock", "requirements-build.lock", "docs"),
)
VARIANTS = [
    pytest.param(
        "OWNER/ci-eval",
        id="container",
        marks=pytest.mark.skipif(not IMAGE, reason="tests/container/run.sh builds an image"),
    ),
    pytest.param(
        "OWNER/ci-eval/host",
        id="host",
        marks=pytest.mark.skipif(not shutil.which("uv"), reason="it installs with uv"),
    ),
]
"""The action in its image, and on the machine of the job."""
PULL_REQUEST = {
    "repository": {"full_name": REPOSITORY},
    "pull_request": {"number": 1, "head": {"sha": sha(10), "repo": {"full_name": REPOSITORY}}},
}
"""The event of a pull request of the repository itself."""


@dataclass(frozen=True)
class Step:
    """What a step left behind; one that was skipped left nothing."""

    id: str | None
    name: str
    outcome: str
    conclusion: str
    exit_code: int = 0
    stdout: str = ""
    stderr: str = ""
    summary: str = ""
    outputs: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    """What it wrote for later steps: `env`, `path` and `state`."""
    commands: Sequence[Mapping[str, Any]] = ()
    """What it told the runner in lines: `command`, `properties` and `message`."""


@dataclass(frozen=True)
class Job:
    """One job on one machine."""

    id: str
    matrix: Mapping[str, Any]
    result: str
    outputs: Mapping[str, str]
    steps: Sequence[Step]
    workspace: Path

    def step(self, id_or_name: str) -> Step:
        """Return a step by its id or its name."""
        return next(each for each in self.steps if id_or_name in (each.id, each.name))


@dataclass
class Repository:
    """What a checkout gives, and the GitHub that it is on."""

    folder: Path
    scratch: Path
    """Where machines and artifacts are."""
    actions: dict[str, str] = field(default_factory=dict)
    """Folders of actions that workflows name by their repository."""
    github: dict[str, Any] = field(default_factory=dict)
    """What the context `github` says otherwise."""

    def commit(self, message: str = "Examples") -> str:
        """Commit all there is; return the commit."""
        repo = Repo(self.folder)
        repo.git("init", "--quiet", "--initial-branch=main")
        return repo.commit(message)

    def run(
        self,
        workflow: Path,
        event_name: str = "pull_request",
        event: Mapping[str, Any] | None = None,
        secrets: Mapping[str, str] | None = None,
    ) -> Sequence[Job]:
        """Run a workflow; `AssertionError` where the runner refuses it."""
        request = {
            "repository": str(self.folder),
            "workflow": str(workflow),
            "folder": str(self.scratch),
            "event_name": event_name,
            "event": event or {},
            "secrets": secrets or {},
            "github": _GITHUB | self.github,
            "actions": self.actions,
            "image": IMAGE,
            "network": "host",  # where the API is, and the engine of run.sh has no other
            "owner": OWNER,
        }
        done = subprocess.run(
            ["node", RUNNER],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            env=os.environ | _with_the_cache_of_uv(),
        )
        assert done.returncode == 0, done.stderr
        return [_job(each) for each in json.loads(done.stdout)["jobs"]]


_GITHUB = {
    "server_url": "https://github.com",
    "repository": REPOSITORY,
    "repository_owner": "octo",
    "ref": "refs/pull/7/merge",
    "ref_name": "7/merge",
    "ref_type": "branch",
    "base_ref": "main",
    "head_ref": "better-answers",
    "run_id": "4242",
    "run_attempt": "1",
    "run_number": "12",
    "actor": "octocat",
    "token": TOKEN,
}


def repository(folder: Path, scratch: Path, github: FakeGitHub) -> Repository:
    """Return a repository on `github` with the action and its examples in it, as this one is."""
    for name in _OF_THE_ACTION:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=LEFT_BEHIND)
        else:
            folder.mkdir(exist_ok=True)
            shutil.copy(source, folder / name)
    scratch.mkdir()
    found = Repository(folder, scratch)
    found.github |= {"sha": found.commit(), "api_url": github.api}
    return found


def _job(said: dict[str, Any]) -> Job:
    steps = [Step(**step) for step in said.pop("steps")]
    return Job(steps=steps, workspace=Path(said.pop("workspace", "")), **said)


def _with_the_cache_of_uv() -> dict[str, str]:
    """Return where uv keeps what it has: a job has a home of its own."""
    if os.environ.get("UV_CACHE_DIR") or not shutil.which("uv"):
        return {}
    return {"UV_CACHE_DIR": subprocess.check_output(["uv", "cache", "dir"], text=True).strip()}
