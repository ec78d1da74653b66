"""Baselines in a file of the repository, read at the merge base."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from ci_eval.baselines._baseline_document import fault, stored_runs
from ci_eval.baselines.file_store import FileStore, of_suite
from ci_eval.forge.lineage import Lineage
from ci_eval.forge.missing_commit import why_missing
from ci_eval.plugins.points import baseline
from ci_eval.records.errors import BaselineError
from ci_eval.records.findings import Noted
from ci_eval.run_files.run_summary import note
from ci_eval.run_files.score_table import Past
from ci_eval.runtime.clone import Clone
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.git import GitError

MAX_BYTES = 512 * 1024 * 1024
"""The largest file that is read from a commit."""


@baseline("git")
class GitStore(FileStore):
    """The same file as `file`, read at the merge base.

    The version in the work tree is not read, because the pull request may have changed it. If the
    merge base lacks the file, its nearest ancestor that has the file is used. `baseline save`
    writes the file to the work tree, for you to commit.
    """

    ref: str | None = Field(default=None, min_length=1)
    """A branch, tag or commit to read from, such as `origin/main`; default: the merge base."""

    @property
    def work_tree_file(self) -> str:
        """Empty: the work tree is not read."""
        return ""

    def place(self, context: RunContext) -> str:
        """Return the file, with a note to commit it."""
        ignored = context.clone.view.query("check-ignore", str(self._path(context)))
        how = "remove it from .gitignore, then commit it" if ignored else "commit it"
        return f"{super().place(context)}; {how}: only committed runs are used"

    def load(self, lineage: Lineage, suite: str, context: RunContext) -> Sequence[Past]:
        """Return the runs stored at the merge base, newest first."""
        return self._committed(suite, lineage, context)[: self.window]

    def history(self, suite: str, context: RunContext) -> Sequence[Noted]:
        """Return the summaries of the runs stored at the merge base, newest first."""
        return [note(past) for past in self._committed(suite, self.lineage(context), context)]

    def _committed(self, suite: str, lineage: Lineage, context: RunContext) -> list[Past]:
        repository = context.clone.view
        inside = self._inside(context.clone, context)
        found = _find(context, self._commits(context, lineage), inside)
        if found is None:
            return []
        shown = f"{found.commit[:12]}:{inside}"
        if found.kind != "blob":
            raise fault("is not a file", shown)
        with tempfile.TemporaryDirectory(prefix="ci-eval-") as folder:
            copy = Path(folder) / "baseline.json"
            try:
                repository.copy(found.object, copy, most=MAX_BYTES)
            except GitError as exc:
                raise fault(f"cannot be read from git: {exc}", shown) from exc
            return of_suite(stored_runs(copy, shown), suite, shown)

    def _commits(self, context: RunContext, lineage: Lineage) -> Sequence[str]:
        """Return the commits to search, nearest first; the first is in this clone."""
        repository, head = context.clone.view, context.clone.head
        commits: Sequence[str] = lineage.ancestors
        if self.ref:
            start = repository.commit(self.ref)
            if start is None:
                message = f"the baseline was not loaded: there is no {self.ref!r} in this clone"
                raise BaselineError(message, hint=_DEEPER)
            commits = repository.first_parents(start, self.search)
        elif not commits and head and repository.parents(head):
            raise BaselineError(
                "the baseline was not loaded: the merge base is unknown", hint=_NAMED
            )
        elif commits and (why := why_missing(context, commits[0])):
            raise BaselineError(f"the baseline was not loaded: {why}")
        return commits

    def _inside(self, clone: Clone, context: RunContext) -> str:
        """Return the file's path relative to the top of the repository."""
        path = str(self._path(context))
        if clone.top is None:
            raise BaselineError(f"the baseline was not loaded: {clone.missing}")
        try:
            inside = clone.inside(path)
        except GitError:
            inside = "."
        if inside == ".":
            hint = "set `path` to a file in the repository"
            raise fault(
                "is outside of the repository, so git has no versions of it", self.path, hint=hint
            )
        return inside


_DEEPER = "check out with `fetch-depth: 0`, or fetch it"
_NAMED = "fetch the base branch, and name it in `baseline.base`"


class _Found(NamedTuple):
    """The git object at a path of a commit."""

    commit: str
    object: str
    kind: str


def _find(context: RunContext, commits: Sequence[str], path: str) -> _Found | None:
    """Return the object at `path` in the first of `commits` that has one."""
    if "\n" in path or not commits:
        return None
    clone, repository = context.clone, context.clone.view
    asked = "".join(f"{commit}:{path}\n" for commit in commits)
    try:
        answers = repository.run("cat-file", "--batch-check", given=asked.encode())
    except GitError as exc:
        raise BaselineError(f"the baseline was not loaded: {exc}") from exc
    for commit, answer in zip(commits, answers.decode(errors="replace").splitlines(), strict=False):
        match answer.split(" "):
            case [name, kind, size] if size.isdigit():
                return _Found(commit, name, kind)
            # A partial clone knows the names of objects that it lacks.
            case [_, "missing"] if clone.is_partial and repository.holds(f"{commit}:{path}"):
                if why := why_missing(context, commit):
                    raise BaselineError(f"the baseline was not loaded: {why}")
                place = f"{commit}:{path}"
                return _Found(commit, place, repository.query("cat-file", "-t", place))
    return None
