"""Ancestor commits of a run, and the stored runs that it is compared with.

The merge base with the base branch comes first, then its ancestors along first parents, nearest
first and up to a limit.  If none of them has a run, the newest run of the base branch is used.
"""

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeVar

from ci_eval.runtime.clone import Clone
from ci_eval.runtime.context import in_actions, in_gitlab

T = TypeVar("T")
_log = logging.getLogger(__name__)

_MAIN = ("main", "master")
"""Names to try if nothing names the base branch."""
_MERGED = ("merged_result", "merge_train")
"""Types of merge request pipelines that run on the merge result; others run on the branch."""
_MAX_EVENT = 30 * 1024 * 1024
"""Maximum size of the event payloads that GitHub sends, in bytes."""
_SOURCES = {
    "schedule": "schedule",
    "web": "workflow_dispatch",
    "api": "repository_dispatch",
    "pipeline": "repository_dispatch",
    "trigger": "repository_dispatch",
}
"""GitLab's pipeline sources, and the equivalent events of GitHub."""
_WITHOUT_CHANGE = frozenset(_SOURCES.values())
"""Events that start a job although nothing was pushed."""


@dataclass(frozen=True)
class Lineage:
    """The commits that a run may be compared with."""

    ancestors: tuple[str, ...] = ()
    """The commit to compare with, then its ancestors, nearest first; empty if there is none."""
    base: str | None = None
    """The target branch of the change, or the branch that was pushed."""
    own: str | None = None
    """The commit of the run itself, with which the run is not compared; `None` if the work tree has
    uncommitted changes."""
    shallow: bool = False
    """True if the clone lacks older commits."""
    changes: bool = True
    """False if the run is of the merge base itself.

    It is compared with the commit before the push or, if nothing was pushed, with stored runs of
    the same commit and of earlier ones.
    """

    def distance(self, commit: str | None) -> int | None:
        """Return how many commits before the merge base `commit` is; `None` if not an ancestor."""
        return self.ancestors.index(commit) if commit in self.ancestors else None

    @property
    def of_next_change(self) -> "Lineage":
        """If the run is of the merge base, the lineage of a change that begins there."""
        if self.changes or self.own is None:
            return self
        return replace(self, ancestors=(self.own, *self.ancestors), own=None, changes=True)

    def choose(self, stored: Iterable[T], of: "Callable[[T], Origin]", limit: int) -> list[T]:
        """Return the stored runs to compare with, nearest first, at most `limit`.

        `of` returns the origin of a stored run.
        """
        found = [(each, of(each)) for each in stored]
        origins = [pair for pair in found if not self.own or pair[1].commit != self.own]
        origins.sort(key=lambda pair: pair[1].created, reverse=True)
        if self.ancestors:
            places = {commit: place for place, commit in enumerate(self.ancestors)}
            before = [pair for pair in origins if pair[1].commit in places]
            before.sort(key=lambda pair: places[str(pair[1].commit)])
            origins = before or [
                each for each in origins if self.base and each[1].branch == self.base
            ]
        elif self.base:
            origins = [each for each in origins if each[1].branch == self.base] or origins
        chosen = origins[:limit]
        for _, origin in found:
            is_used = any(origin is other for _, other in chosen)
            said = "used" if is_used else f"not used: {self.why_not(origin.commit)}"
            _log.info("stored run of %s: %s", origin.shown, said)
        return [each for each, _ in chosen]

    def why_not(self, commit: str | None) -> str:
        """Return why a run of `commit` is not among those to compare with."""
        if self.own and commit == self.own:
            return "of this commit itself"
        if commit in self.ancestors:
            return "enough runs are nearer"
        if self.ancestors and self.shallow:
            return "unknown whether it is an ancestor, as the clone is shallow"
        if self.ancestors:
            return "not an ancestor of the merge base"
        return "enough runs are newer"


@dataclass(frozen=True)
class Origin:
    """Commit, branch and time of a stored run."""

    commit: str | None
    branch: str | None
    created: str
    """When it began, in UTC, ISO 8601."""

    @property
    def shown(self) -> str:
        """The run in a few words."""
        return f"commit {self.commit} on branch {self.branch}, {self.created}"


