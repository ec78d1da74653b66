"""Digests of the code that a run evaluates; a resumed run reuses results of the same code only."""

import hashlib
import os
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from ci_eval.run.plan import Plan
from ci_eval.runtime.clone import Clone
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.git import GitError
from ci_eval.text.fingerprint import fingerprint

_CHUNK_BYTES = 1 << 20
_WITHOUT_EFFECT: Mapping[str, set[str] | bool] = {
    **dict.fromkeys(("threads", "workers", "start_timeout_s"), True),
    "models": {
        *("mode", "max_calls", "max_cost_usd", "max_calls_per_trial", "max_cost_usd_per_trial"),
        *("requests_per_minute", "tokens_per_minute", "prices"),
    },
}
"""Options for the speed, the limits and the counting of an agent."""


def code_digests(plan: Plan, context: RunContext) -> dict[str, str]:
    """Return a digest of each agent: of its options, and of the tracked files of the repository.

    Options without effect on the answers do not count.
    """
    files = _digest_of_files(plan, context)
    agents = plan.config.agents.items()
    options = {name: each.model_dump(mode="json", exclude=_WITHOUT_EFFECT) for name, each in agents}
    return {name: fingerprint([files, each]) for name, each in options.items()}


def _digest_of_files(plan: Plan, context: RunContext) -> str:
    """Return a digest of the tracked files of the repository; empty if there is none.

    The configuration and evalsets do not count: results of criteria are never reused, and each
    case has a fingerprint of its own.  Untracked files do not count either: agents may write them.
    """
    clone = context.clone
    if clone.head is None:
        return ""
    shown = [plan.config.shown, *(each.opened.header.path for each in plan.evalsets.values())]
    try:
        beside = {path for each in shown for path in _path(clone, each)}
        listed = clone.view.run("ls-tree", "-r", "-z", "--full-tree", clone.head).split(b"\0")
        options = ("--porcelain", "-z", "--no-renames", "--untracked-files=no")
        changed = clone.view.run("status", *options, "--ignore-submodules=all").split(b"\0")
    except GitError:
        return ""
    digest = hashlib.sha256()
    for entry in filter(None, listed):
        if not _is_beside(entry.partition(b"\t")[2], beside):
            digest.update(entry)
    for path in (entry[3:] for entry in changed if entry):
        if not _is_beside(path, beside):
            digest.update(path)
            for chunk in _content(Path(clone.top or "", os.fsdecode(path))):
                digest.update(chunk)
    return digest.hexdigest()[:32]


def _is_beside(path: bytes, beside: Container[bytes]) -> bool:
    """Return True if a file does not count; bytecode is derived from its source."""
    return path in beside or path.endswith(b".pyc")


def _path(clone: Clone, shown: str) -> Iterator[bytes]:
    """Yield the path by which git knows a file; nothing if it is not in the repository."""
    with suppress(GitError):
        yield os.fsencode(clone.inside(os.path.abspath(shown)))  # noqa: PTH100  # a link stays one


def _content(path: Path) -> Iterator[bytes]:
    """Yield the content of a file of the work tree; of a link, its target."""
    try:
        if path.is_symlink():
            yield os.fsencode(path.readlink())
        elif path.is_file():
            with path.open("rb") as file:
                yield from iter(lambda: file.read(_CHUNK_BYTES), b"")
    except OSError as exc:
        yield str(exc).encode()
