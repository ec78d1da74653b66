"""Default Python interpreter of an ADK agent."""

import os
from collections.abc import Iterator
from pathlib import Path

from ci_eval.runtime.clone import top_of
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.environments import find_program

_OWN = ".venv/bin/python"
_SHEBANG_BYTES = 512


def interpreter_of(agent: Path, context: RunContext) -> str | None:
    """Return the interpreter for the agent in the folder `agent`; `None` for our own.

    It is that of the nearest `.venv` in the agent's folder or those above it in its repository, or
    else the one that `adk` on the PATH runs under.
    """
    for folder in _upwards(agent, context.root):
        if _is_program(folder / _OWN):
            return str(folder / _OWN)
    command = find_program("adk", root=context.root, env=context.env)
    return _interpreter_of_script(Path(command)) if command else None


def _upwards(agent: Path, root: Path) -> Iterator[Path]:
    """Yield the folder `agent` and those above it, up to the repository, else up to `root`."""
    top = top_of(agent) or root
    yield agent
    if agent.is_relative_to(top):
        yield from (up for up in agent.parents if up.is_relative_to(top))


def _interpreter_of_script(script: Path) -> str | None:
    """Return the Python that a script of an installed package runs under."""
    beside = script.resolve().parent / "python"
    if _is_program(beside):
        return str(beside)
    with script.open("rb") as file:
        first = file.readline(_SHEBANG_BYTES).decode(errors="replace")
    named = Path(first.removeprefix("#!").strip())
    is_python = first.startswith("#!") and named.name.startswith("python")
    return str(named) if is_python and _is_program(named) else None


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
