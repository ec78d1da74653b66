"""Baselines on a data branch: runs by commit, safe for concurrent jobs."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from ci_eval.baselines._baseline_document import fault, stored_runs, with_run
from ci_eval.baselines._data_branch import Change, DataBranch, opened
from ci_eval.baselines._runs_index import README, REPAIR_HINT, folder_of, index_text, read_index
from ci_eval.forge.lineage import Lineage, Origin, default_branch, is_commit
from ci_eval.plugins.baseline_store import BaselineStore
from ci_eval.plugins.points import baseline
from ci_eval.records.errors import BaselineError, UsageError
from ci_eval.records.findings import Noted
from ci_eval.records.results import Run
from ci_eval.run_files import badge
from ci_eval.run_files.file_names import RUN_FILE
from ci_eval.run_files.run_summary import note_run
from ci_eval.run_files.score_table import Past
from ci_eval.runtime.context import RunContext

MAX_PER_COMMIT = 100
"""Maximum number of runs kept for one commit."""


@baseline("branch")
class BranchStore(BaselineStore):
    """A branch that holds only runs, one file per commit.

    Each suite has a folder with the values of its runs, their index, and a badge (`badge.svg`,
    and `badge.json` for shields.io) that shows the newest run of the base branch. The clone is
    not touched: neither files, index, HEAD nor branches. Jobs may store runs at the same time;
    none is lost. To store runs, a workflow needs `permissions: {contents: write}`.
    """

    branch: str = Field(default="ci-eval-data", min_length=1, max_length=200)
    """Name of the branch, which is created when the first run is stored. If the remote lacks it,
    the runs that the clone stored before it had a remote are used, and pushed with the next run."""
    remote: str = Field(default="origin", min_length=1)
    """The remote that has the branch; if there are no remotes, the repository itself has it."""
    squash: bool = False
    """Whether `baseline prune` rewrites the branch to a single commit, which frees the space of
    removed runs."""

    def load(self, lineage: Lineage, suite: str, context: RunContext) -> Sequence[Past]:
        """Return the nearest runs; only their files are fetched."""
        with self._opened(context) as branch:
            branch.fetch(suite)
            kept = _Suite(branch, suite)
            chosen = lineage.choose(kept.index(), _origin, self.window)
            found: dict[str, dict[str, Past]] = {}
            for noted in chosen:
                if str(noted.commit) not in found:
                    found[str(noted.commit)] = kept.of_commit(noted)
            return [_held(found[str(noted.commit)], noted, kept) for noted in chosen]

    def place(self, context: RunContext) -> str:
        """Return the branch and its remote."""
        with self._opened(context) as branch:
            return branch.shown

    def first_push(self, suite: str, context: RunContext) -> str:
        """Return the branch, if it is not on the remote yet."""
        with self._opened(context) as branch:
            if branch.remote.is_clone:
                return ""
            branch.fetch(suite)
            return "" if branch.is_remote else branch.shown

    def history(self, suite: str, context: RunContext) -> Sequence[Noted]:
        """Return the summaries of the runs, from the index."""
        with self._opened(context) as branch:
            branch.fetch(suite)
            return _Suite(branch, suite).index()

    def save(self, run: Run, context: RunContext) -> bool:
        """Add `run` to the file of its commit."""
        commit = run.meta.commit
        if not commit or not is_commit(commit):
            raise UsageError(
                "not stored: the run has no commit, and a branch keeps runs by commit",
                hint="run in a git repository, or use `store: file`",
            )
        noted = note_run(run)
        shown = self.base or default_branch(context.clone)
        with self._opened(context) as branch:
            kept = _Suite(branch, run.meta.suite)

            return branch.update(
                run.meta.run_id, lambda drafts: kept.with_run(run, noted, shown, drafts)
            )

    def prune(self, suite: str, keep: int, context: RunContext) -> int:
        """Remove all runs but `keep`, and the files of commits without any runs left."""
        gone = 0
        with self._opened(context) as branch:
            kept = _Suite(branch, suite)

            def make(drafts: Path) -> Change | None:
                nonlocal gone
                runs = self.as_kept(kept.index(), _origin, context)
                gone = len(runs[keep:])
                return kept.reduced(runs, keep, drafts, afresh=self.squash) if gone else None

            branch.update(suite, make)
        return gone

    def _opened(self, context: RunContext) -> AbstractContextManager[DataBranch]:
        return opened(context.clone, self.branch, self.remote)


def _origin(noted: Noted) -> Origin:
    return Origin(noted.commit, noted.branch, noted.created)


def _held(found: dict[str, Past], noted: Noted, kept: "_Suite") -> Past:
    if noted.run_id not in found:
        message = f"lacks the run {noted.run_id!r}, which the index lists"
        raise fault(message, kept.shown(kept.path_of(noted)))
    return found[noted.run_id]


@dataclass(frozen=True)
class _Suite:
    """The folder of one suite."""

    branch: DataBranch
    suite: str

    @property
    def _index(self) -> str:
        return f"{folder_of(self.suite)}/index.json"

    def path_of(self, noted: Noted) -> str:
        """Return the file with the values of a run."""
        return f"{folder_of(self.suite)}/runs/{noted.commit}.json"

    def shown(self, path: str) -> str:
        """Return a file of the branch in git's notation, `branch:path`."""
        return f"{self.branch.name}:{path}"

    def index(self) -> tuple[Noted, ...]:
        """Return the summaries of the runs, newest first."""
        if not self.branch.has(self._index):
            if self.branch.has_folder(folder_of(self.suite)):
                message = "is missing or not a file, but its folder has others"
                raise fault(message, self.shown(self._index), hint=REPAIR_HINT)
            return ()
        with self.branch.file(self._index) as file:
            return read_index(file, self.suite, shown=self.shown(self._index))

    def of_commit(self, noted: Noted) -> dict[str, Past]:
        """Return the runs of a commit, by their ids."""
        path = self.path_of(noted)
        if not self.branch.has(path):
            raise self._lost(noted)
        with self.branch.file(path) as file:
            return {past.meta.run_id: past for past in stored_runs(file, self.shown(path))}

    def _lost(self, noted: Noted) -> BaselineError:
        message = f"is missing, but the index lists its run {noted.run_id!r}"
        return fault(message, self.shown(self.path_of(noted)))

    def with_run(self, run: Run, noted: Noted, badge_of: str | None, drafts: Path) -> Change | None:
        """Return the change that adds a run; `None` if it is stored already."""
        runs = self.index()
        if any(each.run_id == noted.run_id for each in runs):
            return None
        path = self.path_of(noted)
        named = next((each for each in runs if each.commit == noted.commit), None)
        if named and not self.branch.has(path):
            raise self._lost(named)
        document = drafts / RUN_FILE
        dropped = self._write(run, path, document)
        left = [noted, *(each for each in runs if each.run_id not in dropped)]
        left.sort(key=lambda each: each.created, reverse=True)
        files = {path: document, **dict(self._pages(left, badge_of, drafts))}
        return Change(f"{self.suite}: run {noted.run_id} of {noted.commit}\n\n[skip ci]\n", files)

    def reduced(self, runs: Sequence[Noted], keep: int, drafts: Path, *, afresh: bool) -> Change:
        """Return the change that keeps only the first `keep` of the `runs`."""
        left = sorted(runs[:keep], key=lambda each: each.created, reverse=True)
        gone = runs[keep:]
        needed = {self.path_of(each) for each in left}
        files: dict[str, Path | None] = {
            path: None for each in gone if (path := self.path_of(each)) not in needed
        }
        files[self._index] = _written(drafts / "index.json", index_text(self.suite, left))
        message = f"{self.suite}: {len(left)} of {len(runs)} runs kept\n\n[skip ci]\n"
        return Change(message, files, afresh)

    def _write(self, run: Run, path: str, document: Path) -> set[str]:
        """Write the file of a commit with `run` first, and return the runs that it drops."""
        is_there = self.branch.has(path)
        with self.branch.file(path) if is_there else nullcontext(document) as old:
            stored = stored_runs(old, self.shown(path)) if is_there else []
            pieces = with_run(run, stored, old, self.shown(path), window=MAX_PER_COMMIT)
            with document.open("w", encoding="utf-8", newline="\n") as out:
                out.writelines(pieces)
        return {past.meta.run_id for past in stored[MAX_PER_COMMIT - 1 :]}

    def _pages(
        self, runs: Sequence[Noted], badge_of: str | None, drafts: Path
    ) -> Iterator[tuple[str, Path]]:
        """Yield the index, the badge of the branch's newest run, and the README."""
        yield self._index, _written(drafts / "index.json", index_text(self.suite, runs))
        if not self.branch.has("README.md"):
            yield "README.md", _written(drafts / "README.md", README)
        newest = next((each for each in runs if badge_of in (None, each.branch)), None)
        if newest:
            found = badge.Badge.of(self.suite, newest.cases)
            for name, text in (("badge.json", found.endpoint()), ("badge.svg", found.svg())):
                yield f"{folder_of(self.suite)}/{name}", _written(drafts / name, text)


def _written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="\n")
    return path
