"""Workspace permissions while agents run in it as a separate user.

Agents may create files in the folder of the configuration, and find no secrets in or around the
workspace.  As root, this module only uses folder descriptors and follows no symlinks, so that a
checked file cannot be replaced before it is changed.
"""

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from ci_eval.records.errors import UsageError
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.isolation import Account, as_root, end_all
from ci_eval.runtime.path_checks import contained

OURS = ".ci-eval"
"""Our folder for files, beside the configuration."""
MAX_FILE = 1024 * 1024
"""The largest file that is copied for agents because a variable names it, in bytes."""


@contextmanager
def agent_workspace(
    context: RunContext, files: Mapping[str, Path], *, writable: bool = True
) -> Iterator[RunContext]:
    """Let agents create files in the folder of the configuration, but find no secrets around it.

    If the folder is not `writable`, they cannot create files there.

    `files` maps variables that agents get to the files that they name.  If agents cannot read a
    file, the variable in the returned `RunContext` names a temporary copy.  Agents cannot change
    existing files in the folder.  At the end, their processes are killed, and the group of the
    folder may change and remove the files that agents created.

    Raises:
        UsageError: a file cannot be copied, or `.ci-eval` or an entry of it is a symlink out of
            the repository.
        MachineError: an agent's process cannot be killed; closed folders then stay closed.

    """
    ours = contained(context.root, OURS)
    for entry in ours.iterdir() if ours.is_dir() else ():
        contained(context.root, f"{OURS}/{entry.name}")
    agent = context.agent_account
    if agent is None:
        yield context
        return
    ours.mkdir(exist_ok=True)
    with ExitStack() as stack:
        # Read with our own permissions, never as root, before folders are closed.
        contents = {name: _content(name, path) for name, path in files.items()}
        with as_root():
            for path in _private(context):
                _set_mode(path, remove=stat.S_IRWXO, stack=stack)
            if writable:
                _set_mode(context.root, add=stat.S_IRWXO | stat.S_ISVTX, stack=stack)
            copies = {
                name: _copied(files[name].name, content, agent, context.root, stack)
                for name, content in contents.items()
                if not _all_may_read(files[name])
            }
        try:
            yield replace(context, env={**context.env, **copies})
        finally:
            closed = stack.pop_all()  # folders stay closed if a process survives
            end_all(agent)
            with as_root(), closed:
                for problem in _hand_over(context.root, agent):
                    shown = context.shown(".")
                    context.say(f"cannot take over the agents' files in {shown}: {problem}")


# --- What agents must not read ----------------------------------------------------------------


def _private(context: RunContext) -> Iterator[Path]:
    """Yield the folders that may hold tokens, which agents must not read.

    The checkout leaves a token in `.git` or in the runner's temporary folder, and login steps
    leave theirs in the home folder.
    """
    env = context.env
    for name in ("HOME", "RUNNER_TEMP"):
        if env.get(name, "").startswith("/github/"):
            yield Path(env[name])
    if env.get("GITHUB_OUTPUT", "").startswith("/github/"):
        yield Path(env["GITHUB_OUTPUT"]).parent  # command files
    if project := env.get("CI_PROJECT_DIR"):
        yield Path(f"{project}.tmp")  # GitLab's file variables
    yield from (folder / ".git" for folder in context.root.parents)
    tops = {env.get("GITHUB_WORKSPACE"), env.get("CI_PROJECT_DIR"), context.clone.top, context.root}
    for top in {Path(each) for each in tops if each}:
        yield from _git_folders(top)


def _git_folders(top: Path) -> Iterator[Path]:
    """Yield every `.git` folder below `top`, such as those of submodules and other checkouts."""
    for folder, names, _ in os.walk(top):  # follows no symlinks, and skips what it cannot read
        for name in [each for each in names if each.lower() == ".git"]:
            names.remove(name)
            yield Path(folder, name)


