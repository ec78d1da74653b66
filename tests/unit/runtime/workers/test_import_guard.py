"""Which imports the guard of the base arm refuses, and what it leaves as it was."""

import subprocess
import sys
from pathlib import Path

import pytest

from ci_eval.runtime.workers import import_guard

GUARD = Path(import_guard.__file__).parent


@pytest.fixture
def change(tmp_path: Path) -> Path:
    """Return a work tree with a module, and with a package as installed in an environment."""
    tree = tmp_path / "change"
    for name in ("lib.py", ".venv/lib/site-packages/shop/__init__.py"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("")
    return tree


def ended(change: Path, code: str, *path: Path) -> str:
    """Return what a program prints, and the last line of its errors."""
    env = {"PYTHONPATH": ":".join(map(str, (GUARD, *path))), "CI_EVAL_FOREIGN": str(change)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False
    )
    return done.stdout + "".join(done.stderr.splitlines()[-1:])


def test_a_module_of_the_change_is_refused_and_an_installed_one_is_not(change):
    refused = f"ImportError: lib belongs to the work tree of the change: {change / 'lib.py'}"

    assert ended(change, "import lib", change) == refused
    assert ended(change, "import shop; print('fine')", *change.glob(".venv/lib/*")) == "fine\n"
    assert ended(change, "import json, xml.dom; print('fine')") == "fine\n"
    assert ended(change, "import missing") == "ModuleNotFoundError: No module named 'missing'"


def test_workers_load_their_own_files_while_ci_eval_is_developed(change):
    own = f"sys.path[:0] = [{str(GUARD.parent)!r}]; import worker_output; print('fine')"

    assert ended(GUARD.parents[2], f"import sys; {own}") == "fine\n"


def test_a_link_into_the_change_is_a_module_of_the_change(change, tmp_path):
    (tmp_path / "lib.py").symlink_to(change / "lib.py")

    assert "lib belongs to the work tree of the change" in ended(change, "import lib", tmp_path)


def test_a_site_customisation_that_it_hides_runs_all_the_same(change, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("print('customised')")

    assert ended(change, "print('started')", tmp_path) == "customised\nstarted\n"
    assert ended(change, "import sys; print(sys.path[1:2])", tmp_path) == (
        f"customised\n['{tmp_path}']\n"
    )
