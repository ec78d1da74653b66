"""What is wrong with a cluster is said before anything runs; tests/integration/test_ray has one."""

import asyncio
import pickle
import re
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest
from pydantic import ValidationError
from support import jumping_clock

from ci_eval.engines.ray_engine import Ray, _Cluster, _versions, _work
from ci_eval.plugins.engine import LostError
from ci_eval.records.errors import TrialError, UsageError
from ci_eval.runtime.context import RunContext


def refusal(engine: Ray, folder: Path, **env: str) -> UsageError:
    async def start() -> None:
        context = RunContext(env, folder, lambda: 0.0)
        async with engine.start(context, [folder], left_out=folder / "out"):
            pass

    with pytest.raises(UsageError) as found:
        asyncio.run(start())
    return found.value


class TooLargeError(Exception):
    pass


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Returns a function after which connecting to a cluster raises an error."""

    def raising(error: BaseException) -> None:
        def init(**_: object) -> None:
            raise error

        exceptions = SimpleNamespace(RayError=KeyError, RuntimeEnvSetupError=TooLargeError)
        module = SimpleNamespace(init=init, exceptions=exceptions, shutdown=lambda: None)
        module._private = SimpleNamespace(worker=SimpleNamespace())
        monkeypatch.setitem(sys.modules, "ray", module)

    return raising


def test_without_the_package_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)

    assert "ci-eval[ray]" in refusal(Ray(), tmp_path).hint


def test_another_python_is_named(tmp_path, ray):
    ray(RuntimeError("Version mismatch: the cluster has\n Python: 3.11.7"))
    found = refusal(Ray(), tmp_path)

    assert "another version of Python or Ray" in str(found)
    assert "3.11.7" in str(found)


@pytest.mark.parametrize("error", [ConnectionError("none"), SystemExit(15), ValueError("none")])
def test_a_cluster_that_is_not_there_is_named(error, tmp_path, ray):
    ray(error)

    assert "there is no Ray cluster at 'auto'" in str(refusal(Ray(), tmp_path))


def test_a_folder_that_is_too_large_is_no_missing_cluster(tmp_path, ray):
    ray(TooLargeError("Package size (513MiB) exceeds the maximum size of 512MiB"))
    found = refusal(Ray(), tmp_path)

    assert "cannot be copied: Package size (513MiB)" in str(found)
    assert "exclude" in found.hint


def test_an_address_without_a_listener_is_refused_before_ray_waits_for_it(tmp_path, ray):
    ray(AssertionError("Ray was asked"))

    assert "'127.0.0.1:9'" in str(refusal(Ray(address="127.0.0.1:9"), tmp_path))
    assert "'nowhere'" in str(refusal(Ray(), tmp_path, RAY_ADDRESS="nowhere"))


class Tasks:
    """Stands in for ray: each task begins after a delay, and lasts for a time."""

    exceptions = SimpleNamespace(RayError=KeyError, RayTaskError=IndexError)

    def __init__(self, *tasks: tuple[float, float]) -> None:
        self.tasks = iter(tasks)

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0}

    def remote(self, **options: object) -> Callable[[object], SimpleNamespace]:
        assert options["max_retries"] == 0
        return lambda _: SimpleNamespace(remote=lambda *_: self.results(*next(self.tasks)))

    async def results(self, waits_s: float, lasts_s: float) -> AsyncIterator[Awaitable[object]]:
        await asyncio.sleep(waits_s)
        yield asyncio.sleep(0, _versions())
        await asyncio.sleep(lasts_s)
        yield asyncio.sleep(0, b"done")


def results_of(*tasks: tuple[float, float]) -> list[bytes]:
    """Run tasks that wait 300 s for the cluster by the clock, and return their results."""

    async def main() -> list[bytes]:
        cluster = _Cluster(Tasks(*tasks), Ray(), (Path(),), time.monotonic())

        async def one() -> list[bytes]:
            return [each async for each in cluster.run(print, Path(), {})]

        async with asyncio.TaskGroup() as group:
            running = [group.create_task(one()) for _ in tasks]
        return [each for task in running for each in task.result()]

    return jumping_clock.run(main())


def test_a_task_waits_for_those_of_its_own_run_however_long_they_last():
    assert results_of((0, 5000), (5001, 1), (299, 1)) == [b"done"] * 3


@pytest.mark.parametrize("tasks", [[(301, 1)], [(0, 10), (611, 1)]], ids=["first", "later"])
def test_a_cluster_that_runs_nothing_is_not_waited_for(tasks):
    with pytest.raises(ExceptionGroup) as found:
        results_of(*tasks)

    (refusal,) = found.value.exceptions
    assert isinstance(refusal, UsageError)
    assert "ran no task within 300 s; a task needs 1 CPUs, and the cluster has 2" in str(refusal)


class TaskError(KeyError):
    """What ray raises for an error of a task."""

    def __init__(self, cause: Exception) -> None:
        super().__init__("a task raised an error")
        self.cause = cause


class Failing(Tasks):
    exceptions = SimpleNamespace(RayError=KeyError, RayTaskError=TaskError)

    def __init__(self, error: Exception, *, begins: bool, version: str = "") -> None:
        super().__init__((0, 0))
        self.error, self.begins, self.version = error, begins, version

    async def results(self, *_: float) -> AsyncIterator[Awaitable[object]]:
        if self.begins:
            yield asyncio.sleep(0, (self.version, 0) if self.version else _versions())
        raise self.error


@pytest.mark.parametrize(
    ("failing", "error", "said"),
    [
        (Failing(KeyError("node died"), begins=False), LostError, "node died"),
        (Failing(KeyError("node died"), begins=True), LostError, "node died"),
        (
            Failing(TaskError(ImportError("no ci_eval")), begins=False),
            UsageError,
            "the Ray cluster cannot run ci-eval: no ci_eval",
        ),
        (Failing(TaskError(ValueError("a bug")), begins=True), TrialError, "ValueError: a bug"),
        (Failing(TaskError(UsageError("no such file")), begins=True), UsageError, "no such file"),
        (
            Failing(ValueError(), begins=True, version="99.0"),
            UsageError,
            "the Ray cluster has ci-eval 99.0, but this is",
        ),
    ],
)
def test_what_failed_is_told_apart(failing, error, said):
    async def main() -> None:
        cluster = _Cluster(failing, Ray(), (Path(),), time.monotonic())
        async for _ in cluster.run(print, Path(), {}):
            pass

    with pytest.raises(error, match=re.escape(said)):
        asyncio.run(main())


def said(folder: Path, env: Mapping[str, str]) -> Iterator[bytes]:
    yield f"{folder} {env['KEY']}".encode()


@pytest.mark.parametrize("upload", [True, False])
def test_a_task_works_in_its_copy_of_the_folder_or_in_the_one_that_is_everywhere(
    upload, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    place = 1 if upload else "/everywhere"

    version, found = _work(pickle.dumps(said), place, {"KEY": "k"})

    assert version == _versions()
    assert found.decode() == f"{tmp_path / '1' if upload else place} k"


def test_what_is_not_copied_is_said_and_ray_leaves_out_what_is_excluded(tmp_path, monkeypatch):
    staged = {}

    def init(*, runtime_env: Mapping[str, str], **_: object) -> None:
        for path in Path(runtime_env["working_dir"]).rglob("*"):
            if path.is_file():
                staged[path.name] = path.read_text()

    module = SimpleNamespace(init=init, shutdown=lambda: None)
    module._private = SimpleNamespace(worker=SimpleNamespace())
    monkeypatch.setitem(sys.modules, "ray", module)
    (tmp_path / "bot.py").write_text("answer")
    (tmp_path / ".rayignore").write_text("own")
    (tmp_path / "leak").symlink_to("/etc/passwd")
    lines: list[str] = []

    async def start() -> None:
        context = RunContext({}, tmp_path, lambda: 0.0, say=lines.append)
        engine = Ray(exclude=("data/",))
        async with engine.start(context, [tmp_path], left_out=tmp_path / "out"):
            pass

    asyncio.run(start())

    assert (staged["bot.py"], staged[".rayignore"]) == ("answer", "own\ndata/\n/.rayignore")
    assert "leak" not in staged
    assert [line.partition(";")[0] for line in lines] == [
        "warning: not copied to the cluster: 'leak'"
    ]
    assert (tmp_path / ".rayignore").read_text() == "own"


def test_ray_client_is_refused():
    with pytest.raises(ValidationError, match="Ray Client is not supported"):
        Ray(address="ray://head:10001")