def _set_mode(path: Path, *, add: int = 0, remove: int = 0, stack: ExitStack) -> None:
    """Change the mode of a folder, if it exists, until the stack is closed."""
    if sys.platform == "win32":
        return
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return
    stack.callback(os.close, descriptor)
    before = stat.S_IMODE(os.fstat(descriptor).st_mode)
    after = (before | add) & ~remove
    if after != before:
        os.fchmod(descriptor, after)
        stack.callback(os.fchmod, descriptor, before)


# --- What agents must read --------------------------------------------------------------------


def _all_may_read(path: Path) -> bool:
    try:
        modes = [each.stat().st_mode for each in (path, *path.parents)]
    except OSError:
        return True  # nothing to copy
    return bool(modes[0] & stat.S_IROTH) and all(mode & stat.S_IXOTH for mode in modes[1:])


def _content(name: str, path: Path) -> bytes:
    """Return the content of a file that a variable names; agents are only isolated on Linux.

    Raises:
        UsageError: it is too large, a symlink, or not readable by us.

    """
    if sys.platform == "win32":
        return b""
    shown = f"{name} names {str(path)!r} for agents, which"
    hint = "name a regular file that the owner of the workspace can read, without symlinks"
    if os.path.realpath(path) != os.path.normpath(path) or path.is_relative_to("/proc"):
        raise UsageError(f"{shown} is a symlink", hint=hint)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            content = file.read(MAX_FILE + 1)
    except OSError as exc:
        raise UsageError(f"{shown} cannot be read: {exc.strerror}", hint=hint) from exc
    if len(content) > MAX_FILE:
        raise UsageError(f"{shown} has more than {MAX_FILE >> 20} MiB", hint=hint)
    return content


def _copied(name: str, content: bytes, agent: Account, root: Path, stack: ExitStack) -> str:
    """Write a copy for agents and us, until the stack is closed; return its path."""
    if sys.platform == "win32":
        return name
    folder = Path(tempfile.mkdtemp(prefix="ci-eval-"))
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    copy = folder / name
    copy.write_bytes(content)
    group = root.stat().st_gid
    for each, mode in ((copy, 0o440), (folder, 0o550)):
        each.chmod(mode)
        os.chown(each, agent.uid, group)
    return str(copy)


# --- What agents leave ------------------------------------------------------------------------


def _hand_over(root: Path, agent: Account) -> Iterator[str]:
    """Let the group of `root` change and remove the files that agents created in it.

    Yield the failures with their reasons; they do not affect the verdict.
    """
    if sys.platform != "linux":
        return
    try:
        descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as exc:
        yield f"{root}: {exc.strerror}"
        return
    try:
        group = os.fstat(descriptor).st_gid
        with os.scandir(descriptor) as entries:
            names = [each.name for each in entries]
        for name in names:
            try:
                _give_tree(name, descriptor, agent, group)
            except (OSError, RecursionError) as exc:
                yield f"{name!r}: {getattr(exc, 'strerror', None) or type(exc).__name__}"
    finally:
        os.close(descriptor)


def _give_tree(top: str, parent: int, agent: Account, group: int) -> None:
    if sys.platform != "linux":
        return
    status = os.lstat(top, dir_fd=parent)
    if status.st_uid != agent.uid:
        return
    _give(top, parent, agent, group)
    if stat.S_ISDIR(status.st_mode):
        for _, folders, files, descriptor in os.fwalk(top, dir_fd=parent, follow_symlinks=False):
            for name in (*folders, *files):
                _give(name, descriptor, agent, group)


def _give(name: str, parent: int, agent: Account, group: int) -> None:
    """Give the group the account's permissions on an entry of a folder."""
    if sys.platform != "linux":
        return
    descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=parent)
    try:
        status = os.fstat(descriptor)
        if status.st_uid != agent.uid:  # a hard link to another user's file
            return
        os.chown(name, -1, group, dir_fd=parent, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            return
        owners = status.st_mode & stat.S_IRWXU
        if stat.S_ISDIR(status.st_mode):
            owners = stat.S_IRWXU  # else its entries could not be removed
        # No set-user-ID bit; others keep their permissions.
        mode = owners | owners >> 3 | status.st_mode & 0o007
        Path(f"/proc/self/fd/{descriptor}").chmod(mode)
    finally:
        os.close(descriptor)
