"""Modules that a module imports."""

import pytest

from ci_eval.runtime.workers.imported_modules import MAX_SOURCE, sources


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import a", {"a.py"}),
        ("import b.c", {"b/__init__.py", "b/c.py"}),
        ("from b import c", {"b/__init__.py", "b/c.py"}),
        ("from b.c import name", {"b/__init__.py", "b/c.py"}),
        ("def f():\n    import a", {"a.py"}),
        ("try:\n    import a\nexcept ImportError: pass", {"a.py"}),
        ("import json, os", set()),
        ("import d", {"d.py", "a.py"}),
        ("import loop", {"loop.py", "m.py"}),
        ("import bad, a", {"bad.py", "a.py"}),
    ],
)
def test_what_a_module_imports_from_the_folders_is_found(tmp_path, text, names):
    for name, content in {
        "m.py": text,
        "a.py": "",
        "b/__init__.py": "",
        "b/c.py": "",
        "d.py": "from a import x",
        "loop.py": "import m",
        "bad.py": "this is no Python",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)

    files = {path.relative_to(tmp_path).as_posix() for path in sources("m", [tmp_path])}
    assert files == {"m.py"} | names


def test_relative_imports_start_at_the_package(tmp_path):
    for name, content in {
        "p/__init__.py": "from . import one",
        "p/one.py": "",
        "p/two.py": "",
        "p/q/__init__.py": "",
        "p/q/m.py": "from ..two import x\nfrom .near import y",
        "p/q/near.py": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)

    files = {path.relative_to(tmp_path).as_posix() for path in sources("p.q.m", [tmp_path])}
    assert files == {
        *("p/__init__.py", "p/one.py", "p/two.py"),
        *("p/q/__init__.py", "p/q/m.py", "p/q/near.py"),
    }


def test_a_huge_file_is_named_but_not_read(tmp_path):
    (tmp_path / "m.py").write_text("import a\n" + "#" * MAX_SOURCE)
    (tmp_path / "a.py").touch()

    assert [path.name for path in sources("m", [tmp_path])] == ["m.py"]


def test_bytecode_that_may_be_loaded_instead_of_the_source_is_found(tmp_path):
    names = {"m.py", "a.pyc", "b/__init__.pyc", "__pycache__/m.cpython-311.pyc"}
    for name in (*names, "__pycache__/other.cpython-311.pyc"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("import a, b" if name == "m.py" else "\0")

    files = {path.relative_to(tmp_path).as_posix() for path in sources("m", [tmp_path])}
    assert files == names
