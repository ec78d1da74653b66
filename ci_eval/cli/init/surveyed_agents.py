"""Agents in the source code of a repository, found by syntax: nothing is imported or run."""

import ast
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ci_eval.cli.init.surveyed_python import (
    agent_object,
    assigned,
    called,
    imported,
    module_level,
    name_of,
    parsed,
)
from ci_eval.records.errors import UsageError
from ci_eval.text.json_text import NotJsonError, parse_json
from ci_eval.text.yaml_files import MAX_CONFIG, read_text

MAX_SOURCES = 2_000
"""Maximum number of modules read."""
_CALLABLES = ("answer", "respond", "reply", "ask", "chat", "run", "invoke")
"""Common names of functions that answer a message, the most reliable first."""
_VAGUE = frozenset({"ask", "run", "invoke"})
"""Names that other functions have, too."""
_MESSAGES = frozenset(
    {"message", "msg", "prompt", "query", "question", "text", "user_input", "user_message"}
)
_GIVEN = frozenset({"history", "session"})
"""Parameters that an agent may have besides the message."""
_MODULES = ("agent", "assistant", "bot", "chatbot", "app", "main", "__init__")
_ADK_MODULES = frozenset({"agent.py", "__init__.py"})
"""Where ADK looks for `root_agent`."""
_TESTS = frozenset({"test", "tests", "testing"})
_FRAMEWORKS = {
    "agentflow": "AgentFlow",
    "tenxgraph": "AgentFlow",
    "langgraph": "LangGraph",
    "langchain": "LangChain",
    "crewai": "CrewAI",
    "autogen": "AutoGen",
    "autogen_agentchat": "AutoGen",
    "pydantic_ai": "Pydantic AI",
    "llama_index": "LlamaIndex",
    "smolagents": "smolagents",
    "semantic_kernel": "Semantic Kernel",
    "haystack": "Haystack",
    "strands": "Strands Agents",
    "dspy": "DSPy",
}
"""Packages that a module may import, and their frameworks."""
_CALLED = {
    "adk": "ADK",
    "langgraph": "LangGraph",
    "agentflow": "AgentFlow",
    "openai_agents": "OpenAI Agents",
    "pydantic_ai": "Pydantic AI",
    "python": "a function",
}
"""Display names of the types of agents that are found, the most reliable type first."""
KINDS = tuple(_CALLED)
_DECLARED_IN = {"agentflow.json": "agentflow", "langgraph.json": "langgraph"}
"""Configurations that name agents, and their types of agents."""
_OBJECT = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


@dataclass(frozen=True)
class FoundAgent:
    """An agent found in the code."""

    kind: str
    """The type of agent, as a configuration names it."""
    name: str
    folder: str
    """The folder of its code, relative to the surveyed folder; empty if it is the same."""
    target: str
    """Its value in the configuration: the folder of an ADK agent, else `module:name`."""

    @property
    def label(self) -> str:
        """Its description, as part of a sentence."""
        if self.kind == "python":
            return f"the function {self.target}"
        if self.kind == "adk":
            return f"the ADK agent in {self.folder or 'agent.py'}"
        return f"the agent {self.target} of {self.framework}"

    @property
    def framework(self) -> str:
        """The display name of its framework."""
        return _CALLED[self.kind]


@dataclass(frozen=True)
class Sources:
    """Agents and frameworks found in the code."""

    agents: tuple[FoundAgent, ...] = ()
    """Agents of frameworks first; within a framework, those in higher folders first."""
    frameworks: tuple[tuple[str, str], ...] = ()
    """The frameworks that are imported, each with the first file that does so."""

    @property
    def other_frameworks(self) -> tuple[tuple[str, str], ...]:
        """The frameworks for which no agent was found."""
        found = {each.framework for each in self.agents}
        return tuple(each for each in self.frameworks if each[0] not in found)


Doubtful = tuple[tuple[int, ...], FoundAgent]
"""An agent and its rank; the higher, the less likely it is meant."""


def read_sources(root: Path, files: Sequence[str]) -> Sources:
    """Return the agents in the Python modules among `files`, which are paths from `root`."""
    adk: list[FoundAgent] = [
        _of_adk(root, each) for each in files if name_of(each) == "root_agent.yaml"
    ]
    others: list[Doubtful] = []
    frameworks: dict[str, str] = {}
    for file in [each for each in files if name_of(each) in _DECLARED_IN]:
        others += _declared(root, file, files)
        if name_of(file) == "agentflow.json":  # LangGraph has agents in TypeScript, too
            frameworks.setdefault("AgentFlow", file)
    own = frozenset(each.partition("/")[0].removesuffix(".py") for each in files)
    for file in [each for each in files if each.endswith(".py")][:MAX_SOURCES]:
        tree = parsed(root / file)
        if tree is None:
            continue
        for package in imported(tree):
            if package in _FRAMEWORKS:
                frameworks.setdefault(_FRAMEWORKS[package], file)
        found = agent_object(tree, own)
        may_be_adk = name_of(file) in _ADK_MODULES
        if found and not (may_be_adk and _is_adk(tree, beside=found[1])):
            others += _of_object(file, *found)
        elif may_be_adk and _is_adk(tree):
            adk.append(_of_adk(root, file))
        else:
            others += _callables(file, tree)
    others.sort(key=lambda each: (KINDS.index(each[1].kind), each[0]))
    once = dict.fromkeys(agent for _, agent in others)
    return Sources((*_outermost(adk), *once), tuple(frameworks.items()))


