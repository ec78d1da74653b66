"""The user's clone: found once, read once, and then left alone.

An agent, or a pull request, can leave a folder behind that git takes for a repository, with
settings that name programs to run.  So git never looks for the repository: this module does, by
rules that a pull request cannot meet, and copies what git needs to know into a git directory of
our own, the *view*.  The view has the clone's commits, branches and tags; its settings are ours,
and so are its hooks: none.  All later calls go to the view.
"""

import os
import re
import shutil
import stat
import sys
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from ci_eval.runtime.git import GitError, Repository
from ci_eval.runtime.isolation import belongs_to_agents

_MAX_SMALL = 64 * 1024
_MAX_LIST = 256 * 1024 * 1024
"""The longest files of git's that are read, in bytes: pointers, and lists of refs and commits."""
_FILES = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM")
_HOMES = ("HOME", "XDG_CONFIG_HOME", "USERPROFILE")
"""Variables that name files with settings of the user's, and folders with such files."""
_OF_USER = ("system", "global", "command")
"""The scopes of settings that are not the clone's, as `git config --show-scope` names them."""
_ONE_SETTING = re.compile(r"GIT_CONFIG_(KEY|VALUE)_[0-9]+")
_OF_FORMAT = ("core.repositoryformatversion", "extensions.objectformat")
_OF_FILES = (
    *("core.autocrlf", "core.eol", "core.filemode", "core.ignorecase"),
    *("core.precomposeunicode", "core.symlinks"),
)
"""Settings that the view has as the clone has them: how objects are named, and how files of the
work tree are compared with them.  None names a program or a file."""


class Setting(NamedTuple):
    """One setting of git's."""

    key: str
    value: str
    is_users: bool
    """Whether the user's own files or the job's variables say so, and no file of the clone."""


@dataclass(frozen=True)
class _Nowhere(Repository):
    """What stands for the view where there is no clone."""

    reason: str = ""

    def run(self, *args: str, **_: object) -> bytes:
        """Refuse."""
        del args
        raise GitError(self.reason)


@dataclass(frozen=True)
class _Found:
    """What was read of a clone."""

    view: Repository
    top: Path | None = None
    common: Path | None = None
    head: str | None = None
    branch: str | None = None
    settings: tuple[Setting, ...] = ()


class Clone:
    """The clone that a folder belongs to, if it belongs to one.

    It is looked for when it is first asked about, and never again.
    """

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self.folder = Path(os.path.normpath(folder.absolute()))
        self.env = env

    @property
    def view(self) -> Repository:
        """The git directory of our own; without a clone, each command fails."""
        return self._found.view

    @property
    def missing(self) -> str:
        """Why there is no clone; empty if there is one."""
        view = self._found.view
        return view.reason if isinstance(view, _Nowhere) else ""

    @property
    def top(self) -> Path | None:
        """The folder of the work tree; `None` without a clone."""
        return self._found.top

    @property
    def common(self) -> Path | None:
        """The clone's own git directory; of a linked work tree, that of the main one."""
        return self._found.common

    @property
    def head(self) -> str | None:
        """The commit that is checked out, if there is one."""
        return self._found.head

    @property
    def branch(self) -> str | None:
        """The branch that is checked out, if one is."""
        return self._found.branch

    @property
    def settings(self) -> tuple[Setting, ...]:
        """All settings that hold in the clone; of those with one name the last one counts."""
        return self._found.settings

    @property
    def is_partial(self) -> bool:
        """Whether it lacks objects, which git would fetch when they are asked for."""
        return any(each.key.endswith(".promisor") for each in self.settings)

    def look(self) -> None:
        """Find and read the clone now, before anything of the repository runs."""
        _ = self._found

    def inside(self, path: str) -> str:
        """Return git's name for a file: its path from the top, with `/` between the folders.

        `path` starts at the folder that the clone was looked for from.

        Raises:
            GitError: there is no clone, or the file is outside of it.

        """
        if self.top is None:
            self.view.run()
        meant = Path(os.path.normpath(self.folder / path))
        try:
            return meant.relative_to(self.top or meant).as_posix()
        except ValueError:
            raise GitError(f"{path} is outside of the repository") from None

    @cached_property
    def _found(self) -> _Found:
        try:
            found = _read(self.folder, self.env)
        except (GitError, OSError) as exc:
            return _Found(_Nowhere(self.folder, self.env, reason=str(exc)))
        weakref.finalize(self, shutil.rmtree, found.view.git_dir, ignore_errors=True)
        return found


NO_CLONE = Clone(Path(os.devnull), {})
"""Stands for the clone where nobody looked for one."""


def top_of(folder: Path) -> Path | None:
    """Return the top of the work tree that `folder` is in, if it is in one.

    That is the nearest folder with an entry `.git`, which no commit can bring along.  It counts
    only if it belongs to us, to root, or to whoever owns the folder that it is in, and neither
    belongs to the account of agents.  A folder that merely looks like a bare repository never
    counts, for a pull request can bring it along.
    """
    found = _nearest(folder)
    return found[0] if found else None


