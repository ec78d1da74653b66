"""Lookup of the modules that a configuration names, without importing them."""

import ast
import importlib.util
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from ci_eval.records.errors import UsageError
from ci_eval.runtime.path_checks import contained
from ci_eval.text.suggest import did_you_mean
from ci_eval.text.yaml_files import MAX_CONFIG, read_text

_DYNAMIC = re.compile(r"import\s*\*|__getattr__|\bglobals\(|\bsetattr\(|\bexec\(")
"""Signs that a module may define names that its text does not contain."""
_NAMES = re.compile(r"^(?:(?:async +)?def|class) +(\w+)|^(\w+) *[:=]", re.MULTILINE)
_HARMLESS = {"distutils-precedence.pth", "_virtualenv.pth"}


def target_error(target: str, root: Path, *, installed: bool | None, is_ours: bool = False) -> str:
    """Return why `target`, a `module` or `module:name`, cannot exist; empty if it may.

    `installed` tells if the interpreter has the module's package; `None` if unknown.  If the
    interpreter `is_ours`, the syntax is checked, too: another one may support newer syntax.
    """
    module, _, name = target.partition(":")
    parts = module.split(".")
    folder = root
    for number, part in enumerate(parts):
        is_package = (folder / part / "__init__.py").is_file()
        is_module = (folder / f"{part}.py").is_file()
        if number == len(parts) - 1 and (is_package or is_module):
            file = folder / part / "__init__.py" if is_package else folder / f"{part}.py"
            wanted = name.partition(".")[0]
            wrong = _syntax_error(file, root) if is_ours else ""
            return wrong or (names_error([file], root, [wanted]) if wanted else "")
        if not (folder / part).is_dir():
            # A package without `__init__.py` may have another, installed part.
            is_whole = number > 0 and (folder / "__init__.py").is_file()
            if is_module or not (is_whole or installed is False):
                return ""
            before = "".join(f"{each}." for each in parts[:number])
            known = [f"{before}{each}" for each in _modules(folder)]
            return f"there is no module {before + part!r}{did_you_mean(before + part, known)}"
        folder /= part
    return ""


def _modules(folder: Path) -> Iterator[str]:
    for path in folder.iterdir():
        name = path.name.removesuffix(".py")
        is_module = path.suffix == ".py" or any(path.glob("*.py"))
        if name.isidentifier() and name != "__init__" and is_module:
            yield name


def names_error(files: Sequence[Path], root: Path, names: Sequence[str]) -> str:
    """Return why the modules in `files` cannot have one of `names`; empty if they may."""
    shown = [str(file.relative_to(root)) for file in files]
    try:
        texts = [read_text(contained(root, each), shown=each, most=MAX_CONFIG) for each in shown]
    except UsageError:
        return ""  # its worker gives the reason
    text = "\n".join(texts)
    if any(re.search(rf"\b{re.escape(name)}\b", text) for name in names) or _DYNAMIC.search(text):
        return ""
    known = {first or second for first, second in _NAMES.findall(text)}
    return f"{shown[-1]} has no {names[0]!r}{did_you_mean(names[0], known)}"


def _syntax_error(file: Path, root: Path) -> str:
    shown = str(file.relative_to(root))
    try:
        text = read_text(contained(root, shown), shown=shown, most=MAX_CONFIG)
        with warnings.catch_warnings(action="ignore"):
            ast.parse(text)
    except SyntaxError as exc:
        return f"{shown} has a syntax error in line {exc.lineno}: {exc.msg}"
    except (UsageError, ValueError, RecursionError, MemoryError):
        pass  # its worker gives the reason
    return ""


def example_target(root: Path, file: str) -> str:
    """Return `module:function` for the path of a Python file; empty if it defines none."""
    try:
        text = read_text(contained(root, file), shown=file, most=MAX_CONFIG)
    except UsageError:
        return ""
    name = re.search(r"^(?:async +)?def +([^\W_]\w*)", text, re.MULTILINE)
    module = file.removesuffix(".py").removeprefix("./").replace("/", ".")
    return f"{module}:{name[1]}" if name and file.endswith(".py") else ""


def installed_for_us(top: str) -> bool:
    """Return True if our own Python has the top-level module `top`."""
    try:
        return importlib.util.find_spec(top) is not None
    except (ImportError, ValueError):
        return True  # loaded, but not by an import


def installed_for(interpreter: str, top: str) -> bool | None:
    """Return True if an interpreter has the top-level module `top`; `None` if unknown.

    This is known only for virtual environments without access to system packages.
    """
    venv = Path(interpreter).parent.parent
    try:
        if "include-system-site-packages = true" in (venv / "pyvenv.cfg").read_text():
            return None
    except OSError:
        return None
    sites = [*venv.glob("lib/python3*/site-packages"), *venv.glob("Lib/site-packages")]
    if not sites or any(
        path.name not in _HARMLESS for site in sites for path in site.glob("*.pth")
    ):
        return None
    return top in sys.stdlib_module_names or any(
        (site / top).is_dir() or any(site.glob(f"{top}.*")) for site in sites
    )
