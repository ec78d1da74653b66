"""Checks of paths in a configuration or on the command line."""

import os
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from ci_eval.records.errors import UsageError
from ci_eval.runtime.clone import top_of
from ci_eval.runtime.isolation import account, belongs_to_agents
from ci_eval.text.suggest import CLOSE

MAX_NAME = 255
"""The longest file name of common file systems, in bytes."""
MAX_PATH = 3000
"""The longest path in a configuration, in bytes: Linux allows 4,096 including the folder."""
MAX_SHOWN = 100
"""How many characters of an overlong path are shown."""


def contained(root: Path, given: str, *, written: bool = False) -> Path:
    """Resolve the path `given` in a configuration, relative to `root`, and check where it leads.

    A pull request can write the configuration, and files read for it may be shown or sent away.
    So no path may lead into `.git`, or out of the repository through a symlink.  In the container,
    no path may lead out of the repository at all, as the runner's tokens and command files are
    outside.  A file to be `written` must not be in a folder created by an agent, which could
    replace the file by a symlink.

    Raises:
        UsageError: the path is invalid, or leads to a forbidden place.

    """
    path, top, is_outside = _resolved(root, given)
    if is_outside and account() is not None:
        message = "is outside of the repository, which is not allowed in the container"
        raise UsageError(message, file=given)
    if written:
        _refuse_agents_folders(path, top, given)
    return path


def similar_path(root: Path, given: str) -> str:
    """Return the end of a message: the existing path that is probably meant, or a broken link."""
    if (root / given).is_symlink():
        return ": the link leads nowhere"
    found = _similar(root, Path(given))
    return f". Did you mean {str(found)!r}?" if found else ""


def _similar(root: Path, given: Path) -> Path | None:
    folder = given.parent
    try:
        beside = contained(root, str(folder)).iterdir()
        names = [str(folder / each.name) for each in beside if each.suffix == given.suffix]
    except (OSError, UsageError):
        found = _similar(root, folder) if folder.name else None
        return _similar(root, found / given.name) if found else None
    close = get_close_matches(str(given), names, n=1, cutoff=CLOSE)
    return Path(close[0]) if close else None


def refuse_file(folder: str) -> None:
    """Reject an output folder that is a file.

    Raises:
        UsageError: it is a file.

    """
    if Path(folder).is_file():
        raise UsageError("is a file; name a folder", file=folder)


def refuse_links_out(*given: str | None) -> None:
    """Reject output paths, relative to the working directory, that a symlink redirects.

    Raises:
        UsageError: a path leads out of the repository, or into `.git`.

    """
    for each in given:
        if each is not None:
            path, top, _ = _resolved(Path.cwd(), each)
            _refuse_agents_folders(path, top, each)


def _resolved(root: Path, given: str) -> tuple[Path, Path, bool]:
    """Return the path, the top of the repository, and whether the path is outside of it."""
    if fault := path_error(given):
        shown = given if len(given) <= MAX_SHOWN else given[:MAX_SHOWN] + "…"
        raise UsageError(fault, file=shown)
    top = top_of(root) or Path(os.path.normpath(root))
    path = Path(os.path.normpath(root / given))
    try:
        resolved, resolved_top = path.resolve(), top.resolve()
    except (OSError, ValueError, RuntimeError) as exc:  # a link to itself, in some Pythons
        raise UsageError("is a symlink that cannot be resolved", file=given) from exc
    is_outside = not resolved.is_relative_to(resolved_top)
    if is_outside and path.is_relative_to(top):
        raise UsageError("is a symlink out of the repository", file=given)
    within = resolved.parts if is_outside else resolved.relative_to(resolved_top).parts
    if any(part.lower() == ".git" for part in within):
        raise UsageError("is in a .git folder", file=given)
    return path, top, is_outside


def _refuse_agents_folders(path: Path, top: Path, given: str) -> None:
    for folder in path.parents:
        if folder != top and folder.is_relative_to(top) and belongs_to_agents(folder):
            message = "is in a folder created by an agent, which could redirect it"
            raise UsageError(message, file=given)


def path_error(given: str) -> str:
    """Return why `given` is not a valid path; empty if it is."""
    if "\0" in given:
        return "is not a path: it contains U+0000"
    data = given.encode(errors="surrogatepass")
    if max(map(len, data.split(b"/"))) > MAX_NAME:
        return f"is not a path: a name in it is longer than {MAX_NAME} bytes"
    return f"is not a path: it is longer than {MAX_PATH} bytes" if len(data) > MAX_PATH else ""


def _checked_path(given: str) -> str:
    fault = path_error(given)
    if fault:
        raise ValueError(fault)
    return given


PathText = Annotated[str, Field(min_length=1), AfterValidator(_checked_path)]
"""A valid file path in a configuration."""
