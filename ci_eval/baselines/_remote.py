"""The remote of a clone: where it is, and how it is reached.

All of it was read with the clone, before any agent ran.  A clone's own settings count as far as
checkouts write them: addresses, and what HTTP needs.  What runs programs (credential helpers, SSH
commands, rewritten addresses) counts only in the user's settings.
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
"""Variables that may hold the workflow's token, first the action's input."""
_OF_USER = ("http.", "https.", "credential.", "ssh.", "gitproxy.")
_OF_USER_TOO = ("core.sshcommand", "core.askpass", "core.gitproxy")
"""Settings of the user that say how remotes are reached."""
_OF_CLONE = ("extraheader", "sslcainfo", "sslcapath", "sslcert", "sslkey")
"""Those of the settings `http.…` that count in the clone's own settings, too."""
_WITHOUT_HOOKS = (
    *("-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false"),
    *("-c", "core.alternateRefsCommand=:", "-c", "receive.autogc=false"),
)
"""Options of a push into the clone itself: no setting of it starts a program."""
_SHOWN = 5
_Settings = list[tuple[str, str]]


@dataclass(frozen=True)
class Remote:
    """How another repository reaches the same remote as the clone."""

    shown: str
    settings: Mapping[str, str]
    """Variables that hold git's settings: no credentials stand in a command line."""
    hashing: str = "sha1"
    """The hash function that names objects there."""
    sending: tuple[str, ...] = ()
    receiving: tuple[str, ...] = ()
    """Options of a fetch, and of a push."""

    @classmethod
    def of(cls, clone: Clone, name: str) -> "Remote":
        """Return the remote `name` of the clone, or the clone itself if it has no remotes.

        Raises:
            BaselineError: there is no clone, or it has only other remotes.

        """
        if clone.common is None:
            message = f"a baseline in a branch needs a git repository: {clone.missing}"
            raise BaselineError(message)
        known = {each.key: each.value for each in reversed(clone.settings)}  # the first one counts
        hashing = known.get("extensions.objectformat", "sha1")
        names = [
            key.removeprefix("remote.").removesuffix(".url")
            for key in dict.fromkeys(each.key for each in clone.settings)
            if key.startswith("remote.") and key.endswith(".url")
        ]
        if names and name not in names:
            there = ", ".join(map(repr, names[:_SHOWN]))
            raise BaselineError(f"there is no remote {name!r}, only {there}")
        if not names:
            own = str(clone.common)
            sending, receiving = _at(own, "upload-pack"), _at(own, "receive-pack", *_WITHOUT_HOOKS)
            given = _variables([("remote.data.url", own)])
            return cls("this repository", given, hashing, sending, receiving)
        url = _address(clone, _instead(clone, known[f"remote.{name}.url"], "insteadof"))
        push_url = _address(clone, _push_url(clone, known, name))
        settings = [("remote.data.url", url), ("remote.data.pushurl", push_url)]
        settings += _reaching(clone)
        for each in dict.fromkeys((url, push_url)):
            settings += _token(clone, each, settings)
        return cls(
            repr(name),
            _variables(settings),
            hashing,
            _at(url, "upload-pack"),
            _at(push_url, "receive-pack"),
        )


def _push_url(clone: Clone, known: Mapping[str, str], name: str) -> str:
    if given := known.get(f"remote.{name}.pushurl"):
        return _instead(clone, given, "insteadof")
    url = known[f"remote.{name}.url"]
    rewritten = _instead(clone, url, "pushinsteadof")
    return rewritten if rewritten != url else _instead(clone, url, "insteadof")


def _instead(clone: Clone, url: str, kind: str) -> str:
    """Return `url` as the user has it rewritten, by the longest beginning that fits.

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
    """Return the address of a remote; a path from the top of the clone as a whole one."""
    if ":" in url or Path(url).is_absolute():
        return url
    return os.path.normpath((clone.top or clone.folder) / url)


def _at(url: str, verb: str, *options: str) -> tuple[str, ...]:
    """Return the option of a fetch or push with a repository on this machine; none for others.

    Whoever owns it, exactly this repository is trusted for exactly this call, as the user's own.
    """
    path = unquote(urlsplit(url).path) if url.startswith("file://") else url
    if not Path(path).is_absolute():
        return ()
    spellings = dict.fromkeys((path, os.path.realpath(path)))
    trusted = [f"safe.directory={each}{end}" for each in spellings for end in ("", "/.git")]
    given = [word for each in trusted for word in ("-c", each)]
    return (f"--{verb}={shlex.join(['git', *given, *options, verb])}",)


def _reaching(clone: Clone) -> Iterator[tuple[str, str]]:
    """Yield the settings that say how remotes are reached, in their order."""
    for each in clone.settings:
        if _counts(each):
            yield each.key, each.value


def _counts(setting: Setting) -> bool:
    if setting.is_users:
        return setting.key.startswith(_OF_USER) or setting.key in _OF_USER_TOO
    return setting.key.startswith("http.") and setting.key.rpartition(".")[2] in _OF_CLONE


def _token(clone: Clone, url: str, settings: _Settings) -> Iterator[tuple[str, str]]:
    """Yield the setting that sends the workflow's token to GitHub, if nothing else is set."""
    token = next((clone.env[name] for name in TOKENS if clone.env.get(name)), None)
    server = (clone.env.get("GITHUB_SERVER_URL") or "https://github.com").rstrip("/")
    try:
        there, wanted = urlsplit(url), urlsplit(server)
    except ValueError:
        return
    asked = replace(clone.view, extra=_variables(settings))
    has_login = there.password or asked.asked("config", "--get-urlmatch", "http.extraheader", url)
    # Compared as a whole, port and all, and never sent where it could be read on the way.
    place = there.netloc.rpartition("@")[2].lower()
    if token and there.scheme == "https" and place == wanted.netloc.lower() and not has_login:
        login = base64.b64encode(f"x-access-token:{token}".encode()).decode()
        yield f"http.https://{place}/.extraheader", f"AUTHORIZATION: basic {login}"


def _variables(settings: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return settings as variables of git."""
    # Nothing tidies up in the background, in a folder that is about to go.
    settings = [*settings, ("gc.auto", "0"), ("maintenance.auto", "false")]
    found = {"GIT_CONFIG_COUNT": str(len(settings))}
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
