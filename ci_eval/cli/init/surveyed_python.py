"""Static analysis of Python modules and their agents: nothing is imported or run."""

import ast
import warnings
from collections.abc import Iterable, Iterator, Mapping
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


def name_of(file: str) -> str:
    """Return the name of a file without its folder."""
    return file.rpartition("/")[2]


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
    yield from (what.partition(".")[0] for _, what in origins(tree))


def origins(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield each name that a module imports, with its original dotted name."""
    for node in module_level(tree.body):
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.name if alias.asname else alias.name.partition(".")[0]
                yield alias.asname or name, name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


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


# --- Agents of frameworks, defined as module-level objects ------------------------------------

_GRAPHS = {"langgraph": "langgraph", "agentflow": "agentflow", "tenxgraph": "agentflow"}
"""Packages whose `….compile()` makes a graph, and its type of agent."""
_MADE_BY = {
    "langgraph.prebuilt.create_react_agent": "langgraph",
    "langchain.agents.create_agent": "langgraph",
    "agents.Agent": "openai_agents",
    "pydantic_ai.Agent": "pydantic_ai",
}
"""Callables that make an agent, and its type."""
_USUAL = ("root_agent", "agent", "graph", "app", "workflow")
"""Common names of the main agent in a module that has several."""


def agent_object(tree: ast.Module, own: frozenset[str]) -> tuple[str, str] | None:
    """Return the type and the name of the agent in a module; `None` if there is none.

    `own` are the repository's own packages: `agents` is often one of them.
    """
    found = dict(_objects(tree, own))
    if not found:
        return None
    usual = [name for name in _USUAL if name in found]
    # An agent that others use is defined before them.
    name = usual[0] if usual else list(found)[-1]
    return found[name], name


def _objects(tree: ast.Module, own: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield the name and the type of each agent."""
    known = {name: what for name, what in origins(tree) if what.split(".")[0] not in own}
    graphs = {_GRAPHS[each] for each in imported(tree) if each in _GRAPHS and each not in own}
    for name, value in assigned(tree):
        what = called(value)
        kind = _MADE_BY.get(_full_name(what, known))
        if kind is None and len(graphs) == 1 and _compiles(what, known):
            (kind,) = graphs
        if kind:
            yield name, kind


def _full_name(what: str, known: Mapping[str, str]) -> str:
    """Return the original name of the imported `what`; empty if it was not imported."""
    first, dot, rest = what.partition(".")
    return f"{known[first]}{dot}{rest}" if first in known else ""


def _compiles(what: str, known: Mapping[str, str]) -> bool:
    """Return True if `what` is the `compile` of an object, not of a module as `re.compile` is."""
    first = what.partition(".")[0]
    return what.endswith(".compile") and known.get(first) != first
