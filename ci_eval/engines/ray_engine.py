"""Trials on a cluster of Ray."""

import asyncio
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from ci_eval import __version__
from ci_eval.plugins.engine import Engine, LostError, Task
from ci_eval.plugins.points import engine
from ci_eval.records.errors import TrialError, UsageError
from ci_eval.runtime.context import RunContext
from ci_eval.text.sanitize import one_line

_REACHED_S = 10.0
"""How long to wait for the head of a cluster to accept a connection."""
_SHOWN_CHARS = 300
_NEVER_COPIED = (".env*", ".git", ".ci-eval", ".venv", "venv", "node_modules", "__pycache__")
_INSTALL = "install it in the Python of ci-eval: `pip install 'ci-eval[ray]'`"


@engine("ray")
class Ray(Engine):
    """Trials run in tasks on a Ray cluster that is already running.

    Each machine needs the same versions of ci-eval, Ray and Python (3.x) as the machine that runs
    `ci-eval`, which must be part of the cluster.  Agents that have processes run there; recordings,
    agents that wait for a server, and cases with a simulated user stay with ci-eval.
    """

    address: str = "auto"
    """`host:port` of the head; `auto`: the cluster that this machine belongs to, or the one that
    `RAY_ADDRESS` names."""
    cpus: float = Field(default=1.0, ge=0, le=1000)
    """CPUs that each task reserves; `run.concurrency` / `per_task` tasks run at a time."""
    per_task: int = Field(default=8, ge=1, le=1000)
    """Maximum number of concurrent trials in one task."""
    upload: bool = True
    """Whether machines get a copy of the folder of the configuration, without what its
    `.gitignore` names. Set `false` if all machines see the folder at the same path."""
    exclude: tuple[str, ...] = ()
    """More files that are not copied, as patterns like those in a `.gitignore`. Never copied:
    `.env*`, `.git`, `.ci-eval`, environments of Python and Node, and the output directory."""
    start_timeout_s: float = Field(default=300.0, gt=0, le=86_400)
    """How long to wait until the cluster runs the first task."""

    @field_validator("address")
    @classmethod
    def _is_no_client(cls, value: str) -> str:
        if "://" in value:
            raise ValueError(
                "must be `auto` or `host:port`; Ray Client is not supported: run ci-eval on a "
                "machine of the cluster, or by `ray job submit`"
            )
        return value

    @asynccontextmanager
    async def start(
        self, context: RunContext, folders: Sequence[Path], *, left_out: Path
    ) -> AsyncIterator["_Cluster"]:
        """Connect to the cluster, and run a first task; leaving the context disconnects."""
        ray = _imported()
        await self._reach(context.env)
        with _staged(folders if self.upload else ()) as stage:
            inside = (each for each in folders if left_out.is_relative_to(each))
            own = (f"/{folders.index(each)}/{left_out.relative_to(each)}" for each in inside)
            excludes = [*_NEVER_COPIED, *self.exclude, *own]
            self._connect(ray, {"working_dir": str(stage), "excludes": excludes})
            try:
                cluster = _Cluster(ray, self, tuple(folders))
                await cluster.check()
                yield cluster
            finally:
                ray.shutdown()

    async def _reach(self, env: Mapping[str, str]) -> None:
        """Check that something listens at the address: Ray would try for minutes, then exit."""
        address = env.get("RAY_ADDRESS", "auto") if self.address == "auto" else self.address
        if address == "auto":
            return
        host, _, port = address.rpartition(":")
        try:
            async with asyncio.timeout(_REACHED_S):
                _, writer = await asyncio.open_connection(host, int(port))
        except (OSError, ValueError) as exc:
            reason = str(exc) or "no answer"
            raise _unreachable(address, reason) from None
        writer.close()

    def _connect(self, ray: Any, runtime_env: Mapping[str, Any]) -> None:
        handler = signal.getsignal(signal.SIGTERM)
        try:
            ray.init(
                address=self.address,
                runtime_env=runtime_env,
                logging_level="ERROR",
                log_to_driver=False,
            )
        except (OSError, RuntimeError, ValueError, SystemExit, ray.exceptions.RayError) as exc:
            reason = one_line(str(exc), _SHOWN_CHARS)
            if "Version mismatch" in str(exc):
                message = f"the Ray cluster has another version of Python or Ray: {reason}"
                hint = "run ci-eval with the Python and the Ray of the cluster"
                raise UsageError(message, hint=hint) from None
            raise _unreachable(self.address, reason) from None
        finally:
            signal.signal(signal.SIGTERM, handler)


