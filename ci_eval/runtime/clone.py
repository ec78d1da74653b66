"""The user's clone: found and read once, then never touched again.

An agent or a pull request can plant a directory that git takes for a repository, with settings
that run programs.  So git never searches for the repository: this module does, by rules that a
pull request cannot satisfy, and copies what git needs into a git directory of our own, the
*view*.  The view has the clone's commits, branches and tags, but our settings and no hooks.  All
later calls use the view.
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
from typing import NamedTuple, Self

from ci_eval.runtime.git import GitError, Repository
from ci_eval.runtime.isolation import belongs_to_agents

_MAX_SMALL = 64 * 1024
_MAX_LIST = 256 * 1024 * 1024
"""The largest git files that are read, in bytes: pointers, and lists of refs and commits."""
_CONFIG_FILES = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM")
_CONFIG_HOMES = ("HOME", "XDG_CONFIG_HOME", "USERPROFILE")
"""Variables that name the user's settings files, and directories with such files."""
_USER_SCOPES = ("system", "global", "command")
"""The scopes of settings outside of the clone, as `git config --show-scope` names them."""
_ONE_SETTING = re.compile(r"GIT_CONFIG_(KEY|VALUE)_[0-9]+")
_FORMAT_KEYS = ("core.repositoryformatversion", "extensions.objectformat")
_FILE_KEYS = (
    *("core.autocrlf", "core.eol", "core.filemode", "core.ignorecase"),
    *("core.precomposeunicode", "core.symlinks"),
)
"""Settings that the view copies from the clone: the object format, and how to compare files of the
work tree with objects.  None of them names a program or a file."""


_FETCHED = "fetched.git"


class Setting(NamedTuple):
    """One git setting."""

    key: str
    value: str
    is_users: bool
    """Whether it comes from the user's files or the job's variables, not from the clone."""


@dataclass(frozen=True)
class _NoClone(Repository):
    """Replaces the view if there is no clone."""

    reason: str = ""

    def run(self, *args: str, **_: object) -> bytes:
        """Raise `GitError` with the reason."""
        del args
        raise GitError(self.reason)


@dataclass(frozen=True)
class _Found:
    """The data read from a clone."""

    view: Repository
    top: Path | None = None
    common: Path | None = None
    head: str | None = None
    branch: str | None = None
    settings: tuple[Setting, ...] = ()


class Clone:
    """The clone that contains a folder, if any.

    The search happens on first use only.
    """

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self.folder = Path(os.path.normpath(folder.absolute()))
        self.env = env

    @classmethod
    def without_git(cls, top: Path | None) -> Self:
        """Return a clone of which only the top is known, as on another machine."""
        clone = cls(top or Path(os.devnull), {})
        clone.__dict__["_found"] = _Found(_NoClone(clone.folder, {}, reason="not read"), top=top)
        return clone

    @property
    def view(self) -> Repository:
        """Our own git directory; without a clone, every command fails."""
        return self._found.view

    @property
    def missing(self) -> str:
        """Why there is no clone; empty if there is one."""
        view = self._found.view
        return view.reason if isinstance(view, _NoClone) else ""

    @property
    def top(self) -> Path | None:
        """The folder of the work tree; `None` without a clone."""
        return self._found.top

    @property
    def common(self) -> Path | None:
        """The clone's own git directory; for a linked work tree, that of the main one."""
        return self._found.common

    @property
    def head(self) -> str | None:
        """The commit that is checked out, if any."""
        return self._found.head

    @property
    def branch(self) -> str | None:
        """The branch that is checked out, if any."""
        return self._found.branch

    @property
    def settings(self) -> tuple[Setting, ...]:
        """All settings in effect in the clone; the last one of a name wins."""
        return self._found.settings

    @cached_property
    def is_shallow(self) -> bool:
        """Whether it lacks older commits."""
        return self.view.query("rev-parse", "--is-shallow-repository") == "true"

    @property
    def is_partial(self) -> bool:
        """Whether it is a partial clone, for which git fetches missing objects on demand."""
        return any(each.key.endswith(".promisor") for each in self.settings)

    @cached_property
    def is_unchanged(self) -> bool:
        """Whether all tracked files are as in the commit that is checked out."""
        # In a submodule git would run with the settings found in its folder.
        options = ("--porcelain", "--untracked-files=no", "--ignore-submodules=all")
        try:
            return not self.view.run("status", *options)
        except GitError:
            return False

    @property
    def fetched(self) -> Path:
        """A repository beside our view that shares its objects with the view; may be missing."""
        return self.view.git_dir / _FETCHED

    def add_root(self, commit: str) -> None:
        """Record that the view has `commit` but not its parents, as in a shallow clone."""
        with (self.view.git_dir / "shallow").open("a", encoding="ascii") as file:
            file.write(f"{commit}\n")

    def look(self) -> None:
        """Find and read the clone now, before any code of the repository runs."""
        _ = self._found

    def inside(self, path: str) -> str:
        """Return a file's path as git writes it: relative to the top, separated by `/`.

        `path` is relative to the folder where the search for the clone began.

        Raises:
            GitError: there is no clone, or the file is outside of it.

        """
        if self.top is None:
            self.view.run()
        full = Path(os.path.normpath(self.folder / path))
        top = self.top or full
        # The clone may be reached through a symlink, which the real path of a file does not use.
        for each in (top, top.resolve()):
            if full.is_relative_to(each):
                return full.relative_to(each).as_posix()
        raise GitError(f"{path} is outside of the repository")

    @cached_property
    def _found(self) -> _Found:
        try:
            found = _read(self.folder, self.env)
        except (GitError, OSError) as exc:
            return _Found(_NoClone(self.folder, self.env, reason=str(exc)))
        weakref.finalize(self, shutil.rmtree, found.view.git_dir, ignore_errors=True)
        return found


