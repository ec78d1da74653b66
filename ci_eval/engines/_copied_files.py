"""Selection of the files of a folder that are copied to other machines."""

import os
import re
from collections.abc import Iterator
from fnmatch import translate
from pathlib import Path

_PRIVATE = (".env*", "gha-creds-*.json", ".git", ".ci-eval")
_LOCAL = (".venv", "venv", "node_modules", "__pycache__")
_NEVER = re.compile("|".join(map(translate, (*_PRIVATE, *_LOCAL))))
"""Names of files and folders that hold secrets, or that only make sense on one machine."""


def mirror(folder: Path, copy: Path, *, left_out: Path) -> Iterator[str]:
    """Fill the new folder `copy` with links to the files of `folder`; yield the paths left out.

    Links that do not lead to a file in `folder` are left out: a pull request could add a link to
    a secret of this machine, and links to folders may form a cycle.  Paths that are never copied,
    such as the folder `left_out`, are not yielded.
    """
    yield from _mirror(folder.resolve(), Path(), copy, left_out.resolve())


def _mirror(root: Path, inner: Path, copy: Path, left_out: Path) -> Iterator[str]:
    """Make the links for the folder `inner` of `root`, recursively."""
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
    """Return the file that an entry is or links to, if it is in `root` and may be copied."""
    if not entry.is_symlink():
        return Path(entry.path) if entry.is_file() else None
    try:
        real = Path(entry.path).resolve()
        inner = real.relative_to(root)
    except (OSError, RuntimeError, ValueError):  # a cycle, or a link out of the folder
        return None
    return real if real.is_file() and not any(map(_NEVER.match, inner.parts)) else None


def _is_text(name: str) -> bool:
    """Return True if a name can be sent."""
    return name.isascii() or name.encode(errors="replace").decode() == name
