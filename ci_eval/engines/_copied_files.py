"""The files of a folder that other machines get a copy of."""

import os
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

_NEVER = (
    *(".env*", "gha-creds-*.json", ".git", ".ci-eval"),
    *(".venv", "venv", "node_modules", "__pycache__"),
)
"""Names of files and folders with secrets, or with what belongs to one machine."""


def mirror(folder: Path, copy: Path, *, left_out: Path) -> Iterator[str]:
    """Make `copy` a folder of links to the files of `folder`, and yield the paths it lacks.

    It lacks links that lead to no file in `folder`: a pull request could make one to a secret of
    this machine, and a link to a folder may lead in circles.  What is never copied, such as the
    folder `left_out`, is not yielded.
    """
    root, left_out = folder.resolve(), left_out.resolve()
    for place, folders, files in os.walk(root):
        here, there = Path(place), copy / Path(place).relative_to(root)
        there.mkdir()
        inner = [name for name in folders if not (_is_never(name) or here / name == left_out)]
        links = [name for name in inner if (here / name).is_symlink()]
        folders[:] = [name for name in inner if name not in links]
        for name in files:
            if _is_never(name):
                continue
            if (real := _file(here / name, root)) is None:
                links.append(name)
            else:
                (there / name).symlink_to(real)
        yield from (str((here / name).relative_to(root)) for name in links)


def _file(path: Path, root: Path) -> Path | None:
    """Return the file in `root` that a path leads to, if that may be copied."""
    try:
        real = path.resolve() if path.is_symlink() else path
        is_inside = real.is_relative_to(root) and real.is_file()
    except (OSError, RuntimeError):  # it leads in circles
        return None
    hidden = is_inside and any(map(_is_never, real.relative_to(root).parts))
    return real if is_inside and not hidden else None


def _is_never(name: str) -> bool:
    return any(fnmatchcase(name, each) for each in _NEVER)
