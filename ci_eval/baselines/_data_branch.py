"""A branch that holds data, read and written beside the user's clone, which is left as it is.

All happens in a bare repository of its own, in a temporary folder: no file, index, ref or object
of the user's changes, no hook of theirs runs, and no two processes meet.  It talks to the same
remote with the same settings.  Of the branch it gets the tip alone and, where the server can do
that, only those files that are read.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random  # noqa: TID251  # seeded; only how long to wait depends on it

from ci_eval.baselines._remote import Remote, hopeless
from ci_eval.records.errors import BaselineError, UsageError
from ci_eval.runtime.clone import Clone
from ci_eval.runtime.git import GitError, Repository

TRIES = 16
"""How often a push is tried; each one that is refused means that another one went through."""
READ_TRIES = 3
FIRST_PAUSE_S = 0.4
LONGEST_PAUSE_S = 3.0
MAX_FILE = 512 * 1024 * 1024
"""The longest file that is read from the branch, in bytes."""
_REF = "refs/ci-eval/data"
_WHO = ("ci-eval", "ci-eval@noreply.invalid")
_IDENTITY = {
    f"GIT_{role}_{kind}": value
    for role in ("AUTHOR", "COMMITTER")
    for kind, value in zip(("NAME", "EMAIL"), _WHO, strict=True)
}


@dataclass(frozen=True)
class Change:
    """What a commit makes of the branch."""

    message: str
    files: Mapping[str, Path | None]
    """By their paths, what is in them from now on; `None` for what is removed."""
    afresh: bool = False
    """Whether the branch forgets what was before."""


class DataBranch:
    """The tip of one branch of a remote."""

    def __init__(self, beside: Repository, branch: str, remote: Remote, folder: Path) -> None:
        self._beside = beside
        self.name = branch
        self._remote = remote
        self._copies = folder
        self.shown = f"branch {branch!r} of {remote.shown}"
        self._tip: str | None = None
        self._files: frozenset[str] = frozenset()

    def fetch(self, seed: str) -> None:
        """Get the branch as it is now; that there is none is no error.

        Raises:
            BaselineError: the remote cannot be reached, or the branch holds something else.

        """
        for pause in (*_pauses(seed, READ_TRIES), None):
            try:
                self._fetch()
            except GitError as exc:
                hint = hopeless(str(exc), writing=False)
                if pause is None or hint is not None:
                    message = f"the {self.shown} cannot be read: {exc}"
                    raise BaselineError(message, hint=hint or "") from exc
                time.sleep(pause)
            else:
                return

    def has(self, path: str) -> bool:
        """Say whether the branch has a file at `path`."""
        return path in self._files

    def has_folder(self, path: str) -> bool:
        """Say whether the branch has files below `path`."""
        return any(each.startswith(f"{path}/") for each in self._files)

    @contextmanager
    def file(self, path: str) -> Iterator[Path]:
        """Give a file of the branch a place on this machine for as long as it is read."""
        with tempfile.TemporaryDirectory(dir=self._copies) as folder:
            copy = Path(folder) / "file"
            try:
                self._beside.copy(f"{self._tip}:{path}", copy, most=MAX_FILE, remote=True)
            except GitError as exc:
                message = f"{path} in the {self.shown} cannot be read: {exc}"
                raise BaselineError(message) from exc
            yield copy

    def update(self, seed: str, make: Callable[[Path], Change | None]) -> bool:
        """Put on the branch what `make` makes of it; say `False` where that is nothing.

        `make` gets a folder for files, and is asked again whenever somebody else was first.

        Raises:
            BaselineError: as `fetch`.
            UsageError: the branch cannot be written, or not in so many tries.

        """
        refusal = ""
        for pause in (0.0, *_pauses(seed, TRIES)):
            time.sleep(pause)
            self.fetch(seed)
            with tempfile.TemporaryDirectory(dir=self._copies) as drafts:
                change = make(Path(drafts))
                if change is None:
                    return False
                refusal = self._push(change)
            if not refusal:
                return True
        raise UsageError(
            f"the {self.shown} was not changed, in {TRIES} tries: {refusal}",
            hint="store the run later: `ci-eval baseline save` takes its run.json",
        )

    def _push(self, change: Change) -> str:
        """Push `change`, and return why it was refused; nothing where it was not."""
        lease = f"--force-with-lease=refs/heads/{self.name}:{self._tip or ''}"
        options = ("--quiet", *self._remote.receiving, lease)
        try:
            target = f"{self._commit(change)}:refs/heads/{self.name}"
            self._beside.run("push", *options, "data", target, remote=True)
        except GitError as exc:
            hint = hopeless(str(exc), writing=True)
            if hint is None:
                return str(exc)
            message = f"the {self.shown} was not changed: {exc}"
            raise UsageError(message, hint=hint) from exc
        return ""

    def _fetch(self) -> None:
        source = f"+refs/heads/{self.name}:{_REF}"
        options = ("--depth=1", "--filter=blob:none", "--no-tags", "--no-write-fetch-head")
        try:
            self._beside.run(
                "fetch", "--quiet", *options, *self._remote.sending, "data", source, remote=True
            )
        except GitError as exc:
            if "couldn't find remote ref" not in str(exc):
                raise
            self._tip, self._files = None, frozenset()
            return
        self._tip = self._beside.commit(_REF)
        listed = self._beside.run("ls-tree", "-r", "-z", "--name-only", _REF)
        self._files = frozenset(listed.decode(errors="surrogateescape").split("\0")) - {""}
        if not any(path.startswith("suites/") for path in self._files):
            raise BaselineError(
                f"the {self.shown} holds something else than runs, and is left as it is",
                hint="name another one with `branch`",
            )

    def _commit(self, change: Change) -> str:
        """Make a commit of `change`, on top of the tip, and return its name."""
        git = self._beside
        git.run("read-tree", *([self._tip] if self._tip else ["--empty"]))
        written = {path: file for path, file in change.files.items() if file}
        paths = "".join(f"{file}\n" for file in written.values()).encode()
        blobs = git.run("hash-object", "-w", "--no-filters", "--stdin-paths", given=paths)
        none = "0" * (64 if self._remote.hashing == "sha256" else 40)
        lines = [
            *(
                f"100644 {blob}\t{path}"
                for path, blob in zip(written, blobs.decode().split(), strict=True)
            ),
            *(f"0 {none}\t{path}" for path, file in change.files.items() if not file),
        ]
        git.run("update-index", "-z", "--index-info", given="\0".join([*lines, ""]).encode())
        # Files that nobody read are not here, and need not be.
        tree = git.run("write-tree", "--missing-ok").decode().strip()
        parent = ["-p", self._tip] if self._tip and not change.afresh else []
        told = git.run("commit-tree", tree, *parent, given=change.message.encode())
        return told.decode().strip()


@contextmanager
def opened(clone: Clone, branch: str, remote: str) -> Iterator[DataBranch]:
    """Open a branch of the clone's remote, or of the clone itself if it has no remotes.

    Raises:
        BaselineError: there is no repository, or no branch can have that name.

    """
    found = Remote.of(clone, remote)
    if clone.view.asked("check-ref-format", "--branch", branch) != branch:
        raise BaselineError(f"no branch can be called {branch!r}")
    with tempfile.TemporaryDirectory(prefix="ci-eval-") as name:
        folder = Path(name)
        beside = Repository(folder / "data.git", clone.env, {**found.settings, **_IDENTITY})
        try:
            hashing = f"--object-format={found.hashing}"
            beside.run("init", "--quiet", "--bare", "--template=", hashing)
        except GitError as exc:
            raise BaselineError(f"no repository for the baseline could be made: {exc}") from exc
        yield DataBranch(beside, branch, found, folder)


def _pauses(seed: str, tries: int) -> Sequence[float]:
    """Return how long to wait between so many tries, in seconds.

    Anything up to twice as long as before ("full jitter"), so that those who collided once do
    not again: Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
    """
    random = Random(seed)  # noqa: S311  # no secret
    return [
        random.uniform(0, min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**step))
        for step in range(tries - 1)
    ]
