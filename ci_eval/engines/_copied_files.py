"""The files of a folder that other machines get a copy of."""

import os
import re
from collections.abc import Iterator
from fnmatch import translate
from pathlib import Path

_NEVER = re.compile(
    "|".join(
        map(
            translate,
            (
                *(".env*", "gha-creds-*.json", ".git", ".ci-eval"),
                *(".venv", "venv", "node_modules", "__pycache__"),
            ),
        )
    )
)
"""Names of files and folders with secrets, or with what belongs to one machine."""


def mirror(folder: Path, copy: Path, *, left_out: Path) -> Iterator[str]:
    """Make `copy` a folder of links to the files of `folder`, and yield the paths it lacks.

    It lacks links that lead to no file in `folder`: a pull request could make one to a secret of
    this machine, and a link to a folder may lead in circles.  What is never copied, such as the
    folder `left_out`, is not yielded.
    """
    yield from _mirror(folder.resolve(), Path(), copy, left_out.resolve())


def _mirror(root: Path, inner: Path, copy: Path, left_out: Path) -> Iterator[str]:
    """Make the links in the folder `inner` of `root`, and in those in it."""
    (copy / inner).mkdir()
    with os.scandir(root / inner) as entries:
        found = [each for each in entries if not _NEVER.match(each.name)]
    for entry in found:
        path = inner / entry.name
        if entry.is_dir(follow_symlinks=False) and _is_text(entry.name):
            if root / path != left_out:
                yield from _mirror(root, path, copy, left_out)
        elif _is_text(entry.name) and (file := _file(entry, root)):
            (copy / path).symlink_to(file)
        else:
            yield str(path)


def _file(entry: os.DirEntry[str], root: Path) -> Path | None:
    """Return the file in `root` that an entry is, or leads to, if it may be copied."""
    if not entry.is_symlink():
        return Path(entry.path) if entry.is_file() else None
    try:
        real = Path(entry.path).resolve()
        inner = real.relative_to(root)
    except (OSError, RuntimeError, ValueError):  # it leads in circles, or out of the folder
        return None
    return real if real.is_file() and not any(map(_NEVER.match, inner.parts)) else None


def _is_text(name: str) -> bool:
    """Return True if a name is one that can be sent."""
    return name.isascii() or name.encode(errors="replace").decode() == name
