"""Paths that a configuration or a user names, and where they may lead."""

import os
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from ci_eval.records.errors import Problem, UsageError
from ci_eval.runtime.clone import top_of
from ci_eval.runtime.isolation import account, belongs_to_agents

MAX_NAME = 255
"""The longest name of a file, in bytes, as usual file systems have it."""
MAX_PATH = 3000
"""The longest path in a configuration, in bytes: Linux takes 4,096, and the folder counts."""
MAX_SHOWN = 100
"""How much of a path is shown that is too long, in characters."""


def contained(root: Path, given: str, *, written: bool = False) -> Path:
    """Return the path `given` of a configuration, from `root`, unless it leads where it must not.

    A pull request writes the configuration, and what is read for it can be shown or sent away.  So
    no path leads into git's own folder, and none out of the repository through a link.  Where
    agents are kept apart from us, in the container, none leads out of it at all: there lie the
    runner's tokens and command files.  What is `written` is in no folder that an agent made, which
    could put a link in its place.

    Raises:
        UsageError: it does, or `given` is no path.

    """
    meant, inside, is_out = _resolved(root, given)
    if is_out and account() is not None:
        message = "is outside of the repository, where nothing is read or written in the container"
        raise UsageError(problems=[Problem(message, given)])
    if written:
        _refuse_folders_of_agents(meant, inside, given)
    return meant


def refuse_links_out(*given: str | None) -> None:
    """Refuse outputs, by their paths from the working directory, that a link leads elsewhere.

    Raises:
        UsageError: it leads out of the repository, or into git's own folder.

    """
    for each in given:
        if each is not None:
            meant, inside, _ = _resolved(Path.cwd(), each)
            _refuse_folders_of_agents(meant, inside, each)


def _resolved(root: Path, given: str) -> tuple[Path, Path, bool]:
    """Return a path, the top of the repository, and whether the path is outside of it."""
    if fault := fault_of_path(given):
        shown = given if len(given) <= MAX_SHOWN else given[:MAX_SHOWN] + "…"
        raise UsageError(problems=[Problem(fault, shown)])
    inside = top_of(root) or Path(os.path.normpath(root))
    meant = Path(os.path.normpath(root / given))
    try:
        resolved, top = meant.resolve(), inside.resolve()
    except (OSError, ValueError, RuntimeError) as exc:  # a link to itself, in some Pythons
        raise UsageError(problems=[Problem("leads nowhere", given)]) from exc
    is_out = not resolved.is_relative_to(top)
    if is_out and meant.is_relative_to(inside):
        raise UsageError(problems=[Problem("is a link that leads out of the repository", given)])
    within = resolved.parts if is_out else resolved.relative_to(top).parts
    if any(part.lower() == ".git" for part in within):
        raise UsageError(problems=[Problem("is in git's own folder", given)])
    return meant, inside, is_out


def _refuse_folders_of_agents(meant: Path, inside: Path, given: str) -> None:
    for folder in meant.parents:
        if folder != inside and folder.is_relative_to(inside) and belongs_to_agents(folder):
            message = "is in a folder that an agent made, which could have it lead elsewhere"
            raise UsageError(problems=[Problem(message, given)])


def fault_of_path(given: str) -> str:
    """Return why no file can have the path `given`; empty where one can."""
    if "\0" in given:
        return "is not a path: no path holds U+0000"
    data = given.encode(errors="surrogatepass")
    if max(map(len, data.split(b"/"))) > MAX_NAME:
        return f"is not a path: no name in it may be longer than {MAX_NAME} bytes"
    return f"is not a path: it is longer than {MAX_PATH} bytes" if len(data) > MAX_PATH else ""


def _checked_path(given: str) -> str:
    fault = fault_of_path(given)
    if fault:
        raise ValueError(fault)
    return given


PathText = Annotated[str, Field(min_length=1), AfterValidator(_checked_path)]
"""A path in a configuration, of a file that may exist."""
