"""What all tests share: `support` can be imported, and golden files be compared and refreshed."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parent
# With `importmode=importlib` nothing else puts it there.
sys.path.insert(0, str(TESTS))
# Whoever runs the tests: commands do as on somebody's machine, unless a test says otherwise.
for _name in ("GITHUB_ACTIONS", "GITLAB_CI"):
    os.environ.pop(_name, None)
# A busy machine is no failure: no test here is one of speed.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--refresh-golden",
        action="store_true",
        help="write the documents in tests/golden anew instead of comparing with them",
    )


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
