"""The rules that a new file must keep, checked by walking the package."""

import ast
import importlib
import pkgutil
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import ci_eval

ROOT = Path(ci_eval.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
MODULES = [
    module.name
    for module in pkgutil.walk_packages(ci_eval.__path__, "ci_eval.")
    if not module.name.endswith(("__main__", "workers.worker"))
]
MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 60
MAX_ENTRIES = 26
UNWANTED = {"utils", "helpers", "common", "core", "base", "manager", "service"}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_modules_and_functions_stay_small():
    large = []
    for path in FILES:
        source = path.read_text(encoding="utf-8")
        large += [name_of(path)] if len(source.splitlines()) > MAX_MODULE_LINES else []
        large += [
            f"{name_of(path)}: {each.name}"
            for each in functions(ast.parse(source))
            if (each.end_lineno or each.lineno) - each.lineno >= MAX_FUNCTION_LINES
        ]
    assert large == []


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_alone(module):
    importlib.import_module(module)


def test_the_top_of_the_package_is_taken_in_at_a_glance():
    entries = {path.name for path in ROOT.iterdir()} - {"__pycache__", "templates"}

    assert len(entries) <= MAX_ENTRIES


@pytest.mark.parametrize("folder", sorted({path.parent for path in FILES}), ids=name_of)
def test_each_package_says_what_belongs_there(folder):
    tree = ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))

    assert ast.get_docstring(tree)


def test_the_unit_tests_mirror_the_package():
    tests = Path(__file__).parents[1] / "unit"
    folders = {path.parent.relative_to(tests) for path in tests.rglob("test_*.py")}

    assert {each for each in folders if not (ROOT / each / "__init__.py").exists()} == set()


def test_no_module_is_named_for_nothing():
    assert not {path.stem for path in FILES} & UNWANTED


def test_a_module_is_found_by_its_name_alone():
    names = [path.stem.lstrip("_") for path in FILES if not path.stem.startswith("__")]

    assert sorted(each for each, found in Counter(names).items() if found > 1) == []


@pytest.mark.slow
def test_what_catches_everything_stands_at_three_places():
    """Round one trial, round one score, and where a bug of ours becomes an exit code.

    What tells of faults in an agent's process has its own: it calls methods of strangers.
    """
    found = {
        name_of(path)
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ExceptHandler)
        and isinstance(node.type, ast.Name)
        and node.type.id == "Exception"
    }

    theirs = {"runtime/workers/worker_faults.py"}
    assert found - theirs == {"cli/exit_codes.py", "run/execute.py", "run/score.py"}


STARTS = re.compile(
    r"\b(Popen|check_output|check_call|getoutput|getstatusoutput|create_subprocess_\w+"
    r"|subprocess_(exec|shell)|subprocess\.(run|call)|os\.(system|popen|exec\w*|spawn\w*"
    r"|posix_spawn\w*|startfile)|pty\.spawn)\b"
)
"""Every way in which Python starts another program."""


def test_programs_are_started_by_four_modules_and_git_by_one():
    """What is asked of git goes through `git.py`: others start agents, or what fills in pages."""
    started = {
        name_of(path)
        for path in FILES
        if STARTS.search(path.read_text(encoding="utf-8"))
        and path.parent.name not in ("workers", "adapters")  # run by agents' interpreters
    }
    assert started == {
        f"runtime/{name}.py" for name in ("git", "processes", "spawning", "template_sandbox")
    }
    named = {
        name
        for name in started
        for node in ast.walk(ast.parse((ROOT / name).read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in ("git", "git.exe")
    }
    assert named == {"runtime/git.py"}


@pytest.mark.parametrize(
    "name",
    [
        *("worker", "worker_faults", "worker_output", "canned_tools", "marked_calls"),
        "import_guard/sitecustomize",
    ],
)
def test_what_runs_under_any_interpreter_is_written_for_an_old_one(name):
    source = (ROOT / "runtime/workers" / f"{name}.py").read_text(encoding="utf-8")

    ast.parse(source, feature_version=(3, 8))
    assert "from ci_eval" not in re.sub(r"if TYPE_CHECKING:\n(    .*\n|\n)+", "", source)
