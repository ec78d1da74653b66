"""What all tests share: `support` can be imported, and golden files be compared and refreshed."""

import gc
import os
import re
import sys
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

TESTS = Path(__file__).parent
# With `importmode=importlib` nothing else puts it there.
sys.path.insert(0, str(TESTS))
# Whoever runs the tests: commands do as on somebody's machine, unless a test says otherwise; and
# where they run in a job, the summary and the outputs of it are none of theirs.
for _name in list(os.environ):
    if re.match(r"CI$|(ACTIONS|CI(?!_EVAL)|GITHUB|GITLAB|RUNNER)_", _name):
        del os.environ[_name]
# Servers of tests are here, and no proxy knows them.
for _name in ("no_proxy", "NO_PROXY"):
    os.environ[_name] = ",".join(filter(None, (os.environ.get(_name), "127.0.0.1")))
# Tests start hundreds of processes: without bytecode each would compile what it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# A busy machine is no failure: no test here is one of speed.
settings.register_profile(
    "explore",
    deadline=None,
    derandomize=False,
    max_examples=1000,
    suppress_health_check=[HealthCheck.too_slow],
)
# What passed once passes always: new examples are looked for on purpose.
settings.register_profile(
    "same", settings.get_profile("explore"), derandomize=True, database=None, max_examples=100
)
settings.register_profile("few", settings.get_profile("same"), max_examples=15)
settings.load_profile("same")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--refresh-golden",
        action="store_true",
        help="write the documents in tests/golden anew instead of comparing with them",
    )
    parser.addoption(
        "--slow",
        action="store_true",
        help="run the slow tests, and all examples, too; as for a file that is named",
    )


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Leave out what is slow, and most examples, and give each test the same ones.

    Hypothesis draws literals of all modules of ours that are imported by then; there is no setting
    that keeps it from doing so.
    """
    if not config.option.slow and not config.option.markexpr and _is_broad(config):
        config.option.markexpr = "not slow"
    if settings.default.derandomize and config.option.markexpr == "not slow":
        settings.load_profile("few")
    if settings.default.derandomize:
        providers._get_local_constants = lambda: providers._local_constants


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Measure no coverage in slow tests: the others reach the floor, and it takes minutes."""
    if not item.get_closest_marker("slow"):
        return (yield)
    item.add_marker("no_cover")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)  # what processes would measure by
        return (yield)


def _is_broad(config: pytest.Config) -> bool:
    """Return True if folders are run, rather than files or tests that the user named."""
    return any(Path(each).is_dir() for each in config.args)


@pytest.hookimpl(wrapper=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> Generator[None, int, int]:
    """Stay in this process for files and tests that are named, and where output is watched.

    Workers would take longer to start than most files take. Otherwise there is one more than
    pytest-xdist would start, because tests of processes and servers wait; the quick ones do not.
    What the command line says with `-n` is as it says.
    """
    count = yield
    if any(re.match(r"-n|--numprocesses", each) for each in config.invocation_params.args):
        return count
    watched = config.option.trace or config.option.capture == "no"
    if watched or not _is_broad(config):
        return 0
    return count if config.option.markexpr == "fast" else count + 1


@pytest.hookimpl(tryfirst=True)
def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no tier that has no quick test where only these are wanted."""
    quick = config.option.markexpr == "fast" and collection_path.parent == TESTS
    skipped = collection_path.is_dir() and collection_path.name not in FAST_TIERS
    return (quick and skipped) or None


FAST_TIERS = {"unit", "contracts"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is fast: one module or one rule, without random examples and other programs."""
    for item in items:
        tier = item.path.relative_to(TESTS).parts[0]
        random = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
        marks = {each.name for each in item.iter_markers()}
        if tier in FAST_TIERS and not random and not marks & {"slow", "processes"}:
            item.add_marker(pytest.mark.fast)


def pytest_collection_finish() -> None:
    """Spare the garbage collector the thousands of tests, which live as long as the process."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compare a whole document with the file of that name in `tests/golden`."""

    def check(name: str, text: str) -> None:
        path = TESTS / "golden" / name
        if request.config.getoption("--refresh-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        assert text == path.read_text(encoding="utf-8"), "see --refresh-golden"

    return check
