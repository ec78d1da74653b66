"""What is wrong with a cluster is said before anything runs; tests/integration/test_ray has one."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from pydantic import ValidationError

from ci_eval.engines.ray_engine import Ray
from ci_eval.records.errors import UsageError
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


def test_ray_client_is_refused():
    with pytest.raises(ValidationError, match="Ray Client is not supported"):
        Ray(address="ray://head:10001")
