"""Trials on a Ray cluster."""

import asyncio
import pickle
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from ci_eval import __version__
from ci_eval.engines._copied_files import mirror
from ci_eval.plugins.engine import Engine, LostError, Task
from ci_eval.plugins.points import engine
from ci_eval.records.errors import TrialError, UsageError
from ci_eval.run_files.report_phrases import listed
from ci_eval.runtime.context import RunContext
from ci_eval.text.sanitize import one_line

_REACHED_S = 10.0
"""How long to wait for the head of a cluster to accept a connection."""
_SHOWN_CHARS = 300
_INSTALL = "install it in the Python of ci-eval: `pip install 'ci-eval[ray]'`"


@engine("ray")
class Ray(Engine):
    """Trials run in tasks on a Ray cluster that is already running.

    Each machine needs the same versions of ci-eval, Ray and Python (3.x) as the machine that runs
    `ci-eval`, which must be part of the cluster.  Agents that are processes run there; recordings,
    agents that wait for a server, and cases with a simulated user run where ci-eval runs.
    """

    address: str = "auto"
    """`host:port` of the head; `auto`: the cluster that this machine belongs to, or the one that
    `RAY_ADDRESS` names."""
    cpus: float = Field(default=1.0, ge=0, le=1000)
    """CPUs that each task reserves; `run.concurrency` / `per_task` tasks run at a time."""
    per_task: int = Field(default=8, ge=1, le=1000)
    """Maximum number of concurrent trials in one task."""
    upload: bool = True
    """Whether to copy the folder of the configuration, without the files that its `.gitignore`
    excludes, to the machines. Set `false` if all machines see the folder at the same path."""
    exclude: tuple[str, ...] = ()
    """More files not to copy, as `.gitignore` patterns. Never copied: `.env*`, `.git`, `.ci-eval`,
    environments of Python and Node, and the output directory."""
    start_timeout_s: float = Field(default=300.0, gt=0, le=86_400)
    """How long to wait for the cluster if it runs no task at all."""

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
        """Connect to the cluster; leaving the context disconnects."""
        ray = _imported()
        await self._reach(context.env)
        with self._staged(context, folders if self.upload else (), left_out) as stage:
            try:
                self._connect(ray, {"working_dir": str(stage)})
                yield _Cluster(ray, self, tuple(folders), time.monotonic())
            finally:
                ray.shutdown()

    @contextmanager
    def _staged(
        self, context: RunContext, folders: Sequence[Path], left_out: Path
    ) -> Iterator[Path]:
        """Yield a folder that holds all `folders`, for Ray to copy.

        Ray adds only this folder to Python's path, so that nothing in the repository is imported
        into the process of a task.
        """
        with tempfile.TemporaryDirectory(prefix="ci-eval-ray-") as name:
            stage = Path(name)
            (stage / "ci-eval.txt").write_text(
                "The folders of a run of ci-eval.\n", encoding="utf-8"
            )
            for number, folder in enumerate(folders):
                copy = stage / str(number)
                _warn(context, sorted(mirror(folder, copy, left_out=left_out)))
                _ignore(copy / ".rayignore", self.exclude)
            yield stage

    async def _reach(self, env: Mapping[str, str]) -> None:
        """Check that something listens at the address: Ray would try for minutes, then exit."""
        address = env.get("RAY_ADDRESS", "auto") if self.address == "auto" else self.address
        if address == "auto":
            return
        host, _, port = address.rpartition(":")
        if not (host and port.isascii() and port.isdecimal()):
            raise _unreachable(address, "it is not `host:port`")
        try:
            async with asyncio.timeout(_REACHED_S):
                _, writer = await asyncio.open_connection(host, int(port))
        except (OSError, OverflowError) as exc:
            raise _unreachable(address, str(exc) or "no answer") from None
        writer.close()

    def _connect(self, ray: Any, runtime_env: Mapping[str, Any]) -> None:
        handler = signal.getsignal(signal.SIGTERM)
        # Otherwise Ray prints the last log lines of a dead machine to stdout, unescaped.
        ray._private.worker._worker_logs_enabled = False  # noqa: SLF001  # no option turns it off
        try:
            ray.init(
                address=self.address,
                runtime_env=runtime_env,
                logging_level="CRITICAL",  # otherwise it logs file names
                log_to_driver=False,
            )
        except ray.exceptions.RuntimeEnvSetupError as exc:
            message = f"the folder of the configuration cannot be copied: {_gist(exc)}"
            hint = "exclude files with `run: {exclude: [data/]}`, or set `upload: false`"
            raise UsageError(message, hint=hint) from None
        except (OSError, RuntimeError, ValueError, SystemExit, ray.exceptions.RayError) as exc:
            reason = _gist(exc) or _gist(exc.__context__ or exc)
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
    hint = "start one of the same version, or name its head: `run: {address: HOST:PORT}`"
    return UsageError(message, hint=hint)


