"""Detection of framework agents defined as module-level objects."""

import ast
from collections.abc import Iterator, Mapping

from ci_eval.cli.init.surveyed_python import assigned, called, imported, origins

_GRAPHS = {"langgraph": "langgraph", "agentflow": "agentflow", "tenxgraph": "agentflow"}
"""Packages with which `….compile()` makes a graph, and the type of agent that makes it."""
_MADE_BY = {
    "langgraph.prebuilt.create_react_agent": "langgraph",
    "langchain.agents.create_agent": "langgraph",
    "agents.Agent": "openai_agents",
    "pydantic_ai.Agent": "pydantic_ai",
}
"""What an agent is made by, and the type that it is of."""
_USUAL = ("root_agent", "agent", "graph", "app", "workflow")
"""What the agent that is meant is often called, where a module has several."""


def agent_object(tree: ast.Module, own: frozenset[str]) -> tuple[str, str] | None:
    """Return the type of the agent that a module has, and its name there; `None` without one.

    `own` are the packages of the repository itself: of these, `agents` often is one.
    """
    found = dict(_objects(tree, own))
    if not found:
        return None
    usual = [name for name in _USUAL if name in found]
    # Agents that others are handed to are made before these.
    name = usual[0] if usual else list(found)[-1]
    return found[name], name


def _objects(tree: ast.Module, own: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield each name of an agent with the type that it is of."""
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
