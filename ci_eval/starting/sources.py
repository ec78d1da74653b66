"""Agents in the source code of others, by its syntax: nothing is imported or run."""

import ast
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from ci_eval.documents import read_text
from ci_eval.errors import UsageError

MAX_SOURCES = 2_000
"""How many modules are read."""
_MAX_SOURCE = 1024 * 1024
_CALLABLES = ("answer", "respond", "reply", "ask", "chat", "run", "invoke")
"""What a function that answers is often called, the surest name first."""
_VAGUE = frozenset({"run", "invoke"})
"""Names that other functions have, too: only the name of what they take tells."""
_MESSAGES = frozenset(
    {"message", "msg", "prompt", "query", "question", "text", "user_input", "user_message"}
)
_GIVEN = frozenset({"history", "session"})
"""What an agent gets beside the message where it names it."""
_MODULES = ("agent", "assistant", "bot", "chatbot", "app", "main", "__init__")
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
"""What a module imports, and whose agent that makes it."""


@dataclass(frozen=True)
class FoundAgent:
    """An agent that stands in the code."""

    kind: Literal["adk", "python"]
    name: str
    folder: str
    """The folder of its code from the one that was surveyed; empty where it is that one."""
    target: str
    """The module `package.module`, `module:function`, or the file of an agent in YAML."""
    variable: Literal["root_agent", "app", "answer"] = "answer"
    """What the module calls it."""
    import_from: str = ""
    """The folder that has to be on the path for the module to be found."""


@dataclass(frozen=True)
class Sources:
    """What the code of a repository shows."""

    agents: tuple[FoundAgent, ...] = ()
    """ADK's agents first; among equals those that lie higher."""
    frameworks: tuple[tuple[str, str], ...] = ()
    """Other frameworks that are imported, each with the first file that does so."""


def read_sources(root: Path, files: Sequence[str]) -> Sources:
    """Return what the Python modules among `files`, paths from `root`, show."""
    adk: list[FoundAgent] = [_of_yaml(each) for each in files if _name(each) == "root_agent.yaml"]
    plain: list[tuple[tuple[int, ...], FoundAgent]] = []
    frameworks: dict[str, str] = {}
    if "agentflow.json" in map(_name, files):
        frameworks["AgentFlow"] = next(each for each in files if _name(each) == "agentflow.json")
    for file in [each for each in files if each.endswith(".py")][:MAX_SOURCES]:
        tree = _parsed(root / file)
        if tree is None:
            continue
        for package in _imported(tree):
            if package in _FRAMEWORKS:
                frameworks.setdefault(_FRAMEWORKS[package], file)
        variable = _adk_variable(tree) if _name(file) == "agent.py" else None
        if variable:
            adk.append(_of_adk(root, file, variable))
        else:
            plain += _callables(file, tree)
    agents = (*_outermost(adk), *(agent for _, agent in sorted(plain, key=lambda each: each[0])))
    return Sources(agents, tuple(frameworks.items()))


def _parsed(path: Path) -> ast.Module | None:
    """Return the syntax of a module; nothing where it cannot be read."""
    try:
        text = read_text(path, shown=str(path), most=_MAX_SOURCE)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the code of others, for others
            return ast.parse(text)
    except (UsageError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _module_level(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run when a module is imported, those under conditions too."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            yield from _module_level(node.body)
            yield from _module_level(getattr(node, "orelse", ()))


def _imported(tree: ast.Module) -> Iterator[str]:
    """Yield the packages that a module imports."""
    for node in _module_level(tree.body):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


# --- Agents of ADK ----------------------------------------------------------------------------


def _adk_variable(tree: ast.Module) -> Literal["root_agent", "app"] | None:
    """Return under which name a module has an agent of ADK; `app` only where it is ADK's App."""
    found = dict(_assigned(tree))
    if _called(found.get("app")) == "App":
        return "app"
    return "root_agent" if "root_agent" in found else None


def _assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield each name that a module gives to something, with what it is where that is seen."""
    for node in _module_level(tree.body):
        if isinstance(node, ast.Assign):
            yield from (
                (each.id, node.value) for each in node.targets if isinstance(each, ast.Name)
            )
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node.value
        elif isinstance(node, ast.ImportFrom):
            yield from ((alias.asname or alias.name, None) for alias in node.names)


def _called(value: ast.expr | None) -> str:
    """Return the name of what `value` is a call of, without the module before it."""
    function = value.func if isinstance(value, ast.Call) else None
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _of_adk(root: Path, file: str, variable: Literal["root_agent", "app"]) -> FoundAgent:
    """Return the agent in `file`, an `agent.py`, with the way to import it.

    ADK imports `folder.agent` from the folder above; where that is a package itself, the
    import begins above the outermost.
    """
    folder = PurePosixPath(file).parent
    name = folder.name or root.resolve().name
    if folder == PurePosixPath():
        return FoundAgent("adk", name, "", "agent", variable)
    top = folder
    while top.parent != PurePosixPath() and (root / top.parent / "__init__.py").is_file():
        top = top.parent
    module = ".".join((*folder.relative_to(top.parent).parts, "agent"))
    return FoundAgent("adk", name, _shown(folder), module, variable, _shown(top.parent))


def _of_yaml(file: str) -> FoundAgent:
    folder = PurePosixPath(file).parent
    above = _shown(folder.parent)
    return FoundAgent("adk", folder.name or "agent", _shown(folder), file, "root_agent", above)


def _outermost(agents: Iterable[FoundAgent]) -> list[FoundAgent]:
    """Return the agents that do not lie in another one's folder: those are parts of it."""
    found: list[FoundAgent] = []
    for agent in sorted(agents, key=lambda each: (each.folder.count("/"), each.folder)):
        at = f"{agent.folder}/"
        inside = any(each.folder and at.startswith(f"{each.folder}/") for each in found)
        if not inside:
            found.append(agent)
    return found


# --- Functions of plain Python ----------------------------------------------------------------


def _callables(file: str, tree: ast.Module) -> Iterator[tuple[tuple[int, ...], FoundAgent]]:
    """Yield the functions in `file` that may answer a message, each with how unlikely it is."""
    path = PurePosixPath(file)
    parts = path.parent.parts if path.stem == "__init__" else path.with_suffix("").parts
    usable = path.stem in _MODULES and parts and all(part.isidentifier() for part in parts)
    if not usable or _TESTS & set(parts):
        return
    name = parts[-1]
    for node in _module_level(tree.body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _answers(node):
            doubt = (len(parts), _MODULES.index(path.stem), _CALLABLES.index(node.name))
            target = f"{'.'.join(parts)}:{node.name}"
            yield doubt, FoundAgent("python", name, _shown(path.parent), target)


def _answers(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Say whether a function has the name and the parameters of one that answers a message."""
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
    return node.name not in _VAGUE or asked[0] in _MESSAGES


def _name(file: str) -> str:
    return file.rpartition("/")[2]


def _shown(folder: PurePosixPath) -> str:
    return "" if folder == PurePosixPath() else folder.as_posix()
