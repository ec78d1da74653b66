"""What the repository says of itself, by asking git."""

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

TIMEOUT_S = 10
NETWORK_TIMEOUT_S = 120
"""How long git may take where it talks to a remote."""
_HANDED_ON = ("PATH", "HOME", "SYSTEMROOT", "TMPDIR", "XDG_CONFIG_HOME")
"""What git gets of the environment; no variable tells it of another repository."""
_TO_REMOTES = (
    "SSH_AUTH_SOCK",
    "GIT_SSH_COMMAND",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "https_proxy",
    "http_proxy",
    "no_proxy",
    "GIT_SSL_CAINFO",
    "SSL_CERT_FILE",
)
"""What it gets besides where it talks to a remote."""


class GitError(Exception):
    """A git command that failed, with what git said of it."""


@dataclass(frozen=True)
class Repository:
    """The repository that a folder belongs to, if it belongs to one.

    The folder is trusted for each single call, because in a container it belongs to another
    user.  Nothing here touches the work tree, the index or HEAD.
    """

    folder: Path
    env: Mapping[str, str]
    extra: Mapping[str, str] = field(default_factory=dict)
    """Variables of git itself, such as `GIT_INDEX_FILE`, and credentials."""

    def run(self, *args: str, given: bytes | None = None, remote: bool = False) -> bytes:
        """Return what a git command prints.

        `given` is its standard input; `remote` says that it talks to another repository.

        Raises:
            GitError: it failed, took too long, or there is no git.

        """
        names = (*_HANDED_ON, *(_TO_REMOTES if remote else ()))
        env = {key: self.env[key] for key in names if key in self.env}
        env |= {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", **self.extra}
        command = ["git", "-c", "safe.directory=*", "-C", str(self.folder), *args]
        try:
            done = subprocess.run(  # noqa: S603  # git itself; what is named is an argument
                command,
                env=env,
                input=given,
                stdin=None if given is not None else subprocess.DEVNULL,
                capture_output=True,
                timeout=NETWORK_TIMEOUT_S if remote else TIMEOUT_S,
                check=False,
            )
        except OSError as exc:
            raise GitError(f"git cannot be started: {exc.strerror or exc}") from exc
        except subprocess.TimeoutExpired as exc:
            raise GitError(f"git {args[0]} was not done after {exc.timeout:g} s") from exc
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()
            raise GitError(said or f"git {args[0]} ended with {done.returncode}")
        return done.stdout

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
