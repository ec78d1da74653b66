"""A step of a GitHub workflow for a pull request, in this process."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from servers.github import REPOSITORY, FakeGitHub, github, sha


@contextmanager
def pull_request_step(
    folder: Path, monkeypatch: pytest.MonkeyPatch, **env: str
) -> Iterator[FakeGitHub]:
    """Set the environment of a step for pull request 1, and yield its GitHub."""
    event = folder / "event.json"
    pull = {"number": 1, "head": {"sha": sha(10), "repo": {"full_name": REPOSITORY}}}
    event.write_text(json.dumps({"pull_request": pull, "repository": {"full_name": REPOSITORY}}))
    with github() as found:
        found.add_pull()
        given = {
            "GITHUB_EVENT_NAME": "pull_request",
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_RUN_ID": "77",
        }
        for name, value in (found.env | given | env).items():
            monkeypatch.setenv(name, value)
        yield found