NO_CLONE = Clone(Path(os.devnull), {})
"""The default of a `RunContext` whose clone was not searched for."""


def top_of(folder: Path) -> Path | None:
    """Return the top of the work tree that contains `folder`, if any.

    That is the nearest folder with an entry `.git`, which no commit can contain.  The entry must
    be owned by us, by root, or by the owner of its folder, and neither may be owned by the account
    of agents.  A folder that merely looks like a bare repository is ignored, as a pull request can
    contain one.
    """
    found = _nearest(folder)
    return found[0] if found else None


def from_top(path: Path) -> str:
    """Return a file's path from the top of its work tree, else from the working directory.

    Unlike `Clone.inside`, it also serves files that are in no clone.
    """
    return Path(os.path.relpath(path, top_of(path.parent) or Path.cwd())).as_posix()


def _nearest(folder: Path) -> tuple[Path, Path] | None:
    """Return the top of the nearest work tree, and its git directory."""
    folder = Path(os.path.normpath(folder.absolute()))
    found = ((up, git_dir_in(up)) for up in (folder, *folder.parents))
    return next(((up, git_dir) for up, git_dir in found if git_dir), None)


def git_dir_in(folder: Path) -> Path | None:
    """Return the git directory of the work tree or submodule whose top is `folder`, if any."""
    entry = folder / ".git"
    git_dir = _git_dir(entry) if _is_trusted(entry) else None
    return git_dir if git_dir and _is_trusted(git_dir) and _is_git_dir(git_dir) else None


def _is_trusted(path: Path) -> bool:
    if sys.platform == "win32":  # where agents run as our own user
        return path.exists()
    if belongs_to_agents(path) or belongs_to_agents(path.parent):
        return False
    try:
        owner = path.lstat().st_uid
        return owner in (os.geteuid(), 0, path.parent.stat().st_uid)
    except OSError:
        return False


def _git_dir(entry: Path) -> Path | None:
    """Return the git directory of an entry `.git`: itself, or the one that it names."""
    if entry.is_dir():
        return entry
    named = _read_text(entry).strip().removeprefix("gitdir: ")
    return Path(os.path.normpath(entry.parent / named)) if named else None


def _is_git_dir(path: Path) -> bool:
    holds_objects = (path / "objects").exists() or (path / "commondir").exists()
    return holds_objects and (path / "HEAD").is_file()


def _read_text(path: Path, limit: int = _MAX_SMALL) -> str:
    """Return the text of a regular file; empty for other files, or above `limit` bytes."""
    try:
        # Opening a pipe must not block until another process writes to it.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
                return ""
            return file.read(limit).decode(errors="surrogateescape")
    except OSError:
        return ""


