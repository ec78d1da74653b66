"""The remote of a clone: its address, and the git settings to reach it.

Everything was read with the clone, before any agent ran.  Of the clone's own settings, only those
that checkouts write are used: addresses, and the settings for HTTP.  Settings that can run programs
(credential helpers, SSH commands, rewritten addresses) are only taken from the user's
configuration.
"""

import base64
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ci_eval.records.errors import BaselineError
from ci_eval.runtime.clone import Clone, Setting

TOKENS = ("INPUT_GITHUB-TOKEN", "INPUT_GITHUB_TOKEN", "GITHUB_TOKEN")
"""Variables that may hold the workflow's token: the action's input first."""
_USER_PREFIXES = ("http.", "https.", "credential.", "ssh.", "gitproxy.")
_USER_KEYS = ("core.sshcommand", "core.askpass", "core.gitproxy")
"""User settings that determine how remotes are reached."""
_CLONE_HTTP_KEYS = ("extraheader", "sslcainfo", "sslcapath", "sslcert", "sslkey")
"""The `http.…` settings that are also taken from the clone's own settings."""
_NO_PROGRAMS = (
    *("-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false"),
    *("-c", "core.alternateRefsCommand=:", "-c", "receive.autogc=false"),
)
"""Options for a push into the clone itself that keep its settings from starting programs."""
_MAX_SHOWN = 5
_Settings = list[tuple[str, str]]


@dataclass(frozen=True)
class Remote:
    """How a second repository reaches the same remote as the clone."""

    shown: str
    settings: Mapping[str, str]
    """Variables with git's settings, which keep credentials out of command lines."""
    object_format: str = "sha1"
    """The hash function of the remote."""
    fetch_options: tuple[str, ...] = ()
    push_options: tuple[str, ...] = ()
    clone: str = ""
    """The git directory of the clone, if it is a different repository."""
    is_clone: bool = False
    """Whether it is the clone itself."""

    @property
    def clone_options(self) -> tuple[str, ...]:
        """The options of a fetch from the clone."""
        return _local_options(self.clone, "upload-pack")

    @classmethod
    def of(cls, clone: Clone, name: str) -> "Remote":
        """Return the remote `name` of the clone, or the clone itself if it has no remotes.

        Raises:
            BaselineError: there is no clone, or it has remotes but not this one.

        """
        if clone.common is None:
            message = f"a baseline in a branch needs a git repository: {clone.missing}"
            hint = "run in a git repository (`git init` creates one), or use `store: file`"
            raise BaselineError(message, hint=hint)
        known = {each.key: each.value for each in reversed(clone.settings)}  # the first one counts
        object_format = known.get("extensions.objectformat", "sha1")
        names = [
            key.removeprefix("remote.").removesuffix(".url")
            for key in dict.fromkeys(each.key for each in clone.settings)
            if key.startswith("remote.") and key.endswith(".url")
        ]
        if names and name not in names:
            found = ", ".join(map(repr, names[:_MAX_SHOWN]))
            raise BaselineError(f"there is no remote {name!r}; found {found}")
        own = str(clone.common)
        if not names:
            fetch = _local_options(own, "upload-pack")
            push = _local_options(own, "receive-pack", *_NO_PROGRAMS)
            given = _variables([("remote.data.url", own)])
            return cls(
                "this clone, which has no remote", given, object_format, fetch, push, is_clone=True
            )
        url = _address(clone, _rewritten(clone, known[f"remote.{name}.url"], "insteadof"))
        push_url = _address(clone, _push_url(clone, known, name))
        settings = [("remote.data.url", url), ("remote.data.pushurl", push_url)]
        settings += [(each.key, each.value) for each in clone.settings if _is_used(each)]
        for each in dict.fromkeys((url, push_url)):
            settings += _token_setting(clone, each, settings)
        fetch, push = _local_options(url, "upload-pack"), _local_options(push_url, "receive-pack")
        return cls(repr(name), _variables(settings), object_format, fetch, push, own)


def _push_url(clone: Clone, known: Mapping[str, str], name: str) -> str:
    if given := known.get(f"remote.{name}.pushurl"):
        return _rewritten(clone, given, "insteadof")
    url = known[f"remote.{name}.url"]
    rewritten = _rewritten(clone, url, "pushinsteadof")
    return rewritten if rewritten != url else _rewritten(clone, url, "insteadof")


