"""Data branch: read and written without touching the user's clone.

Everything happens in a separate bare repository in a temporary directory: the user's files,
index, refs and objects stay as they are, none of their hooks run, and processes do not interfere.
It uses the same remote with the same settings.  Only the tip of the branch is fetched and, if the
server supports it, only the files that are read.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from ci_eval.forge.git_remote import Remote, permanent_error_hint
from ci_eval.records.errors import BaselineError, UsageError
from ci_eval.runtime.clone import Clone
from ci_eval.runtime.git import GitError, Repository
from ci_eval.runtime.retry import Backoff

TRIES = 16
"""Maximum number of attempts to push; a push is refused if another one came first."""
READ_TRIES = 3
BACKOFF = Backoff(first_s=0.4, longest_s=3.0, jitter=1.0)
MAX_FILE = 512 * 1024 * 1024
"""The largest file that is read from the branch, in bytes."""
_OFFLINE_HINT = (
    "check the network; to run offline, pass a copy of the configuration without `baseline:` "
    "(`ci-eval run -c FILE`)"
)
_REF = "refs/ci-eval/data"
_IDENTITY = {
    f"GIT_{role}_{kind}": value
    for role in ("AUTHOR", "COMMITTER")
    for kind, value in (("NAME", "ci-eval"), ("EMAIL", "ci-eval@noreply.invalid"))
}


@dataclass(frozen=True)
class Change:
    """The changes that a commit makes to the branch."""

    message: str
    files: Mapping[str, Path | None]
    """The new content by path; `None` removes the file."""
    afresh: bool = False
    """True if the commit has no parent, so that the branch loses its history."""


@dataclass
class DataBranch:
    """The tip of one branch of a remote."""

    scratch: Repository
    name: str
    remote: Remote
    copies: Path
    """The directory for copies of files and for new ones."""
    tip: str | None = None
    is_remote: bool = False
    """Whether the remote has the branch.  If not, the clone may have it, from before the remote."""
    files: frozenset[str] = frozenset()

    @property
    def shown(self) -> str:
        """The branch in a few words."""
        return f"branch {self.name!r} of {self.remote.shown}"

    def fetch(self, seed: str) -> None:
        """Fetch the branch, if it exists.

        Raises:
            BaselineError: the remote cannot be reached, or the branch holds other data.

        """
        for pause in (*BACKOFF.pauses(READ_TRIES - 1, seed=seed), None):
            try:
                self._fetch()
            except GitError as exc:
                hint = permanent_error_hint(str(exc), writing=False)
                if pause is None or hint is not None:
                    message = f"the {self.shown} cannot be read: {exc}"
                    raise BaselineError(message, hint=hint or _OFFLINE_HINT) from exc
                time.sleep(pause)
            else:
                return

    def has(self, path: str) -> bool:
        """Return True if the branch has a file at `path`."""
        return path in self.files

    def has_folder(self, path: str) -> bool:
        """Return True if the branch has files below `path`."""
        return any(each.startswith(f"{path}/") for each in self.files)

    @contextmanager
    def file(self, path: str) -> Iterator[Path]:
        """Yield a temporary local copy of a file of the branch."""
        with tempfile.TemporaryDirectory(dir=self.copies) as folder:
            copy = Path(folder) / "file"
            try:
                self.scratch.copy(f"{self.tip}:{path}", copy, most=MAX_FILE, remote=True)
            except GitError as exc:
                message = f"{path} in the {self.shown} cannot be read: {exc}"
                raise BaselineError(message) from exc
            yield copy

    def update(self, seed: str, make: Callable[[Path], Change | None]) -> bool:
        """Commit and push the change that `make` returns; return False if it returns none.

        `make` gets a directory for new files, and is called again after each lost race.

        Raises:
            BaselineError: as `fetch`.
            UsageError: the branch cannot be written, or was not written within `TRIES` attempts.

        """
        refusal = ""
        for pause in (0.0, *BACKOFF.pauses(TRIES - 1, seed=seed)):
            time.sleep(pause)
            self.fetch(seed)
            with tempfile.TemporaryDirectory(dir=self.copies) as drafts:
                change = make(Path(drafts))
                if change is None:
                    return False
                refusal = self._push(change)
            if not refusal:
                return True
        raise UsageError(
            f"the {self.shown} was not changed after {TRIES} attempts: {refusal}",
            hint="store the run later, with `ci-eval baseline save` and its run.json",
        )

    def _push(self, change: Change) -> str:
        """Push `change`; return why it was refused, or an empty text."""
        there = self.tip if self.is_remote else ""
        lease = f"--force-with-lease=refs/heads/{self.name}:{there}"
        options = ("--quiet", *self.remote.push_options, lease)
        try:
            target = f"{self._commit(change)}:refs/heads/{self.name}"
            self.scratch.run("push", *options, "data", target, remote=True)
        except GitError as exc:
            hint = permanent_error_hint(str(exc), writing=True)
            if hint is None:
                return str(exc)
            message = f"the {self.shown} was not changed: {exc}"
            raise UsageError(message, hint=hint) from exc
        return ""

    def _fetch(self) -> None:
        of_remote = ("--depth=1", "--filter=blob:none", *self.remote.fetch_options, "data")
        self.is_remote = self._has_fetched(*of_remote)
        if not self.is_remote:
            # The clone has the branch if runs were stored before the remote.
            place = self.remote.clone
            if not place or not self._has_fetched(*self.remote.clone_options, place):
                self.tip, self.files = None, frozenset()
                return
        self.tip = self.scratch.commit(_REF)
        listed = self.scratch.run("ls-tree", "-r", "-z", "--name-only", _REF)
        self.files = frozenset(listed.decode(errors="surrogateescape").split("\0")) - {""}
        if not any(path.startswith("suites/") for path in self.files):
            raise BaselineError(
                f"the {self.shown} holds other data than runs; not changed",
                hint="set `branch` to another name",
            )

    def _has_fetched(self, *words: str) -> bool:
        """Fetch the branch, given options and a place; return False if the place lacks it."""
        options = ("--quiet", "--no-tags", "--no-write-fetch-head", *words)
        try:
            self.scratch.run("fetch", *options, f"+refs/heads/{self.name}:{_REF}", remote=True)
        except GitError as exc:
            if "couldn't find remote ref" not in str(exc):
                raise
            return False
        return True

    def _commit(self, change: Change) -> str:
        """Commit `change` on top of the tip, and return the commit."""
        git = self.scratch
        git.run("read-tree", *([self.tip] if self.tip else ["--empty"]))
        written = {path: file for path, file in change.files.items() if file}
        paths = "".join(f"{file}\n" for file in written.values()).encode()
        blobs = git.run("hash-object", "-w", "--no-filters", "--stdin-paths", given=paths)
        none = "0" * (64 if self.remote.object_format == "sha256" else 40)
        pairs = zip(written, blobs.decode().split(), strict=True)
        lines = [f"100644 {blob}\t{path}" for path, blob in pairs]
        lines += [f"0 {none}\t{path}" for path, file in change.files.items() if not file]
        git.run("update-index", "-z", "--index-info", given="\0".join([*lines, ""]).encode())
        # Files that were never read are missing here, but not needed.
        tree = git.run("write-tree", "--missing-ok").decode().strip()
        parent = ["-p", self.tip] if self.tip and not change.afresh else []
        commit = git.run("commit-tree", tree, *parent, given=change.message.encode())
        return commit.decode().strip()


@contextmanager
def opened(clone: Clone, branch: str, remote: str) -> Iterator[DataBranch]:
    """Open a branch of the clone's remote, or of the clone itself if it has no remotes.

    Raises:
        BaselineError: there is no repository, or the branch name is invalid.

    """
    found = Remote.of(clone, remote)
    if any(each.key == f"branch.{branch}.remote" for each in clone.settings):
        found = replace(found, clone="")  # its branch is a copy of one that the remote had
    if clone.view.query("check-ref-format", "--branch", branch) != branch:
        raise BaselineError(f"{branch!r} is not a valid branch name")
    with tempfile.TemporaryDirectory(prefix="ci-eval-") as name:
        folder = Path(name)
        scratch = Repository(folder / "data.git", clone.env, {**found.settings, **_IDENTITY})
        try:
            object_format = f"--object-format={found.object_format}"
            scratch.run("init", "--quiet", "--bare", "--template=", object_format)
        except GitError as exc:
            raise BaselineError(f"cannot create a repository for the baseline: {exc}") from exc
        yield DataBranch(scratch, branch, found, folder)
