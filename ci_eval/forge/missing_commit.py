"""Fetching one commit that a shallow or partial clone lacks, without touching the clone."""

from ci_eval.forge.git_remote import Remote
from ci_eval.forge.lineage import is_commit
from ci_eval.records.errors import BaselineError
from ci_eval.runtime.clone import Clone
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.git import GitError, Repository

_REMOTE = "origin"


def why_missing(context: RunContext, commit: str) -> str:
    """Fetch the merge base `commit` if the clone lacks it or a file of it.

    Returns the reason if that is impossible; else an empty text.
    """
    clone = context.clone
    is_known = clone.view.commit(commit) is not None
    if is_known and not (clone.is_partial and _lacks_files(clone.view, commit)):
        return ""
    context.say(f"fetching the merge base {commit[:7]}")
    if not (why := fetch_missing(clone, commit)):
        return ""
    files, way_out = ("", "with `fetch-depth: 0`")
    if is_known:
        files, way_out = ("files of ", "without `filter`")
    lacking = f"the clone lacks {files}the merge base {commit[:7]}"
    return f"{lacking}, and it cannot be fetched: {why}; check out {way_out}"


def _lacks_files(view: Repository, commit: str) -> bool:
    listed = view.query("rev-list", "--objects", "--no-walk", "--missing=print", commit, "--")
    return any(line.startswith("?") for line in listed.splitlines())


def fetch_missing(clone: Clone, commit: str) -> str:
    """Fetch `commit`, with its files and without its history, into our view of the clone.

    Returns the reason if that is impossible; else an empty text, and the view has the commit.
    """
    if not is_commit(commit):
        return "its name is not a commit hash"  # a commit object may name anything as its parent
    try:
        remote = Remote.of(clone, _REMOTE)
    except BaselineError as exc:
        return str(exc)
    if remote.is_clone:
        return "the clone has no remote"
    is_known = clone.view.commit(commit) is not None
    fetched = Repository(clone.fetched, clone.env, remote.settings)
    options = ("--quiet", "--depth=1", "--no-tags", "--no-write-fetch-head")
    try:
        object_format = f"--object-format={remote.object_format}"
        fetched.run("init", "--quiet", "--bare", "--template=", object_format)
        words = (*options, *remote.fetch_options, "data", f"+{commit}:refs/ci-eval/commit")
        fetched.run("fetch", *words, remote=True)
    except GitError as exc:
        return str(exc)
    if not is_known:
        clone.add_root(commit)
    return ""