def _gist(exc: BaseException) -> str:
    return one_line(str(exc), _SHOWN_CHARS)


def _ignore(file: Path, patterns: Sequence[str]) -> None:
    """Add patterns to the ignore file of Ray; a link is replaced by a copy first."""
    if patterns:
        own = file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
        file.unlink(missing_ok=True)
        file.write_text("\n".join([own, *patterns, "/.rayignore"]), encoding="utf-8")


def _warn(context: RunContext, links: Sequence[str]) -> None:
    if links:
        context.say(
            f"warning: not copied to the cluster: {listed([*map(repr, links)])}; links are copied "
            "only if they lead to a file in the folder of the configuration"
        )


@dataclass
class _Cluster:
    """A connection to a cluster."""

    ray: Any
    options: Ray
    folders: tuple[Path, ...]
    active_at: float
    """When the last task ended, or the first one could begin."""
    _running: set[int] = field(default_factory=set)
    """Tasks that are running."""

    @property
    def width(self) -> int:
        return self.options.per_task

    async def run(self, task: Task, folder: Path, env: Mapping[str, str]) -> AsyncIterator[bytes]:
        """Run `task` as a Ray task; Ray never retries it."""
        place = self.folders.index(folder) if self.options.upload else str(folder)
        remote = self._remote(
            num_cpus=self.options.cpus, num_returns="streaming", scheduling_strategy="SPREAD"
        )(_work)
        # Sent as bytes: another version of ci-eval reports its version before it reads them.
        results = aiter(remote.remote(pickle.dumps(task), place, dict(env)))
        try:
            await self._begin(results)
            async for each in results:
                yield await each
        except self.ray.exceptions.RayTaskError as exc:
            if isinstance(exc.cause, UsageError):
                raise exc.cause from None
            message = f"{type(exc.cause).__name__}: {exc.cause}"
            raise TrialError("internal", message) from None
        except self.ray.exceptions.RayError as exc:
            if type(exc).__name__ == "LocalRayletDiedError":  # no task can be submitted any more
                hint = "start Ray again, then continue with --resume"
                raise UsageError("this machine has left the Ray cluster", hint=hint) from None
            raise LostError(_gist(exc)) from None
        finally:
            self._running.discard(id(results))
            self.active_at = time.monotonic()

    async def _begin(self, results: AsyncIterator[Any]) -> None:
        """Wait for the first result, which shows that the task runs, and check its version.

        Raises:
            UsageError: the cluster runs no task, or another version of ci-eval.

        """
        limit = self.options.start_timeout_s
        first = asyncio.ensure_future(_first(results))
        try:
            while not (await asyncio.wait([first], timeout=limit))[0]:
                # It may be waiting for other tasks of this run.
                if not self._running and time.monotonic() - self.active_at >= limit:
                    raise self._too_small()
            there = first.result()
        except self.ray.exceptions.RayTaskError as exc:
            raise _unfit(exc) from None
        finally:
            first.cancel()
        if there != _versions():
            message = f"the Ray cluster has ci-eval {there[0]}, but this is {__version__}"
            raise UsageError(message, hint="install the same version on all machines")
        self._running.add(id(results))

    def _too_small(self) -> UsageError:
        options, cpus = self.options, self.ray.cluster_resources().get("CPU", 0)
        message = (
            f"the Ray cluster ran no task within {options.start_timeout_s:g} s; a task needs "
            f"{options.cpus:g} CPUs, and the cluster has {cpus:g} in all"
        )
        hint = "add machines, lower `run.cpus`, or raise `run.start_timeout_s`"
        return UsageError(message, hint=hint)

    def _remote(self, **options: Any) -> Any:
        return self.ray.remote(max_retries=0, **options)


async def _first(results: AsyncIterator[Any]) -> Any:
    return await (await anext(results))


def _unfit(exc: Exception) -> UsageError:
    reason = _gist(getattr(exc, "cause", None) or exc)
    message = f"the Ray cluster cannot run ci-eval: {reason}"
    hint = f"install ci-eval {__version__} in the Python of Ray on all machines"
    return UsageError(message, hint=hint)


# --- On a machine of the cluster ------------------------------------------------------------------


def _versions() -> tuple[str, int]:
    return __version__, sys.version_info.minor


def _work(task: bytes, place: int | str, env: Mapping[str, str]) -> Iterator[Any]:
    """Run a pickled task in the folder that Ray copied, or in one that all machines share."""
    yield _versions()
    folder = Path(place) if isinstance(place, str) else Path.cwd() / str(place)
    yield from pickle.loads(task)(folder, env)  # noqa: S301  # ci-eval itself pickled it