def _read(folder: Path, env: Mapping[str, str]) -> _Found:
    nearest = _nearest(folder)
    if nearest is None:
        raise GitError(f"{folder} is not in a git repository")
    top, git_dir = _of_job(*nearest) if env.get("CI") else nearest
    shared = _read_text(git_dir / "commondir").strip()
    common = Path(os.path.normpath(git_dir / shared)) if shared else git_dir
    # The only git command on the clone itself.  It opens no object: git would fetch a missing one
    # with programs that the clone's settings name.
    settings = tuple(_settings(git_dir, top, env))
    view = Path(tempfile.mkdtemp(prefix="ci-eval-git-"))
    _make_view(view, git_dir, common, settings)
    extra = {
        "GIT_OBJECT_DIRECTORY": str(common / "objects"),
        "GIT_INDEX_FILE": str(git_dir / "index"),
        "GIT_WORK_TREE": str(top),
    }
    extra["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = str(view / _FETCHED / "objects")
    repository = Repository(view, env, extra)
    name = repository.query("symbolic-ref", "--quiet", "HEAD").removeprefix("refs/heads/")
    return _Found(repository, top, common, repository.commit("HEAD"), name or None, settings)


def _of_job(top: Path, git_dir: Path) -> tuple[Path, Path]:
    """Return the work tree that a CI job is about, given the nearest one.

    It is not a submodule, which a pull request can put in place of a folder.
    """
    outer = _nearest(top.parent)
    if outer is None or not git_dir.is_relative_to(outer[1] / "modules"):
        return top, git_dir
    return _of_job(*outer)


def _settings(git_dir: Path, top: Path, env: Mapping[str, str]) -> Iterator[Setting]:
    """Yield all settings, including those of included files, where checkouts keep their tokens.

    Files in the work tree never count as the user's, even if a variable names them.
    """
    extra = {key: env.get(key) for key in ("GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_COUNT")}
    extra |= {key: _outside(env.get(key), top, os.devnull) for key in _CONFIG_FILES}
    extra |= {key: None for key in _CONFIG_HOMES if _outside(env.get(key), top, None) is None}
    extra |= {key: value for key, value in env.items() if _ONE_SETTING.fullmatch(key)}
    listed = Repository(git_dir, env, extra).run(
        *("config", "--list", "-z", "--show-scope", "--includes"), remote=True
    )
    fields = listed.decode(errors="surrogateescape").split("\0")
    for scope, entry in zip(fields[::2], fields[1::2], strict=False):
        key, _, value = entry.partition("\n")
        yield Setting(key, value, scope in _USER_SCOPES)


def _outside(path: str | None, top: Path, instead: str | None) -> str | None:
    inside = path and Path(os.path.realpath(path)).is_relative_to(os.path.realpath(top))
    return instead if inside else path


def _make_view(view: Path, git_dir: Path, common: Path, settings: tuple[Setting, ...]) -> None:
    known = {each.key: each.value for each in settings}
    if known.get("extensions.refstorage", "files") != "files":
        message = "has a ref storage format that ci-eval does not support"
        raise GitError(f"{common} {message}; run `git refs migrate --ref-format=files`")
    (view / "objects").mkdir()
    for folder, _, names in os.walk(common / "refs"):  # follows no symlinks
        target = view / Path(folder).relative_to(common)
        target.mkdir()
        for name in names:
            _write(target / name, _read_text(Path(folder, name)))
    (view / "info").mkdir()
    for name in ("HEAD", "packed-refs", "shallow", "info/attributes"):
        if text := _read_text((git_dir if name == "HEAD" else common) / name, _MAX_LIST):
            _write(view / name, text)
    kept = [(key, known[key]) for key in (*_FORMAT_KEYS, *_FILE_KEYS) if key in known]
    _write(view / "config", "".join(_line(key, value) for key, value in kept))


def _line(key: str, value: str) -> str:
    section, _, name = key.partition(".")
    quoted = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'[{section}]\n\t{name} = "{quoted}"\n'


def _write(path: Path, text: str) -> None:
    path.write_bytes(text.encode(errors="surrogateescape"))
