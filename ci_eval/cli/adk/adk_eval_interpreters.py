"""Default Python interpreter of an ADK agent."""

from pathlib import Path

from ci_eval.runtime.clone import top_of
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.environments import find_program, is_program, own_python

_SHEBANG_BYTES = 512


def interpreter_of(agent: Path, context: RunContext) -> str | None:
    """Return the interpreter for the agent in the folder `agent`; `None` for our own.

    It is that of the nearest `.venv`, in the agent's folder or a folder above it in the repository,
    or else the one that runs `adk` on the PATH.
    """
    own = own_python(agent, top_of(agent) or context.root)
    if own:
        return str(own)
    command = find_program("adk", root=context.root, env=context.env)
    return _interpreter_of_script(Path(command)) if command else None


def _interpreter_of_script(script: Path) -> str | None:
    """Return the Python that a script of an installed package runs under."""
    beside = script.resolve().parent / "python"
    if is_program(beside):
        return str(beside)
    with script.open("rb") as file:
        first = file.readline(_SHEBANG_BYTES).decode(errors="replace")
    named = Path(first.removeprefix("#!").strip())
    is_python = first.startswith("#!") and named.name.startswith("python")
    return str(named) if is_python and is_program(named) else None