def trace(  # noqa: PLR0913  # everything that decides what a run is compared with
    clone: Clone,
    *,
    base: str | None,
    search: int,
    commit: str | None = None,
    tracked: Sequence[str] = (),
    without_change: bool = False,
) -> Lineage:
    """Return the lineage of the checkout, or of a `commit` that the clone has.

    `base` is the branch to compare with.  The default is the target branch of the pull request,
    else the pushed branch if it matches one of the patterns `tracked`, else the default branch.  At
    most `search` commits are read.  `without_change` is true if a run to be reevaluated was started
    without a push.
    """
    view = clone.view
    head = view.commit(commit) if commit else clone.head
    branch = base or target_branch(clone.env) or _tracked_branch(clone, tracked)
    if head is None:
        return Lineage(base=branch)
    own = head if head != clone.head or clone.is_unchanged else None
    if branch is None and view.query("for-each-ref", "--count=1", "refs/remotes"):
        # Perhaps only the branch of the change was fetched; then its parent is not the merge base.
        return Lineage(own=own, shallow=clone.is_shallow)
    start = _start(clone, head, branch, search)
    changes = start is None or start != own
    if not changes and (without_change or is_without_change(clone.env)):
        own = None
    elif not changes:
        start = _before_push(clone, head)
    # A shallow clone may know the name of a commit that it lacks.
    found = view.first_parents(start, search) or (start,) if start else ()
    return Lineage(found, branch, own, clone.is_shallow, changes)


def _tracked_branch(clone: Clone, tracked: Sequence[str]) -> str | None:
    """Return the branch whose earlier runs a run without a target branch is compared with."""
    own = own_branch(clone.env)
    if own and any(fnmatchcase(own, each) for each in tracked):
        return own
    return default_branch(clone) or own


def began(clone: Clone, configured: str | None, tracked: Sequence[str]) -> Lineage:
    """Return the lineage of a change, with the commit where it began as the only ancestor.

    A change may bring its own configuration, so the target branch that CI names takes precedence
    over the `configured` one.  `tracked` are patterns of branches, as for `trace`.
    """
    base = target_branch(clone.env) or configured
    return trace(clone, base=base, search=1, tracked=tracked)