def _imported() -> Any:
    try:
        import ray
    except ImportError:
        raise UsageError("the engine 'ray' needs the package ray", hint=_INSTALL) from None
    return ray


def _unreachable(address: str, reason: str) -> UsageError:
    message = f"there is no Ray cluster at {address!r}: {reason}"
    hint = "start one, or name its head: `run: {engine: ray, address: HOST:PORT}`"
    return UsageError(message, hint=hint)


@contextmanager
def _staged(folders: Sequence[Path]) -> Iterator[Path]:
    """Yield a folder that links to all `folders`, which Ray copies as one.

    It is the only one that Ray adds to Python's path, so that nothing of the repository is
    imported into the process of a task.
    """
    with tempfile.TemporaryDirectory(prefix="ci-eval-ray-") as name:
        stage = Path(name)
        (stage / "ci-eval.txt").write_text("The folders of a run of ci-eval.\n", encoding="utf-8")
        for number, folder in enumerate(folders):
            (stage / str(number)).symlink_to(folder.absolute(), target_is_directory=True)
        yield stage


@dataclass
class _Cluster:
    """A connection to a cluster."""

    ray: Any
    options: Ray
    folders: tuple[Path, ...]

    @property
    def width(self) -> int:
        return self.options.per_task

    async def check(self) -> None:
        """Run a first task, which shows that tasks can run, and with the same ci-eval.

        Raises:
            UsageError: they cannot.

        """
        task = self._remote(num_cpus=self.options.cpus)(_versions)
        try:
            async with asyncio.timeout(self.options.start_timeout_s):
                there = await task.remote()
        except TimeoutError:
            cpus = self.ray.cluster_resources().get("CPU", 0)
            message = (
                f"the Ray cluster ran no task within {self.options.start_timeout_s:g} s; a task "
                f"needs {self.options.cpus:g} CPUs, and the cluster has {cpus:g} in all"
            )
            hint = "add machines, lower `run.cpus`, or raise `run.start_timeout_s`"
            raise UsageError(message, hint=hint) from None
        except self.ray.exceptions.RayError as exc:
            raise _unfit(exc) from None
        if there != _versions():
            message = f"the Ray cluster has ci-eval {there[0]}, but this is {__version__}"
            raise UsageError(message, hint="install the same version on all machines")

    async def run(self, task: Task, folder: Path, env: Mapping[str, str]) -> AsyncIterator[bytes]:
        """Run `task` as a task of Ray, which never retries it."""
        place = self.folders.index(folder) if self.options.upload else str(folder)
        remote = self._remote(
            num_cpus=self.options.cpus, num_returns="streaming", scheduling_strategy="SPREAD"
        )(_work)
        results = remote.remote(task, place, dict(env))
        try:
            async for each in results:
                yield await each
        except self.ray.exceptions.RayTaskError as exc:
            if isinstance(exc.cause, UsageError):
                raise exc.cause from None
            if isinstance(exc.cause, ImportError):
                raise _unfit(exc) from None
            message = f"{type(exc.cause).__name__}: {exc.cause}"
            raise TrialError("internal", message) from None
        except self.ray.exceptions.RayError as exc:
            raise LostError(one_line(str(exc), _SHOWN_CHARS)) from None

    def _remote(self, **options: Any) -> Any:
        return self.ray.remote(max_retries=0, **options)


def _unfit(exc: Exception) -> UsageError:
    reason = one_line(str(getattr(exc, "cause", None) or exc), _SHOWN_CHARS)
    message = f"the Ray cluster cannot run ci-eval: {reason}"
    hint = f"install ci-eval {__version__} in the Python of Ray on all machines"
    return UsageError(message, hint=hint)


# --- On a machine of the cluster ------------------------------------------------------------------


def _versions() -> tuple[str, int]:
    return __version__, sys.version_info.minor


def _work(task: Task, place: int | str, env: Mapping[str, str]) -> Iterator[bytes]:
    """Run a task in the folder that Ray copied, or in the one that is everywhere."""
    folder = Path(place) if isinstance(place, str) else Path.cwd() / str(place)
    yield from task(folder, env)
