"""What the outside gives to those who may not look for themselves."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ci_eval.runtime.clone import NO_CLONE, Clone


@dataclass(frozen=True)
class RunContext:
    """What the outside gives: the environment, the folder, the clock."""

    env: Mapping[str, str]
    """The environment of this process, as `cli` read it."""
    root: Path
    """The folder of the configuration; relative paths in it start here."""
    now: Callable[[], float]
    """Seconds since the epoch."""
    folder: str = ""
    """The same folder as the user named it; empty where that is the current one."""
    job: str = ""
    """What CI calls the job that this runs in; empty where nothing tells."""
    say: Callable[[str], None] = lambda _: None
    """Tells whoever watches what goes on, in one line."""
    clone: Clone = NO_CLONE
    """The clone that `root` belongs to; found by itself if left out."""

    def __post_init__(self) -> None:
        """Look for the clone, once somebody asks about it."""
        if self.clone is NO_CLONE:
            object.__setattr__(self, "clone", Clone(self.root, self.env))

    def shown(self, given: str) -> str:
        """Return what the user calls the file that the configuration calls `given`."""
        return os.path.normpath(Path(self.folder) / given)