def _rewritten(clone: Clone, url: str, kind: str) -> str:
    """Return `url`, rewritten by the user's setting with the longest matching prefix.

    See `url.<base>.insteadOf` in git-config(1).
    """
    found = [
        (each.value, each.key.removeprefix("url.").removesuffix(f".{kind}"))
        for each in clone.settings
        if each.is_users and each.key.startswith("url.") and each.key.endswith(f".{kind}")
    ]
    fitting = [(old, new) for old, new in found if url.startswith(old)]
    if not fitting:
        return url
    old, new = max(fitting, key=lambda pair: len(pair[0]))
    return new + url.removeprefix(old)


def _address(clone: Clone, url: str) -> str:
    """Return the address of a remote; a path relative to the clone becomes absolute."""
    if ":" in url or Path(url).is_absolute():
        return url
    return os.path.normpath((clone.top or clone.folder) / url)


def _local_options(url: str, verb: str, *options: str) -> tuple[str, ...]:
    """Return the options of a fetch or push with a local repository; none for a remote one.

    This repository is trusted whoever owns it, but for this call only.
    """
    path = unquote(urlsplit(url).path) if url.startswith("file://") else url
    if not Path(path).is_absolute():
        return ()
    spellings = dict.fromkeys((path, os.path.realpath(path)))
    trusted = [f"safe.directory={each}{end}" for each in spellings for end in ("", "/.git")]
    given = [word for each in trusted for word in ("-c", each)]
    return (f"--{verb}={shlex.join(['git', *given, *options, verb])}",)


def _is_used(setting: Setting) -> bool:
    """Return True if a setting determines how remotes are reached."""
    if setting.is_users:
        return setting.key.startswith(_USER_PREFIXES) or setting.key in _USER_KEYS
    return setting.key.startswith("http.") and setting.key.rpartition(".")[2] in _CLONE_HTTP_KEYS


def _token_setting(clone: Clone, url: str, settings: _Settings) -> Iterator[tuple[str, str]]:
    """Yield the setting that sends the workflow's token to GitHub, if there is no other login."""
    token = next((clone.env[name] for name in TOKENS if clone.env.get(name)), None)
    server = (clone.env.get("GITHUB_SERVER_URL") or "https://github.com").rstrip("/")
    try:
        found, wanted = urlsplit(url), urlsplit(server)
    except ValueError:
        return
    repository = replace(clone.view, extra=_variables(settings))
    has_login = found.password or repository.query(
        "config", "--get-urlmatch", "http.extraheader", url
    )
    # Host and port must match, and the token is only sent encrypted.
    host = found.netloc.rpartition("@")[2].lower()
    if token and found.scheme == "https" and host == wanted.netloc.lower() and not has_login:
        login = base64.b64encode(f"x-access-token:{token}".encode()).decode()
        yield f"http.https://{host}/.extraheader", f"AUTHORIZATION: basic {login}"


def _variables(settings: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return settings as environment variables of git."""
    # No background maintenance in a directory that is about to be deleted.
    settings = [*settings, ("gc.auto", "0"), ("maintenance.auto", "false")]
    found = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings):
        found |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return found


_PERMANENT_ERRORS = {
    "exempt the branch from the rules that protect branches": (
        *("gh006", "gh013", "protected branch"),
    ),
    "choose a branch that is not checked out on the remote": ("checked out branch",),
    "remove `squash`, or allow the remote to rewrite the branch": ("denying non-fast-forward",),
    "give the job `permissions: {contents: write}`": (
        *("returned error: 403", "permission to ", "write access", "not accessible by integration"),
    ),
    "check out with `persist-credentials: true`, or set `GITHUB_TOKEN`": (
        *("could not read username", "could not read password", "authentication failed"),
        *("returned error: 401", "permission denied (publickey", "repository not found"),
    ),
    "check the address that `git remote -v` shows": (
        *("does not appear to be a git repository", "unable to find remote helper"),
        *("transport '", "returned error: 404"),
    ),
}
"""Parts of git's messages, in lower case, about errors that no retry fixes, by hint."""


def permanent_error_hint(said: str, *, writing: bool) -> str | None:
    """Return the hint for an error that no retry fixes; `None` for other errors."""
    lower = said.lower()
    for hint, signs in _PERMANENT_ERRORS.items():
        if any(sign in lower for sign in signs):
            return hint if writing else hint.replace("contents: write", "contents: read")
    return None
