"""Static analysis of Python modules: nothing is imported or run."""

import ast
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

from ci_eval.records.errors import UsageError
from ci_eval.text.yaml_files import read_text

_MAX_SOURCE = 1024 * 1024


def parsed(path: Path) -> ast.Module | None:
    """Return the syntax tree of a module; `None` if it cannot be read."""
    try:
        text = read_text(path, shown=str(path), most=_MAX_SOURCE)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # not for the user of ci-eval
            return ast.parse(text)
    except (UsageError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def module_level(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that may run when a module is imported, also conditional ones."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With) and not _is_for_scripts(node):
            yield from module_level(node.body)
            yield from module_level(getattr(node, "orelse", ()))


def _is_for_scripts(node: ast.stmt) -> bool:
    """Return True if it is `if __name__ == …:`, which an import skips."""
    test = node.test.left if isinstance(node, ast.If) and isinstance(node.test, ast.Compare) else 0
    return isinstance(test, ast.Name) and test.id == "__name__"


def imported(tree: ast.Module) -> Iterator[str]:
    """Yield the packages that a module imports."""
    for node in module_level(tree.body):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def origins(tree: ast.Module) -> dict[str, str]:
    """Map each name that a module imports to its original dotted name."""
    found: dict[str, str] = {}
    for node in module_level(tree.body):
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.name if alias.asname else alias.name.partition(".")[0]
                found[alias.asname or name] = name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return found


def assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield each name that a module defines, with its value; `None` if unknown."""
    for node in module_level(tree.body):
        if isinstance(node, ast.Assign):
            yield from (
                (each.id, node.value) for each in node.targets if isinstance(each, ast.Name)
            )
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node.value
        elif isinstance(node, ast.ImportFrom):
            yield from ((alias.asname or alias.name, None) for alias in node.names)


def called(value: ast.expr | None) -> str:
    """Return the callee of the call `value` as written: `Agent`, `agents.Agent`, `.compile`.

    The part before the last dot is omitted if it consists of more than names.
    """
    function = value.func if isinstance(value, ast.Call) else None
    names: list[str] = []
    while isinstance(function, ast.Attribute):
        names.append(function.attr)
        function = function.value
    if isinstance(function, ast.Name):
        names.append(function.id)
    elif names:
        names[1:] = [""]
    return ".".join(reversed(names))