# --- Agents of ADK ----------------------------------------------------------------------------


def _is_adk(tree: ast.Module, *, beside: str = "") -> bool:
    """Return True if a module has an ADK agent, under a name that ADK looks for.

    `beside` is the name of another framework's agent in the module.
    """
    found = dict(assigned(tree))
    is_app = called(found.get("app")).rpartition(".")[2] == "App"
    return is_app or "root_agent" in found.keys() - {beside}


def _of_adk(root: Path, file: str) -> FoundAgent:
    """Return the agent whose folder holds `file`."""
    folder = PurePosixPath(file).parent
    name = folder.name or root.resolve().name
    return FoundAgent("adk", name, _shown(folder), str(folder))


def _outermost(agents: Iterable[FoundAgent]) -> list[FoundAgent]:
    """Return the agents outside other agents' folders; those inside are parts of these."""
    found: list[FoundAgent] = []
    for agent in sorted(agents, key=lambda each: (each.folder.count("/"), each.folder)):
        at = f"{agent.folder}/"
        inside = any(each.folder and at.startswith(f"{each.folder}/") for each in found)
        if not inside and agent not in found:
            found.append(agent)
    return found


# --- Agents of other frameworks ---------------------------------------------------------------


def _of_object(file: str, kind: str, name: str) -> Iterator[Doubtful]:
    """Yield the agent `name` in `file`, if it can be imported and is not part of a test."""
    parts = _module(file)
    if parts and not _TESTS & set(parts):
        folder = _shown(PurePosixPath(file).parent)
        yield (len(parts),), FoundAgent(kind, _short(parts), folder, f"{'.'.join(parts)}:{name}")


def _declared(root: Path, file: str, files: Sequence[str]) -> Iterator[Doubtful]:
    """Yield the agents that a configuration of AgentFlow or LangGraph names, in its order.

    LangGraph's: https://langchain-ai.github.io/langgraph/concepts/application_structure
    """
    try:
        value = parse_json(read_text(root / file, shown=file, most=MAX_CONFIG))
    except (UsageError, NotJsonError):
        return
    match value:
        case {"agent": str(named)} if _OBJECT.fullmatch(named):
            module, _, name = named.partition(":")
            places = [f"{module.replace('.', '/')}.py:{name}"]
        case {"graphs": dict(graphs)}:
            given = (
                each.get("path") if isinstance(each, dict) else each for each in graphs.values()
            )
            places = [each for each in given if isinstance(each, str) and ".py:" in each]
        case _:
            return
    for number, place in enumerate(places):
        path, _, name = place.rpartition(":")
        code = posixpath.normpath(PurePosixPath(file).parent / path)
        if code in files and name.isidentifier():
            for _, agent in _of_object(code, _DECLARED_IN[name_of(file)], name):
                yield (0, number), agent


def _module(file: str) -> tuple[str, ...]:
    """Return the parts of a module's dotted name; empty if it cannot be imported."""
    path = PurePosixPath(file)
    parts = path.parent.parts if path.stem == "__init__" else path.with_suffix("").parts
    return parts if all(part.isidentifier() for part in parts) else ()


def _short(parts: Sequence[str]) -> str:
    """Return a name for the agent of a module: the module's, or its folder's if that says more."""
    return parts[-2] if len(parts) > 1 and parts[-1] in _MODULES else parts[-1]


# --- Functions of plain Python ----------------------------------------------------------------


def _callables(file: str, tree: ast.Module) -> Iterator[Doubtful]:
    """Yield the functions in `file` that may answer a message, each with its rank."""
    path, parts = PurePosixPath(file), _module(file)
    if not parts or _TESTS & set(parts):
        return
    name, is_usual = parts[-1], path.stem in _MODULES
    for node in module_level(tree.body):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if _answers(node, is_usual=is_usual):
            module = _MODULES.index(path.stem) if is_usual else len(_MODULES)
            doubt = (not is_usual, len(parts), module, _CALLABLES.index(node.name))
            target = f"{'.'.join(parts)}:{node.name}"
            yield doubt, FoundAgent("python", name, _shown(path.parent), target)


def _answers(node: ast.FunctionDef | ast.AsyncFunctionDef, *, is_usual: bool) -> bool:
    """Return True if a function has the name and the parameters of one that answers a message.

    In a module with a usual name of an agent (`is_usual`), one of the two is enough.
    """
    if node.name not in _CALLABLES or node.decorator_list:
        return False
    positional = [*node.args.posonlyargs, *node.args.args]
    needed = [each.arg for each in positional[: len(positional) - len(node.args.defaults)]]
    needed += [
        each.arg
        for each, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        if default is None
    ]
    asked = [each for each in needed if each not in _GIVEN]
    if len(asked) != 1 or not positional or asked[0] != positional[0].arg:
        return False
    clear = node.name not in _VAGUE, asked[0] in _MESSAGES
    return any(clear) if is_usual else all(clear)


def _shown(folder: PurePosixPath) -> str:
    return "" if folder == PurePosixPath() else folder.as_posix()
