"""Git commands: the only module that runs git.

Each call names its repository in `GIT_DIR`, so git does not search for one, and has only the
settings that the call passes: no settings files of the user and no variables of the job.  After
`clone` has read the user's repository, git runs only in repositories whose settings we wrote.
"""

import logging
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from ci_eval.runtime.isolation import kill_group

_log = logging.getLogger(__name__)

TIMEOUT_S = 60
NETWORK_TIMEOUT_S = 120
"""Timeouts of local commands, and of those that access a remote; only reached if one hangs."""
_INHERITED = ("SYSTEMROOT", "TMPDIR", "TEMP", "TMP")
_INHERITED_FOR_REMOTES = (
    *("HOME", "XDG_CONFIG_HOME", "USERPROFILE", "HOMEDRIVE", "HOMEPATH"),
    *("SSH_AUTH_SOCK", "SSH_ASKPASS", "GIT_ASKPASS", "GIT_SSH", "GIT_SSH_COMMAND"),
    *("GH_TOKEN", "GITHUB_TOKEN", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"),
    *("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("https_proxy", "http_proxy", "all_proxy", "no_proxy"),
    *("GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "SSL_CERT_FILE", "SSL_CERT_DIR"),
)
"""More variables for commands that access a remote; credential helpers need them."""
_FIXED = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    # Without `ext::`, whose addresses name programs to run.
    "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",
    "LC_ALL": "C",
}
_ALWAYS = (
    *("-c", "safe.bareRepository=explicit", "-c", "core.hooksPath=" + os.devnull),
    *("-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false"),
)
_MAX_ERROR_CHARS = 500
"""How much of git's error message is quoted, in characters."""
_ADVICE = ("hint:", "warning:")
_LOGIN = re.compile(r"://[^/@\s]+@")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


class GitError(Exception):
    """A git command failed; the message is git's, on one line and without credentials."""


@dataclass(frozen=True)
class Repository:
    """A repository, given by its git directory."""

    git_dir: Path
    env: Mapping[str, str]
    """The environment of this process, of which git gets a few variables."""
    extra: Mapping[str, str | None] = field(default_factory=dict)
    """Git's own variables, such as `GIT_INDEX_FILE`; `None` removes a default one."""

    def run(
        self,
        *args: str,
        given: bytes | None = None,
        remote: bool = False,
        into: IO[bytes] | None = None,
    ) -> bytes:
        """Run a git command; return its output, or write it `into` a file and return nothing.

        `given` is its standard input; a `remote` command accesses another repository.

        Raises:
            GitError: it failed or timed out, or git is not installed.

        """
        limit = NETWORK_TIMEOUT_S if remote else TIMEOUT_S
        try:
            process = subprocess.Popen(  # noqa: S603  # git itself; names are arguments
                [_program(self.env), *_ALWAYS, *args],
                cwd=self.git_dir if self.git_dir.is_dir() else self.git_dir.parent,
                env=self._environment(remote=remote),
                stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
                stdout=into or subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            out, err = _finish(process, given, limit)
        except subprocess.TimeoutExpired as exc:
            raise GitError(f"git {args[0]} timed out after {limit} s") from exc
        except OSError as exc:
            raise GitError(f"cannot start git: {exc.strerror or exc}") from exc
        except ValueError as exc:  # a name with U+0000 or a lone surrogate
            raise GitError(f"git {args[0]}: the name has invalid characters") from exc
        _log.debug("git %s: exit code %d", " ".join(args), process.returncode)
        if process.returncode:
            message = _error_message(err)
            raise GitError(message or f"git {args[0]} exited with code {process.returncode}")
        return out or b""

    def query(self, *args: str) -> str:
        """Return the output of a git command as text; empty if it failed."""
        try:
            return self.run(*args).decode(errors="replace").strip()
        except GitError:
            return ""

    def commit(self, name: str) -> str | None:
        """Resolve `name` to a commit, or return `None`."""
        return self._resolved(f"{name}^{{commit}}") or None

    def holds(self, name: str) -> bool:
        """Return True if the object exists, even if a partial clone lacks it."""
        return bool(self._resolved(name))

    def _resolved(self, name: str) -> str:
        return self.query("rev-parse", "--verify", "--quiet", "--end-of-options", name)

    def parents(self, commit: str) -> Sequence[str]:
        """Return the parents of a commit, even those that a shallow clone lacks."""
        head = self.query("cat-file", "commit", commit).partition("\n\n")[0]
        return re.findall("^parent (.+)$", head, re.MULTILINE)

    def first_parents(self, start: str, limit: int) -> tuple[str, ...]:
        """Return `start` and its ancestors along first parents, at most `limit` in all."""
        most = f"--max-count={limit}"
        found = self.query("rev-list", "--first-parent", most, "--end-of-options", start, "--")
        return tuple(found.split())

    def copy(self, blob: str, to: Path, *, most: int, remote: bool = False) -> None:
        """Write a blob of at most `most` bytes to a file.

        Raises:
            GitError: it is larger, not a blob, or not available.

        """
        size = int(self.run("cat-file", "-s", blob, remote=remote))
        if size > most:
            raise GitError(f"it is larger than {most >> 20} MiB")
        with to.open("wb") as file:
            self.run("cat-file", "blob", blob, remote=remote, into=file)

    def _environment(self, *, remote: bool) -> dict[str, str]:
        names = (*_INHERITED, *(_INHERITED_FOR_REMOTES if remote else ()))
        found = {key: self.env[key] for key in names if key in self.env}
        place = {"GIT_DIR": str(self.git_dir), "PATH": os.pathsep.join(_folders(self.env))}
        # Only commands that may access a remote fetch missing objects.
        fixed = _FIXED if remote else {**_FIXED, "GIT_NO_LAZY_FETCH": "1"}
        variables = {**found, **fixed, **place, **self.extra}
        return {key: value for key, value in variables.items() if value is not None}


def _folders(env: Mapping[str, str]) -> Sequence[str]:
    """Return the folders of PATH, without those relative to the working directory."""
    return [each for each in env.get("PATH", "").split(os.pathsep) if Path(each).is_absolute()]


def _program(env: Mapping[str, str]) -> str:
    """Return the path of git.

    Windows would search the working directory first, where a pull request can put a `git.exe`.
    """
    name = "git.exe" if sys.platform == "win32" else "git"
    found = (Path(folder, name) for folder in _folders(env))
    path = next((each for each in found if os.access(each, os.X_OK) and each.is_file()), None)
    if path is None:
        raise GitError("git is not installed, or not on the PATH")
    return str(path)


def _finish(
    process: "subprocess.Popen[bytes]", given: bytes | None, limit: float
) -> tuple[bytes, bytes]:
    """Wait for a command; on a timeout or an interrupt, kill it and its children."""
    with process:
        try:
            return process.communicate(given, timeout=limit)
        except BaseException:
            kill_group(process.pid, process.kill)
            raise


def _error_message(err: bytes) -> str:
    """Return git's error message on one line, without advice, logins and control characters."""
    lines = err.decode(errors="replace").splitlines()
    kept = " ".join(line.strip() for line in lines if not line.startswith(_ADVICE))
    return _CONTROL.sub(" ", _LOGIN.sub("://", kept)).strip()[:_MAX_ERROR_CHARS]
