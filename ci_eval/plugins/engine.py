"""Extension point of engines: the machines on which trials are run."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

from ci_eval.plugins.plugin import Plugin
from ci_eval.runtime.context import RunContext

Task = Callable[[Path, Mapping[str, str]], Iterator[bytes]]
"""Work that another process does and that can be pickled.

It takes the path that a folder has there, and environment variables, and yields its results.
"""


class LostError(Exception):
    """The process or the machine of a task died, so the rest of its results never comes."""


class Cluster(Protocol):
    """Machines, ready to run tasks."""

    @property
    def width(self) -> int:
        """The number of trials that one task runs at a time."""

    def run(self, task: Task, folder: Path, env: Mapping[str, str]) -> AsyncIterator[bytes]:
        """Run `task` once on a machine, and yield its results as they come.

        `folder` is one of those that the engine was started with.  `env` holds secrets: it goes
        to the process of the task, and neither to a log nor to a file.

        Raises:
            LostError: the process or the machine died; the engine itself retries nothing.
            TrialError: the task raised an error.
            UsageError: no machine can run tasks of this run.

        """


class Engine(Plugin):
    """Where trials are run."""

    @abstractmethod
    def start(
        self, context: RunContext, folders: Sequence[Path], *, left_out: Path
    ) -> AbstractAsyncContextManager[Cluster | None]:
        """Connect to the machines; `None` if all trials run in processes of this one.

        The agents are in `folders`, one for each arm, of which `left_out` is never copied.

        Raises:
            UsageError: the machines cannot be reached, or cannot run ci-eval.

        """
