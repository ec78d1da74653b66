"""Finding the pull request of a run, from the event or from GitHub's API.

Events: https://docs.github.com/en/webhooks/webhook-events-and-payloads
API: https://docs.github.com/en/rest/pulls
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import AliasPath, Field

from ci_eval.forge.github import GitHub
from ci_eval.forge.lineage import base_branch, event, event_of, event_text, is_commit
from ci_eval.forge.rest import GONE, HostError
from ci_eval.pull_requests.comment_thread import PostingError
from ci_eval.records.cases import Stored

NEEDS = "pull-requests: read"
_QUEUED = re.compile(r"refs/heads/gh-readonly-queue/.+/pr-([0-9]{1,9})-[0-9a-f]{40,64}")
"""A branch name of a merge queue, which contains the number of the last pull request."""
_NO_SUCH_COMMIT = 422


class PullRequest(NamedTuple):
    """A pull request, with data from GitHub."""

    number: int
    head_sha: str
    """Its head commit."""
    is_fork: bool
    """Whether it comes from another repository."""
    base: str = ""
    """Its target branch."""
    merge_sha: str | None = None
    """The test merge commit, which workflows check out."""


async def find(github: GitHub, env: Mapping[str, str], number: int | None) -> PullRequest | None:
    """Return the pull request `number`, else that of the event or of its commit.

    `None` if there is no open one, or if it has a newer commit than the event.  If several have the
    same commit, the one whose target is the branch that CI names is used, else the one whose target
    is the default branch.  For a merge queue, it is the last pull request of the queue.

    Raises:
        HostError: a request to GitHub failed.
        PostingError: the pull request `number` is not open, or several match.

    """
    if number is not None:
        return await _numbered(github, number)
    match payload := event(env):
        case {"pull_request": dict(found)}:
            return _of_payload(found, event_text(payload, "repository", "full_name"))
        case {"merge_group": dict(queue)}:
            return await _queued(github, queue)
        case {"workflow_run": {"head_sha": str(sha), "head_branch": str(branch)}}:
            source = event_text(payload, "workflow_run", "head_repository", "full_name")
            return _only(await of_branch(github, source, branch, sha), payload, env)
    sha = event_text(payload, "after") or env.get("GITHUB_SHA", "")
    return _only(await _of_commit(github, sha), payload, env)


async def of_branch(github: GitHub, source: str, branch: str, sha: str) -> list[PullRequest]:
    """Return the open pull requests of a branch of the repository `source` with head commit `sha`.

    Raises:
        HostError: a request to GitHub failed.

    """
    owner = source.partition("/")[0]
    if not owner or not branch:
        return []
    listing = github.listed("pulls", _Pull, needs=NEEDS, state="open", head=f"{owner}:{branch}")
    found = [each async for each in listing]
    return [
        each.record
        for each in found
        if each.is_open and each.head.sha == sha and each.head.repository == source
    ]


async def numbered(github: GitHub, number: int) -> PullRequest | None:
    """Return the pull request `number`; `None` if it is not open.

    Raises:
        HostError: a request to GitHub failed, or there is no such pull request.

    """
    found = await github.one(f"pulls/{number}", _Pull, needs=NEEDS)
    return found.record if found.is_open and found.number == number else None


async def refuse_other(
    github: GitHub, pull: PullRequest, commit: str, env: Mapping[str, str]
) -> None:
    """Refuse to post what was measured on a `commit` of the repository that is another one.

    It must be the head commit, or a merge of it.  Commits of other repositories, and those that
    the job made itself, are not known to GitHub, and pass.

    Raises:
        PostingError: it is another commit.

    """
    own = {pull.head_sha, pull.merge_sha}
    if event_of(env) in ("pull_request", "merge_group"):
        own.add(env.get("GITHUB_SHA"))
    if commit in own:
        return
    listing = github.listed("commits", _Commit, needs="contents: read", most=1, sha=commit)
    try:
        known = [each async for each in listing]
    except HostError:
        return
    if known and own.isdisjoint(each.sha for each in known[0].parents):
        head = f"the head of pull request #{pull.number} ({pull.head_sha[:7]})"
        message = f"commit {commit[:7]} was evaluated, which is neither {head} nor a merge of it"
        raise PostingError(message, hint=f"check out refs/pull/{pull.number}/merge, and run again")


class _Parent(Stored):
    sha: str


class _Commit(Stored):
    parents: tuple[_Parent, ...]


class _End(Stored):
    """A branch with its head commit."""

    ref: str
    sha: str
    repository: str = Field(default="", validation_alias=AliasPath("repo", "full_name"))
    """Empty if the repository has been deleted."""


class _Pull(Stored):
    number: int
    state: str
    head: _End
    base: _End
    merge_commit_sha: str | None = None

    @property
    def is_open(self) -> bool:
        return self.state == "open"

    @property
    def record(self) -> PullRequest:
        is_fork = not self.base.repository or self.head.repository != self.base.repository
        merged = self.merge_commit_sha
        return PullRequest(self.number, self.head.sha, is_fork, self.base.ref, merged)


async def _numbered(github: GitHub, number: int) -> PullRequest:
    try:
        found = await numbered(github, number)
    except HostError as exc:
        if exc.status in GONE:
            # GitHub also answers so if the token may not read pull requests; then listing fails.
            [_ async for _ in github.listed("pulls", _Pull, needs=NEEDS, most=1, state="open")]
            raise PostingError(f"there is no pull request #{number}") from exc
        raise
    if found is None:
        raise PostingError(f"pull request #{number} is not open")
    return found


def _of_payload(found: Mapping[str, Any], repository: str) -> PullRequest | None:
    """Return the pull request in an event payload, which GitHub wrote."""
    match found:
        case {"state": "closed"}:
            return None
        case {"number": int(number), "head": {"sha": str(sha)}}:
            # The repository of a fork may have been deleted.
            is_fork = event_text(found, "head", "repo", "full_name") != repository
            merged = event_text(found, "merge_commit_sha") or None
            return PullRequest(number, sha, is_fork, event_text(found, "base", "ref"), merged)
    return None


async def _queued(github: GitHub, queue: Mapping[str, Any]) -> PullRequest | None:
    """Return the last pull request of a merge queue."""
    named = _QUEUED.fullmatch(str(queue.get("head_ref")))
    found = await numbered(github, int(named[1])) if named else None
    base = str(queue.get("base_ref")).removeprefix("refs/heads/")
    return found if found and found.base == base else None


async def _of_commit(github: GitHub, sha: str) -> list[PullRequest]:
    """Return the open pull requests whose head or test merge commit is `sha`."""
    if not is_commit(sha) or not sha.strip("0"):
        return []
    try:
        found = [each async for each in github.listed(f"commits/{sha}/pulls", _Pull, needs=NEEDS)]
    except HostError as exc:
        if exc.status == _NO_SUCH_COMMIT:
            return []
        raise
    return [
        each.record
        for each in found
        if each.is_open and sha in (each.head.sha, each.merge_commit_sha)
    ]


def _only(
    found: Sequence[PullRequest], payload: Mapping[str, Any], env: Mapping[str, str]
) -> PullRequest | None:
    """Return the matching pull request.

    Raises:
        PostingError: several match.

    """
    if len(found) <= 1:
        return found[0] if found else None
    for branch in (base_branch(env), event_text(payload, "repository", "default_branch")):
        fitting = [each for each in found if each.base == branch]
        if len(fitting) == 1:
            return fitting[0]
    message = f"several pull requests have this head commit: {listed(found)}"
    raise PostingError(message, hint="select one with --pr NUMBER")


def listed(found: Iterable[PullRequest]) -> str:
    """Return the numbers of pull requests, for a sentence."""
    return ", ".join(f"#{each.number}" for each in found)
