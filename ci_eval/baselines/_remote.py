"""The remote of a repository: where it is, and what it takes to get in."""

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ci_eval.errors import BaselineError
from ci_eval.git import GitError, Repository

TOKENS = ("INPUT_GITHUB-TOKEN", "INPUT_GITHUB_TOKEN", "GITHUB_TOKEN")
"""Where a workflow may have put a token, first the action's input."""
_HANDED_ON = ("http.", "https.", "credential.", "ssh.", "protocol.", "gitproxy.")
_HANDED_ON_TOO = ("core.sshcommand", "core.askpass", "core.gitproxy")
"""Settings that say how remotes are reached."""
_SENDING, _RECEIVING = (
    f"--{verb}=git -c safe.directory=* {verb}" for verb in ("upload-pack", "receive-pack")
)
_SHOWN = 5
_LOCAL = ("/", "file://")
"""A repository on the same machine is trusted, whoever owns it, as the user's own is."""


@dataclass(frozen=True)
class Remote:
    """How another repository reaches the same remote as the user's."""

    shown: str
    settings: Mapping[str, str]
    """Variables that tell git what it takes: credentials stand in no command line."""
    hashing: str = "sha1"
    """How objects are named there."""
    sending: tuple[str, ...] = ()
    receiving: tuple[str, ...] = ()
    """Options of a fetch, and of a push."""

    @classmethod
    def of(cls, user: Repository, name: str) -> "Remote":
        """Return the remote `name` of the user's repository, or itself where it has no remotes.

        Raises:
            BaselineError: there is no repository, or it has only other remotes.

        """
        try:
            top = user.run("rev-parse", "--path-format=absolute", "--git-common-dir")
            own = top.decode(errors="surrogateescape").removesuffix("\n")
            names = user.run("remote").decode(errors="replace").splitlines()
        except GitError as exc:
            message = f"a baseline in a branch needs a git repository: {exc}"
            raise BaselineError(message) from exc
        hashing = user.asked("rev-parse", "--show-object-format") or "sha1"
        if names and name not in names:
            there = ", ".join(map(repr, names[:_SHOWN]))
            raise BaselineError(f"there is no remote {name!r}, only {there}")
        if not names:
            settings = [("remote.data.url", own)]
            return cls("this repository", _variables(settings), hashing, (_SENDING,), (_RECEIVING,))
        url, push_url = (_url(user, name, *more) for more in ((), ("--push",)))
        settings = [("remote.data.url", url), ("remote.data.pushurl", push_url)]
        settings += _reaching(user)
        for each in dict.fromkeys((url, push_url)):
            settings += _token(user, each)
        return cls(
            repr(name),
            _variables(settings),
            hashing,
            (_SENDING,) if url.startswith(_LOCAL) else (),
            (_RECEIVING,) if push_url.startswith(_LOCAL) else (),
        )


def _url(user: Repository, name: str, *more: str) -> str:
    """Return where a remote is; a path from the top of the user's repository as a whole one."""
    url = user.asked("remote", "get-url", *more, "--", name)
    if ":" in url or Path(url).is_absolute():
        return url
    return str(Path(user.asked("rev-parse", "--show-toplevel") or user.folder) / url)


def _reaching(user: Repository) -> Iterator[tuple[str, str]]:
    """Yield the user's settings that say how remotes are reached, in their order.

    Whichever file they stand in: what actions/checkout persists is in a file of its own, which is
    included for that one repository.
    """
    try:
        listed = user.run("config", "--list", "-z", "--includes")
    except GitError:
        return
    for entry in listed.decode(errors="surrogateescape").split("\0"):
        key, _, value = entry.partition("\n")
        if key.startswith(_HANDED_ON) or key in _HANDED_ON_TOO:
            yield key, value


def _token(user: Repository, url: str) -> Iterator[tuple[str, str]]:
    """Yield the setting that sends the workflow's token to GitHub, if nothing else is set."""
    token = next((user.env[name] for name in TOKENS if user.env.get(name)), None)
    server = (user.env.get("GITHUB_SERVER_URL") or "https://github.com").rstrip("/")
    try:
        there, wanted = urlsplit(url), urlsplit(server)
    except ValueError:
        return
    has_login = there.password or user.asked("config", "--get-urlmatch", "http.extraheader", url)
    # Compared as a whole, port and all, and never sent where it could be read on the way.
    place = there.netloc.rpartition("@")[2].lower()
    if token and there.scheme == "https" and place == wanted.netloc.lower() and not has_login:
        login = base64.b64encode(f"x-access-token:{token}".encode()).decode()
        yield f"http.https://{place}/.extraheader", f"AUTHORIZATION: basic {login}"


def _variables(settings: list[tuple[str, str]]) -> dict[str, str]:
    """Return settings as variables, beside which those of files do not count."""
    # Nothing tidies up in the background, in a folder that is about to go.
    settings = [*settings, ("gc.auto", "0"), ("maintenance.auto", "false")]
    found = {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_COUNT": str(len(settings)),
    }
    for number, (key, value) in enumerate(settings):
        found |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return found


_HOPELESS = {
    "exempt the branch from the rules that protect branches": (
        *("gh006", "gh013", "protected branch"),
    ),
    "choose a branch that is not checked out there": ("checked out branch",),
    "leave `squash` out, or let the branch be rewritten there": ("denying non-fast-forward",),
    "give the job `permissions: {contents: write}`": (
        *("returned error: 403", "permission to ", "write access", "not accessible by integration"),
    ),
    "check out with `persist-credentials: true`, or hand on `GITHUB_TOKEN`": (
        *("could not read username", "could not read password", "authentication failed"),
        *("returned error: 401", "permission denied (publickey", "repository not found"),
    ),
    "see where `git remote -v` leads": (
        *("does not appear to be a git repository", "unable to find remote helper"),
        *("transport '", "returned error: 404"),
    ),
}
"""What git says where trying again cannot help, in small letters, by the way out."""


def hopeless(said: str, *, writing: bool) -> str | None:
    """Return the way out where trying again cannot help, after what git said; else `None`."""
    lower = said.lower()
    for way_out, signs in _HOPELESS.items():
        if any(sign in lower for sign in signs):
            return way_out if writing else way_out.replace("contents: write", "contents: read")
    return None
