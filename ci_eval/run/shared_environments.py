"""Virtual environments of the job that the base arm uses, too.

`.venv` is in no commit, so the work tree of the merge base lacks it.  If both arms have the same
dependency files, it fits both.  But it may hold code of the change: its modules, if the change was
installed into it, or whatever a change committed under its name.
"""

import os
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

from ci_eval.plugins.points import Agent
from ci_eval.records.errors import UsageError
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.workers.setup_commands import DEPENDENCY_FILES
from ci_eval.text.json_text import NotJsonError, parse_json

_MAX_LINES = 1_000
"""Maximum number of lines read from a `.pth` file."""
_INSTALLING = (
    *DEPENDENCY_FILES,
    *("*requirements*.txt", "*requirements*.in", "*constraints*.txt", "*.lock", "pylock*.toml"),
    *("Pipfile", "environment*.yml", "environment*.yaml", ".python-version", ".gitlab-ci.yml"),
)
"""Names of files that may define what a job installs."""
_REQUIREMENTS = "requirements"
_WORKFLOWS = (".github/workflows/", ".github/actions/")
"""A workflow may name packages itself."""


def share(
    agents: Iterable[Agent], change: RunContext, commit: str, tree: Path, root: Path
) -> Iterator[str]:
    """Link the environments of agents of the change into the work tree `tree` of the merge base.

    `commit` is the merge base, and `root` the folder of the configuration there.  If the
    environments import from folders of the change, as after `pip install -e .`, yields the
    corresponding folders of the merge base.

    Raises:
        GitError: the clone cannot be read.
        UsageError: an environment may not fit the merge base, or contains code of the change.

    """
    top = change.clone.top
    if change.agent_account or top is None:
        return  # agents of the change could write to it
    for folder in dict.fromkeys(map(_environment, agents)):
        here, there = (Path(os.path.normpath(each / folder)) for each in (change.root, root))
        is_inside = folder != Path() and there.is_relative_to(tree)
        if not is_inside or os.path.lexists(there) or not (here / "pyvenv.cfg").is_file():
            continue
        if _is_committed(here, change):
            continue
        way_out = "create it in the agent's `setup`, which runs for both arms"
        for name in _differing(change, commit, top, tree):
            raise UsageError(f"{name} differs, so {folder} may not fit the merge base; {way_out}")
        if _has_change(here, top):
            message = f"the change is installed in {folder}, so both arms would run it; {way_out}"
            raise UsageError(message)
        there.parent.mkdir(parents=True, exist_ok=True)
        there.symlink_to(here, target_is_directory=True)
        for path in _imported(here):
            if path.is_relative_to(top):
                yield str(tree / path.relative_to(top))


def _environment(agent: Any) -> Path:
    """Return the configured folder of an agent's shared environment; empty if it has none."""
    interpreter = Path(getattr(agent, "interpreter", None) or "")
    is_made = getattr(agent, "setup", ())  # in each work tree
    if is_made or interpreter.is_absolute() or len(interpreter.parts) < 3:
        return Path()
    return interpreter.parent.parent


def _is_committed(folder: Path, change: RunContext) -> bool:
    """Return True if the change committed files there, or where a link there leads."""
    head, top = change.clone.head, change.clone.top
    places = {folder, folder.resolve()}
    inside = [str(each.relative_to(top)) for each in places if top and each.is_relative_to(top)]
    return bool(head and inside and change.clone.view.run("ls-tree", head, "--", *inside))


def _has_change(environment: Path, top: Path) -> bool:
    """Return True if a copy of the clone's code was installed into an environment."""
    for path in environment.glob("lib*/python*/site-packages/*.dist-info/direct_url.json"):
        try:
            found = parse_json(path.read_bytes())
        except (OSError, NotJsonError):
            continue
        if isinstance(found, dict) and not (found.get("dir_info") or {}).get("editable"):
            url = str(found.get("url", ""))
            if Path(unquote(url.removeprefix("file://"))).is_relative_to(top):
                return True
    return False


def _differing(change: RunContext, commit: str, top: Path, tree: Path) -> Iterator[str]:
    """Yield the files that define what to install and differ between the change and `commit`."""
    names = {
        name
        for each in filter(None, (change.clone.head, commit))
        for name in change.clone.view.run("ls-tree", "-rz", "--name-only", each).split(b"\0")
    }
    for name in sorted(os.fsdecode(each) for each in names):
        if _says_what_to_install(name) and _content(top / name) != _content(tree / name):
            yield name


def _says_what_to_install(name: str) -> bool:
    path = PurePosixPath(name)
    in_folder = _REQUIREMENTS in path.parts[:-1] or name.startswith(_WORKFLOWS)
    return in_folder or any(fnmatchcase(path.name, each) for each in _INSTALLING)


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _imported(environment: Path) -> Iterator[Path]:
    """Yield the folders that the environment's `*.pth` files add to Python's path."""
    for path in environment.glob("lib*/python*/site-packages/*.pth"):
        try:
            lines = path.read_text(encoding="utf-8").splitlines()[:_MAX_LINES]
        except (OSError, UnicodeDecodeError):
            continue
        yield from (Path(os.path.normpath(line.strip())) for line in lines if line.startswith("/"))
