"""The files of a commit, as a checkout of the user's clone would write them.

Git runs no program here that a setting names.  So what it leaves out is filled in from the clone:
submodules, and files that git would pass through a filter, such as those of Git LFS.
"""

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import accumulate, islice
from pathlib import Path
from typing import NamedTuple

from ci_eval.runtime.clone import Clone, git_dir_in
from ci_eval.runtime.git import GitError, Repository

_LFS = "lfs"
_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:.*\n)*?oid sha256:([0-9a-f]{64})\n"
)
"""The file that git has instead of one that Git LFS keeps:
<https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md>."""
_MAX_POINTER = 1024
_SUBMODULE, _LINK = "160000", "120000"
"""Modes of entries that are no files."""
_NO_PROGRAMS = ("", "cat")
"""Values of a filter's `smudge` and `process` with which files stay as they are."""
_NO_INPUT = (
    *("__pycache__", "*.pyc", "*.egg-info", ".*_cache", ".coverage", ".DS_Store"),
    *(".idea", ".vscode", ".ci-eval*", "ci-eval-*"),
)
"""Names of untracked files that tools write and no agent needs."""
_MAX_UNTRACKED = 100
_MAX_COPIED = 2 * 1024**3
"""How many of them are listed, and how many bytes are copied in all."""


class _Entry(NamedTuple):
    """A file or submodule in a commit."""

    mode: str
    object_name: str


def check_out(clone: Clone, commit: str, tree: Path) -> None:
    """Write the files of a commit into a new folder.

    What the work tree of the clone lacks, such as submodules that the job does not use, stays
    missing.

    Raises:
        GitError: the clone lacks an object, a submodule or a file that Git LFS keeps; a file needs
            another filter; or a file cannot be written.
        OSError: a file cannot be read or written.

    """
    if clone.top is None or clone.common is None:
        raise GitError(clone.missing)
    filters = _filters(clone)
    _Source(clone.view, clone.top, clone.top, clone.common, clone.head, filters).write(commit, tree)


def untracked(clone: Clone, but: Path) -> tuple[str, ...]:
    """Return the files and folders of the work tree that agents may need and git does not track.

    Ignored ones are included; virtual environments, what tools write, and the folder `but` are not.
    The name of a folder ends with `/`.  At most 100; empty if there is no readable clone.
    """
    options = ("-z", "--others", "--directory", "--no-empty-directory")
    try:
        listed = clone.view.run("ls-files", *options).decode(errors="replace")
    except GitError:
        return ()
    top = clone.top or Path()
    names = (name for name in listed.split("\0") if name and _may_be_input(top / name, but))
    return tuple(islice(names, _MAX_UNTRACKED))


def _may_be_input(path: Path, but: Path) -> bool:
    is_tools = any(fnmatchcase(path.name, each) for each in _NO_INPUT)
    return not (is_tools or path == but.absolute() or (path / "pyvenv.cfg").is_file())


def copy_untracked(clone: Clone, names: Sequence[str], tree: Path) -> None:
    """Copy untracked files and folders of the work tree into another one, where they are missing.

    Raises:
        OSError: they are too many or too large, or one cannot be copied.

    """
    top = clone.top or Path()
    sizes = (path.lstat().st_size for name in names for path in _files(top / name))
    if len(names) >= _MAX_UNTRACKED or any(each > _MAX_COPIED for each in accumulate(sizes)):
        raise OSError("too many or too large")
    for path in (path for name in names for path in _files(top / name)):
        if path.is_symlink() and _misleads(path, path.readlink(), top):
            raise OSError(f"the link {path.relative_to(top)} leads to another file from there")
    for name in names:
        target = tree / name
        if os.path.lexists(target) or not target.parent.resolve().is_relative_to(tree.resolve()):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            shutil.copytree(top / name, target, symlinks=True)
        else:
            shutil.copy2(top / name, target, follow_symlinks=False)


def _misleads(link: Path, target: Path, top: Path) -> bool:
    """Return True if a link of the work tree `top` means another file in another folder.

    So does a relative link that leads out, and an absolute one that leads in.
    """
    found = Path(os.path.normpath(link.parent / target))
    return os.path.lexists(found) and found.is_relative_to(top) == target.is_absolute()


def _files(path: Path) -> Iterator[Path]:
    """Yield a file, or the files in a folder."""
    if path.is_symlink() or not path.is_dir():
        yield path
    for folder, folders, names in os.walk(path):  # follows no symlinks
        links = (name for name in folders if Path(folder, name).is_symlink())
        yield from (Path(folder, name) for name in (*names, *links))


