"""Detection of framework agents defined as module-level objects."""

import ast
from collections.abc import Iterator, Mapping

from ci_eval.cli.init.surveyed_python import assigned, called, imported, origins

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
    known = {name: what for name, what in origins(tree).items() if what.split(".")[0] not in own}
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