def _nearest(folder: Path) -> tuple[Path, Path] | None:
    """Return the top of a work tree, and its git directory."""
    folder = Path(os.path.normpath(folder.absolute()))
    for up in (folder, *folder.parents):
        entry = up / ".git"
        git_dir = _git_dir(entry) if _is_trusted(entry) else None
        if git_dir and _is_trusted(git_dir) and _is_git_dir(git_dir):
            return up, git_dir
    return None


def _is_trusted(path: Path) -> bool:
    if sys.platform == "win32":  # where agents run as we do
        return path.exists()
    if belongs_to_agents(path) or belongs_to_agents(path.parent):
        return False
    try:
        owner = path.lstat().st_uid
        return owner in (os.geteuid(), 0, path.parent.stat().st_uid)
    except OSError:
        return False


def _git_dir(entry: Path) -> Path | None:
    """Return the git directory that an entry `.git` is, or names."""
    if entry.is_dir():
        return entry
    named = _small(entry).strip().removeprefix("gitdir: ")
    return Path(os.path.normpath(entry.parent / named)) if named else None


def _is_git_dir(path: Path) -> bool:
    return (path / "HEAD").is_file() and any(
        (path / name).exists() for name in ("objects", "commondir")
    )


def _small(path: Path, most: int = _MAX_SMALL) -> str:
    """Return the text of a regular file; empty if it is none, or longer than `most` bytes."""
    try:
        # Opening a pipe must not wait for somebody to write.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > most:
                return ""
            return file.read(most).decode(errors="surrogateescape")
    except OSError:
        return ""


def _read(folder: Path, env: Mapping[str, str]) -> _Found:
    nearest = _nearest(folder)
    if nearest is None:
        raise GitError(f"{folder} is not in a git repository")
    top, git_dir = nearest
    shared = _small(git_dir / "commondir").strip()
    common = Path(os.path.normpath(git_dir / shared)) if shared else git_dir
    # Of the clone itself git is asked this alone, which opens no object: a missing one it would
    # fetch, by programs that the clone's settings name.
    settings = tuple(_settings(git_dir, top, env))
    view = Path(tempfile.mkdtemp(prefix="ci-eval-git-"))
    _make_view(view, git_dir, common, settings)
    extra = {
        "GIT_OBJECT_DIRECTORY": str(common / "objects"),
        "GIT_INDEX_FILE": str(git_dir / "index"),
        "GIT_WORK_TREE": str(top),
    }
    asked = Repository(view, env, extra)
    branch = asked.asked("symbolic-ref", "--quiet", "HEAD").removeprefix("refs/heads/") or None
    return _Found(asked, top, common, asked.commit("HEAD"), branch, settings)


def _settings(git_dir: Path, top: Path, env: Mapping[str, str]) -> Iterator[Setting]:
    """Yield all settings, with those of included files, where checkouts keep their tokens.

    No folder or file in the work tree holds the user's, whatever variable names it.
    """
    extra = {key: env.get(key) for key in ("GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_COUNT")}
    extra |= {key: _outside(env.get(key), top, os.devnull) for key in _FILES}
    extra |= {key: None for key in _HOMES if _outside(env.get(key), top, None) is None}
    extra |= {key: value for key, value in env.items() if _ONE_SETTING.fullmatch(key)}
    listed = Repository(git_dir, env, extra).run(
        *("config", "--list", "-z", "--show-scope", "--includes"), remote=True
    )
    fields = listed.decode(errors="surrogateescape").split("\0")
    for scope, entry in zip(fields[::2], fields[1::2], strict=False):
        key, _, value = entry.partition("\n")
        yield Setting(key, value, scope in _OF_USER)


def _outside(path: str | None, top: Path, instead: str | None) -> str | None:
    inside = path and Path(os.path.realpath(path)).is_relative_to(os.path.realpath(top))
    return instead if inside else path


def _make_view(view: Path, git_dir: Path, common: Path, settings: tuple[Setting, ...]) -> None:
    known = {each.key: each.value for each in settings}
    if known.get("extensions.refstorage", "files") != "files":
        message = "keeps its branches in a form that ci-eval does not read"
        raise GitError(f"{common} {message}: git refs migrate --ref-format=files")
    (view / "objects").mkdir()
    for folder, _, names in os.walk(common / "refs"):  # which follows no link
        place = view / Path(folder).relative_to(common)
        place.mkdir()
        for name in names:
            _write(place / name, _small(Path(folder, name)))
    for source in (git_dir / "HEAD", common / "packed-refs", common / "shallow"):
        if text := _small(source, _MAX_LIST):
            _write(view / source.name, text)
    kept = [(key, known[key]) for key in (*_OF_FORMAT, *_OF_FILES) if key in known]
    _write(view / "config", "".join(_line(key, value) for key, value in kept))


def _line(key: str, value: str) -> str:
    section, _, name = key.partition(".")
    quoted = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'[{section}]\n\t{name} = "{quoted}"\n'


def _write(path: Path, text: str) -> None:
    path.write_bytes(text.encode(errors="surrogateescape"))