def _filters(clone: Clone) -> Collection[str]:
    """Return the names of the filters that would change files on a checkout."""
    found = {each.key: each.value for each in clone.settings if each.key.startswith("filter.")}
    parts = ((*key.removeprefix("filter.").rpartition("."), value) for key, value in found.items())
    return {
        name
        for name, _, option, value in parts
        if option in ("smudge", "process") and value not in _NO_PROGRAMS
    }


@dataclass(frozen=True)
class _Source:
    """A clone or one of its submodules."""

    view: Repository
    top: Path
    """The folder of the work tree."""
    here: Path
    """Its folder in the work tree, if it is a submodule."""
    git_dir: Path
    head: str | None
    """The commit that is checked out."""
    filters: Collection[str]

    def write(self, commit: str, tree: Path) -> None:
        """Write the files of a commit into a folder."""
        tree.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="ci-eval-index-") as folder:
            variables = {"GIT_WORK_TREE": str(tree), "GIT_INDEX_FILE": str(Path(folder, "index"))}
            own = replace(self.view, extra={**self.view.extra, **variables})
            own.run("read-tree", commit)
            own.run("checkout-index", "--all", "--quiet")
            entries = _entries(own.run("ls-files", "-z", "--stage"), 1)
            filtered = [*self._filtered(own, entries)]
        for name, entry in entries.items():
            if entry.mode == _SUBMODULE:
                self._write_submodule(name, entry.object_name, tree / name)
            elif entry.mode == _LINK and _misleads(
                self.here / name, (tree / name).readlink(), self.top
            ):
                raise GitError(f"the link {name} leads to another file from there")
        for name, by in filtered:
            self._fill(name, entries[name], by, tree / name)

    def _write_submodule(self, name: str, commit: str, tree: Path) -> None:
        here = self.here / name
        for git_dir in filter(None, (git_dir_in(here), self.git_dir / "modules" / name)):
            objects = {"GIT_OBJECT_DIRECTORY": str(git_dir / "objects")}
            view = replace(self.view, extra={**self.view.extra, **objects})
            if view.commit(commit):
                entry = self._at_head.get(name)
                head = entry.object_name if entry else None
                _Source(view, self.top, here, git_dir, head, self.filters).write(commit, tree)
                return
        if not here.is_dir() or any(here.iterdir()):  # an empty one is not used
            lacks = f"the clone lacks commit {commit[:7]} of the submodule {name!r}"
            raise GitError(f"{lacks}; check out submodules with `fetch-depth: 0`")

    def _filtered(
        self, view: Repository, entries: Mapping[str, _Entry]
    ) -> Iterator[tuple[str, str]]:
        """Yield the files that pass through a filter, with its name."""
        files = [name for name, entry in entries.items() if entry.mode.startswith("100")]
        if not self.filters:
            return
        given = "\0".join(files).encode(errors="surrogateescape")
        listed = view.run("check-attr", "-z", "--stdin", "--cached", "filter", given=given)
        fields = listed.decode(errors="surrogateescape").split("\0")
        for name, value in zip(fields[::3], fields[2::3], strict=False):
            if value in self.filters:
                yield name, value

    @cached_property
    def _at_head(self) -> Mapping[str, _Entry]:
        return _entries(self.view.run("ls-tree", "-rz", self.head), 2) if self.head else {}

    def _fill(self, name: str, entry: _Entry, by: str, file: Path) -> None:
        """Give a file the content that a filter would."""
        here = self.here / name
        is_here = here.is_file() and here.resolve().is_relative_to(self.here.resolve())
        if is_here and self._at_head.get(name) == entry:
            shutil.copyfile(here, file)
            return
        if by != _LFS:
            raise GitError(f"{name} needs git's filter {by!r}, which ci-eval does not run")
        digest = _pointed(file)
        if digest is None or (is_here and _pointed(here)):  # the job does not use Git LFS
            return
        stored = self.git_dir / "lfs/objects" / digest[:2] / digest[2:4] / digest
        if not stored.is_file() or _digest(stored) != digest:
            way_out = "run `git lfs fetch --all` before"
            raise GitError(f"the clone lacks {name}, which Git LFS keeps; {way_out}")
        shutil.copyfile(stored, file)


def _entries(listed: bytes, place: int) -> dict[str, _Entry]:
    """Parse a listing of git; `place` is the column with the names of the objects."""
    lines = listed.decode(errors="surrogateescape").split("\0")
    parts = (line.partition("\t") for line in lines if line)
    columns = {name: facts.split(" ") for facts, _, name in parts}
    return {name: _Entry(each[0], each[place]) for name, each in columns.items()}


def _pointed(file: Path) -> str | None:
    """Return the SHA-256 digest of the content that a pointer of Git LFS names."""
    with file.open("rb") as opened:
        found = _POINTER.match(opened.read(_MAX_POINTER))
    return found[1].decode() if found else None


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
