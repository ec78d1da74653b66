"""What the repository says of itself, by asking git."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

TIMEOUT_S = 60
NETWORK_TIMEOUT_S = 120
"""How long git may take, and where it talks to a remote; so long that only what hangs is ended."""
_HANDED_ON = (
    *("PATH", "HOME", "SYSTEMROOT", "TMPDIR", "XDG_CONFIG_HOME"),
    *("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"),
)
"""What git gets of the environment; no variable tells it of another repository."""
_SETTING = re.compile(r"GIT_CONFIG_(COUNT|KEY_[0-9]+|VALUE_[0-9]+)")
"""Settings that are handed on in the environment, as those are that nobody else may read."""
_TO_REMOTES = (
    *("SSH_AUTH_SOCK", "SSH_ASKPASS", "GIT_ASKPASS", "GIT_SSH", "GIT_SSH_COMMAND"),
    *("GH_TOKEN", "GITHUB_TOKEN", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"),
    *("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("https_proxy", "http_proxy", "all_proxy", "no_proxy"),
    *("GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "SSL_CERT_FILE", "SSL_CERT_DIR"),
)
"""What it gets besides where it talks to a remote, and its credential helpers with it."""
_SAID_CHARS = 500
"""How much is quoted of what git said."""
_ADVICE = ("hint:", "warning:")
_LOGIN = re.compile(r"://[^/@\s]+@")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


class GitError(Exception):
    """A git command that failed, with what git said of it, in one line without credentials."""


@dataclass(frozen=True)
class Repository:
    """The repository that a folder belongs to, if it belongs to one.

    The folder is trusted for each single call, because in a container it belongs to another
    user.  Nothing here touches the work tree, the index or HEAD.
    """

    folder: Path
    env: Mapping[str, str]
    extra: Mapping[str, str] = field(default_factory=dict)
    """Variables of git itself, such as `GIT_INDEX_FILE`, and settings."""

    def run(
        self,
        *args: str,
        given: bytes | None = None,
        remote: bool = False,
        into: IO[bytes] | None = None,
    ) -> bytes:
        """Return what a git command prints, or write it `into` a file and return nothing.

        `given` is its standard input; `remote` says that it talks to another repository.

        Raises:
            GitError: it failed, took too long, or there is no git.

        """
        # What may watch the work tree is a program that the repository's settings name.
        trusted = ("-c", "safe.directory=*", "-c", "core.fsmonitor=false")
        command = ["git", *trusted, "-C", str(self.folder), *args]
        limit = NETWORK_TIMEOUT_S if remote else TIMEOUT_S
        try:
            process = subprocess.Popen(  # noqa: S603  # git itself; what is named is an argument
                command,
                env=self._environment(remote=remote),
                stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
                stdout=into or subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            out, err = _finish(process, given, limit)
        except subprocess.TimeoutExpired as exc:
            raise GitError(f"git {args[0]} was not done after {limit} s") from exc
        except OSError as exc:
            raise GitError(f"git cannot be started: {exc.strerror or exc}") from exc
        except ValueError as exc:  # a name with U+0000, or with half a character
            raise GitError(f"git {args[0]} cannot be asked about such a name") from exc
        if process.returncode:
            raise GitError(_said(err) or f"git {args[0]} ended with {process.returncode}")
        return out or b""

    def asked(self, *args: str) -> str:
        """Return what a git command prints, in one piece of text; nothing where it failed."""
        try:
            return self.run(*args).decode(errors="replace").strip()
        except GitError:
            return ""

    def commit(self, name: str) -> str | None:
        """Return the commit that `name` stands for; `None` where there is none."""
        return (
            self.asked("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
            or None
        )

    def parents(self, commit: str) -> Sequence[str]:
        """Return the parents that a commit names, those too that a shallow clone does not hold."""
        head = self.asked("cat-file", "commit", commit).partition("\n\n")[0]
        return [
            line.removeprefix("parent ") for line in head.splitlines() if line.startswith("parent ")
        ]

    def first_parents(self, start: str, limit: int) -> tuple[str, ...]:
        """Return `start` and its ancestors along first parents, at most `limit` in all."""
        return tuple(
            self.asked(
                "rev-list",
                "--first-parent",
                f"--max-count={limit}",
                "--end-of-options",
                start,
                "--",
            ).split()
        )

    def copy(self, blob: str, to: Path, *, most: int, remote: bool = False) -> None:
        """Write the blob that `blob` names into a file, unless it has more than `most` bytes.

        Raises:
            GitError: it has, or is no blob, or cannot be had.

        """
        size = int(self.run("cat-file", "-s", blob, remote=remote))
        if size > most:
            raise GitError(f"it is longer than {most >> 20} MiB")
        with to.open("wb") as file:
            self.run("cat-file", "blob", blob, remote=remote, into=file)

    def _environment(self, *, remote: bool) -> dict[str, str]:
        names = (*_HANDED_ON, *(_TO_REMOTES if remote else ()))
        found = {key: self.env[key] for key in names if key in self.env}
        found |= {key: value for key, value in self.env.items() if _SETTING.fullmatch(key)}
        quiet = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
        return {**found, **quiet, **self.extra}


def _finish(
    process: "subprocess.Popen[bytes]", given: bytes | None, limit: float
) -> tuple[bytes, bytes]:
    """Wait for a command; one that is not waited for any longer ends with all it started."""
    with process:
        try:
            return process.communicate(given, timeout=limit)
        except BaseException:
            if sys.platform == "win32":
                process.kill()
            else:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            raise


def _said(err: bytes) -> str:
    """Return what git said, in one line, without advice, logins and control characters."""
    lines = err.decode(errors="replace").splitlines()
    kept = " ".join(line.strip() for line in lines if not line.startswith(_ADVICE))
    return _CONTROL.sub(" ", _LOGIN.sub("://", kept)).strip()[:_SAID_CHARS]
