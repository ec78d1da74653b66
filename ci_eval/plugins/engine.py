"""Interface of engines: the machines that run trials."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

from ci_eval.plugins.plugin import Plugin
from ci_eval.runtime.context import RunContext

Task = Callable[[Path, Mapping[str, str]], Iterator[bytes]]
"""A picklable function that another process runs.

It takes the path of a folder in that process and environment variables, and yields results.
"""


class LostError(Exception):
    """The process or the machine of a task died; its remaining results are lost."""


class Cluster(Protocol):
    """Machines, ready to run tasks."""

    @property
    def width(self) -> int:
        """The number of trials that one task runs at a time."""

    def run(self, task: Task, folder: Path, env: Mapping[str, str]) -> AsyncIterator[bytes]:
        """Run `task` once on a machine, and yield its results as they come.

        `folder` is one of the folders passed to `start`.  `env` holds secrets: it is passed to
        the process of the task, and never to a log or a file.

        Raises:
            LostError: the process or the machine died; the engine itself retries nothing.
            TrialError: the task raised an error.
            UsageError: no machine can run tasks of this run.

        """


class Engine(Plugin):
    """The machines that run trials."""

    @abstractmethod
    def start(
        self, context: RunContext, folders: Sequence[Path], *, left_out: Path
    ) -> AbstractAsyncContextManager[Cluster | None]:
        """Connect to the machines; yield `None` if all trials run on this machine.

        `folders` hold the agents, one folder per arm; the folder `left_out` is never copied.

        Raises:
            UsageError: the machines cannot be reached, or cannot run ci-eval.

        """
