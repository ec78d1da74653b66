"""What is on GitHub, as REST shows it: what matters of it, and `described.filled` adds the rest."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from servers.github.state import (
    FORK,
    FORK_ID,
    HUMAN,
    REPOSITORY,
    REPOSITORY_ID,
    Author,
    Comment,
    Issue,
    PullRequest,
    WorkflowRun,
)

At = Callable[[str], str]
"""Returns the address of what is at a path below the repository."""


def moment(tick: int) -> str:
    """Return when a change was made, as GitHub writes it."""
    minutes, seconds = divmod(tick, 60)
    hours, minutes = divmod(minutes, 60)
    return f"2026-01-{1 + hours // 24:02}T{hours % 24:02}:{minutes:02}:{seconds:02}Z"


def user(author: Author) -> dict[str, Any]:
    return {"login": author.login, "id": author.id, "type": author.type}


def repository(name: str) -> dict[str, Any]:
    owner, _, short = name.partition("/")
    number = {REPOSITORY: REPOSITORY_ID, FORK: FORK_ID}.get(name, 9999)
    shown = {"id": number, "name": short, "full_name": name, "fork": name != REPOSITORY}
    return {**shown, "owner": {"login": owner}}


def commit(sha: str, parents: Sequence[str] = ()) -> dict[str, Any]:
    return {
        "sha": sha,
        "commit": {"message": "m"},
        "parents": [{"sha": each, "url": "https://api.github.com/"} for each in parents],
    }


def comment(found: Comment, at: At) -> dict[str, Any]:
    return {
        "id": found.id,
        "node_id": found.node_id,
        "body": found.body,
        "user": user(found.author) if found.author else None,
        "created_at": moment(found.created),
        "updated_at": moment(found.updated),
        "html_url": f"https://github.com/{REPOSITORY}/pull/{found.number}#issuecomment-{found.id}",
        "issue_url": at(f"issues/{found.number}"),
        "url": at(f"issues/comments/{found.id}"),
        "minimized": {"reason": found.minimized} if found.minimized else None,
    }


def issue(found: Issue, at: At) -> dict[str, Any]:
    """Return an issue, as it is shown."""
    return {
        **_common(found.number, found.state, at),
        "title": found.title,
        "body": found.body,
        "user": user(found.author),
        "labels": [{"name": name} for name in found.labels],
        "assignees": [{"login": name} for name in found.assignees],
        "state_reason": found.reason,
    }


def as_issue(found: PullRequest, at: At) -> dict[str, Any]:
    """Return a pull request, as it is shown among issues."""
    return {
        **_common(found.number, found.state, at),
        "pull_request": {"url": at(f"pulls/{found.number}")},
        "user": user(HUMAN),
    }


def _common(number: int, state: str, at: At) -> dict[str, Any]:
    return {
        "number": number,
        "state": state,
        "html_url": f"https://github.com/{REPOSITORY}/issues/{number}",
        "url": at(f"issues/{number}"),
    }


def pull(found: PullRequest, at: At) -> dict[str, Any]:
    return {
        "number": found.number,
        "node_id": found.node_id,
        "state": found.state,
        "locked": found.locked,
        "url": at(f"pulls/{found.number}"),
        "html_url": f"https://github.com/{REPOSITORY}/pull/{found.number}",
        "merge_commit_sha": found.merge_commit,
        "merged_at": moment(0) if found.merged else None,
        "head": {
            "ref": found.branch,
            "sha": found.head,
            "label": f"{found.owner}:{found.branch}",
            "repo": repository(found.repository) if found.repository else None,
        },
        "base": {
            "ref": found.base,
            "sha": found.base_sha,
            "label": f"octo:{found.base}",
            "repo": repository(REPOSITORY),
        },
    }


def check_run(kept: dict[str, Any], annotations: int, at: At) -> dict[str, Any]:
    output = {
        **kept["output"],
        "annotations_count": annotations,
        "annotations_url": at(f"check-runs/{kept['id']}/annotations"),
    }
    shown = {name: each for name, each in kept.items() if name not in ("output", "actions")}
    return {**shown, "output": output, "url": at(f"check-runs/{kept['id']}")}


def artifact(kept: dict[str, Any], at: At) -> dict[str, Any]:
    url = at(f"actions/artifacts/{kept['id']}")
    return {"url": url, "archive_download_url": f"{url}/zip", **kept}


def workflow_run(run: WorkflowRun, pulls: Mapping[int, PullRequest]) -> dict[str, Any]:
    return {
        "id": run.id,
        "name": run.name,
        "path": run.path,
        "event": run.event,
        "head_sha": run.head,
        "head_branch": run.branch,
        "run_attempt": run.attempt,
        "status": run.status,
        "conclusion": run.conclusion,
        "repository": repository(REPOSITORY),
        "head_repository": repository(run.repository) if run.repository else None,
        "html_url": f"https://github.com/{REPOSITORY}/actions/runs/{run.id}",
        "pull_requests": [
            {
                "number": number,
                "head": {"ref": pull.branch, "sha": pull.head},
                "base": {"ref": pull.base, "sha": pull.base_sha},
            }
            for number in run.pull_requests
            if (pull := pulls[number])
        ],
    }