def event(env: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the payload of the event that started the workflow; empty outside of GitHub."""
    path = Path(env.get("GITHUB_EVENT_PATH") or "/nonexistent")
    try:
        if path.stat().st_size > _MAX_EVENT:
            return {}
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def event_of(env: Mapping[str, str]) -> str:
    """Return the event that started this job, as GitHub names it; empty if unknown."""
    if in_gitlab(env):
        return _SOURCES.get(env.get("CI_PIPELINE_SOURCE", ""), "")
    return env.get("GITHUB_EVENT_NAME", "") if in_actions(env) else ""


def is_without_change(env: Mapping[str, str]) -> bool:
    """Return True if this job was started on a schedule, by hand or through the API."""
    return event_of(env) in _WITHOUT_CHANGE


def from_fork(env: Mapping[str, str]) -> bool:
    """Return True if the change is from a fork or Dependabot: no secrets, a read-only token."""
    source = env.get("CI_MERGE_REQUEST_SOURCE_PROJECT_ID")
    if source:
        return source != env.get("CI_MERGE_REQUEST_PROJECT_ID")
    if env.get("GITHUB_ACTOR") == "dependabot[bot]":
        return True
    match event(env):
        case {"pull_request": {"head": {"repo": None}}}:
            return True  # the fork has been deleted
        case {
            "pull_request": {"head": {"repo": {"full_name": str(head)}}},
            "repository": {"full_name": str(base)},
        }:
            return head != base
    return False


def is_target_checkout(clone: Clone) -> bool:
    """Return True if `pull_request_target` checked out what it does by default: no change.

    With `pull_request`, somebody asked for the target branch, perhaps to compare both.
    """
    if event_of(clone.env) != "pull_request_target":
        return False
    is_open = event_text(event(clone.env), "pull_request", "state") == "open"
    return is_open and clone.head == clone.env.get("GITHUB_SHA") and clone.is_unchanged


def event_text(payload: Any, *path: str) -> str:
    """Return the text at `path` in the payload of an event; empty if there is none."""
    for step in path:
        payload = payload.get(step) if isinstance(payload, dict) else None
    return payload if isinstance(payload, str) else ""


def base_branch(env: Mapping[str, str]) -> str | None:
    """Return the target branch of a change, or the branch it was pushed to, as CI names it."""
    return target_branch(env) or own_branch(env)


def target_branch(env: Mapping[str, str]) -> str | None:
    """Return the target branch of a pull request or an entry of a merge queue, as CI names it."""
    if target := env.get("GITHUB_BASE_REF") or env.get("CI_MERGE_REQUEST_TARGET_BRANCH_NAME"):
        return target
    return event_text(event(env), "merge_group", "base_ref").removeprefix("refs/heads/") or None


def current_branch(clone: Clone) -> str | None:
    """Return the branch that is checked out; `None` for a pull request or a detached HEAD.

    For a merged pull request, this is its target branch.
    """
    env = clone.env
    match event(env).get("pull_request"):
        case {"merged": True, "base": {"ref": str(branch)}}:
            return branch
    if env.get("GITHUB_HEAD_REF") or env.get("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME"):
        return None
    return own_branch(env) or clone.branch


_HEADS = "refs/heads/"


def own_branch(env: Mapping[str, str]) -> str | None:
    """Return the branch that CI checked out; `None` for a pull request or outside of CI."""
    if env.get("GITHUB_HEAD_REF"):
        return None
    if env.get("GITHUB_REF_TYPE") == "branch":
        return env.get("GITHUB_REF_NAME")
    ref = env.get("GITHUB_REF", "")  # emulators of GitHub's runner may set nothing else
    return ref.removeprefix(_HEADS) if ref.startswith(_HEADS) else env.get("CI_COMMIT_BRANCH")


def is_tag(env: Mapping[str, str]) -> bool:
    """Return True if CI builds a tag, whose code is merged."""
    return env.get("GITHUB_REF_TYPE") == "tag" or bool(env.get("CI_COMMIT_TAG"))


def default_branch(clone: Clone) -> str | None:
    """Return the default branch, as CI or the clone names it, else `main` or `master`."""
    hosted = event_text(event(clone.env), "repository", "default_branch")
    if named := hosted or clone.env.get("CI_DEFAULT_BRANCH"):
        return named
    if named := clone.view.query("symbolic-ref", "--quiet", "refs/remotes/origin/HEAD"):
        return named.removeprefix("refs/remotes/origin/")
    return next((name for name in _MAIN if _tip(clone, name)), None)


def _tip(clone: Clone, branch: str, *, is_local: bool = True) -> str | None:
    """Return the newest commit of a branch, on the remote if known; never that of a tag.

    Unless `is_local`, only a branch of a remote counts.
    """
    kinds = ["remotes/origin", "heads", "remotes"] if is_local else ["remotes/origin", "remotes"]
    return next(filter(None, (clone.view.commit(f"refs/{each}/{branch}") for each in kinds)), None)


def unrelated(clone: Clone, branch: str | None) -> str | None:
    """Return the base branch, the default one unless named, if `HEAD` shares no commit with it."""
    named = branch or default_branch(clone)
    tip = _tip(clone, named) if named else None
    is_first = clone.head and not clone.view.parents(clone.head)
    return named if is_first and tip and tip != clone.head else None


def _start(clone: Clone, head: str, branch: str | None, search: int) -> str | None:
    """Return the commit to begin with: the merge base; `None` if the clone does not show it."""
    env, view = clone.env, clone.view
    if head == clone.head and (built_on := _built_on(clone)):
        return built_on
    parents = view.parents(head)
    changed = event_text(event(env), "pull_request", "head", "sha")
    is_merge = bool(env.get("GITHUB_BASE_REF")) and len(parents) > 1 and head != changed
    tip = _tip(clone, branch, is_local=not is_merge) if branch else None
    if tip and (found := view.query("merge-base", "--all", head, tip).split()):
        # After merges in both directions there are several; runs are stored for the base branch.
        line = view.first_parents(tip, search) if len(found) > 1 else ()
        return next((each for each in line if each in found), found[0])
    if is_merge:
        # The checkout is the merge of the change into its base, which is the first parent.
        return parents[0]
    bases = (
        env.get("CI_MERGE_REQUEST_DIFF_BASE_SHA", ""),
        event_text(event(env), "pull_request", "base", "sha"),
    )
    is_merged = branch == own_branch(env) or is_tag(env)
    parent = _before_push(clone, head) if is_merged else None
    return next(filter(is_commit, bases), head if branch is None else parent)


def _built_on(clone: Clone) -> str | None:
    """Return the commit that a merge queue or GitLab merged the change into; `None` elsewhere.

    Earlier entries of a queue are not on the base branch yet, so its tip does not lead there.
    """
    queued = event_text(event(clone.env), "merge_group", "base_sha")
    if is_commit(queued):
        return queued
    parents = clone.view.parents(clone.head) if clone.head else ()
    is_merged = clone.env.get("CI_MERGE_REQUEST_EVENT_TYPE") in _MERGED and len(parents) > 1
    return parents[0] if is_merged else None


def _before_push(clone: Clone, head: str) -> str | None:
    """Return the commit that a push of `head` built on; its parent if CI does not say."""
    env, view = clone.env, clone.view
    payload = event(env)
    before, pushed = event_text(payload, "before"), event_text(payload, "after")
    if in_gitlab(env):
        before, pushed = env.get("CI_COMMIT_BEFORE_SHA", ""), env.get("CI_COMMIT_SHA", "")
    if pushed == head != before and is_commit(before):
        if view.query("merge-base", before, head) == before:
            return before
        if payload.get("forced") is False and not view.commit(before) and before.strip("0"):
            return before  # a shallow clone lacks it
    return next(iter(view.parents(head)), None)


def is_commit(text: str) -> bool:
    """Return True if `text` is a full commit hash."""
    return len(text) in (40, 64) and set(text) <= set("0123456789abcdef")
