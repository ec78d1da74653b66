"""Fetching one commit that a shallow clone lacks, without touching the clone."""

from ci_eval.forge.git_remote import Remote
from ci_eval.forge.lineage import is_commit
from ci_eval.records.errors import BaselineError
from ci_eval.runtime.clone import Clone
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.git import GitError, Repository

_REMOTE = "origin"


def why_missing(context: RunContext, commit: str) -> str:
    """Fetch the merge base `commit` if the clone lacks it; return why it is impossible, or ""."""
    if context.clone.view.commit(commit) is not None:
        return ""
    context.say(f"fetching the merge base {commit[:7]}")
    why = fetch_missing(context.clone, commit)
    lacking = f"the clone lacks the merge base {commit[:7]}, and it cannot be fetched: {why}"
    return why and f"{lacking}; check out with `fetch-depth: 0`"


def fetch_missing(clone: Clone, commit: str) -> str:
    """Fetch `commit`, with its files and without its history, into our view of the clone.

    Returns the reason if that is impossible; empty if the view has the commit now.
    """
    if not is_commit(commit):
        return "its name is not a commit hash"  # a commit object may name anything as its parent
    try:
        remote = Remote.of(clone, _REMOTE)
    except BaselineError as exc:
        return str(exc)
    if remote.is_clone:
        return "the clone has no remote"
    fetched = Repository(clone.fetched, clone.env, remote.settings)
    options = ("--quiet", "--depth=1", "--no-tags", "--no-write-fetch-head")
    try:
        object_format = f"--object-format={remote.object_format}"
        fetched.run("init", "--quiet", "--bare", "--template=", object_format)
        words = (*options, *remote.fetch_options, "data", f"+{commit}:refs/ci-eval/commit")
        fetched.run("fetch", *words, remote=True)
    except GitError as exc:
        return str(exc)
    clone.add_root(commit)
    return ""
