"""Eval configs and evalsets of AgentFlow that a Python file builds: `evals/conf.py[:NAME]`.

The file is code of the change, so it runs like an agent: in a separate process, with the
interpreter and environment of an agent, isolated, and killed like an agent.  Only commands that run
agents run it, and those with `--run-python` (`RunContext.runs_python`).
"""

import asyncio
import json
import re
from collections.abc import Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

from ci_eval.config.handed_secrets import handed
from ci_eval.config.open_evalset import open_evalset
from ci_eval.plugins.points import Agent
from ci_eval.records.cases import Json
from ci_eval.records.errors import TrialError, UsageError
from ci_eval.records.evalset_facts import OpenedEvalSet
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.isolation import close_memory
from ci_eval.runtime.path_checks import contained, similar_path
from ci_eval.runtime.workers.user_function import UnderPython
from ci_eval.runtime.workers.worker_pool import Adapter
from ci_eval.runtime.workspace import agent_workspace
from ci_eval.text.redact import print_none_of

_WRITTEN = re.compile(r"(?P<file>.+\.py)(:(?P<name>[^\W\d]\w*(\.[^\W\d]\w*)*))?")
Kind = Literal["EvalConfig", "EvalSet"]


class PythonFile(NamedTuple):
    """A Python file, as a configuration names it."""

    file: str
    """Its path, relative to the folder of the configuration."""
    name: str
    """The value or function in it; empty if there is only one."""

    @property
    def module(self) -> str:
        """Its name as a module."""
        return self.file.removesuffix(".py").replace("/", ".")


def python_file(given: object) -> PythonFile | None:
    """Return the Python file that a path in a configuration names, if it names one."""
    found = _WRITTEN.fullmatch(given) if isinstance(given, str) else None
    return PythonFile(found["file"], found["name"] or "") if found else None


def host_of(agents: Mapping[str, Agent]) -> UnderPython:
    """Return the agent whose interpreter, setup and environment Python files get.

    It is the first AgentFlow agent, else the first agent in Python, else a default.
    """
    first = sorted(agents.values(), key=lambda agent: agent.type_name != "agentflow")
    candidates: list[object] = [*first, UnderPython()]
    return next(each for each in candidates if isinstance(each, UnderPython))


def not_run(file: PythonFile) -> str:
    """Return the message of commands that do not run such a file."""
    return (
        f"{file.file} is Python, which this command does not run; use `ci-eval run`, or `ci-eval "
        "validate` or `ci-eval plan` with `--run-python`"
    )


def absent_file(file: PythonFile, context: RunContext) -> str:
    """Return why the file cannot be run; empty if it exists."""
    try:
        if contained(context.root, file.file).is_file():
            return ""
    except UsageError as exc:
        return str(exc)
    return f"there is no file {file.file!r}{similar_path(context.root, file.file)}"


@contextmanager
def as_json(file: PythonFile, kind: Kind, host: UnderPython, context: RunContext) -> Iterator[Path]:
    """Run `file`, and provide what it builds in a JSON file until the context is left.

    Raises:
        TrialError: the file cannot be run, or does not build an object of this kind.

    """
    if message := absent_file(file, context):
        raise TrialError("start", message)
    # The secrets that agents get are only registered once the configuration is loaded.
    secrets = context.secrets.with_more(handed(host, context))
    print_none_of(secrets)
    context.clone.look()
    close_memory()
    context.say(f"running {context.shown(file.file)}")
    try:
        # Only a setup may create files, because other files are read afterwards.
        with agent_workspace(context, {}, writable=bool(host.setup)) as room:
            adapter = Adapter("agentflow_evals", {"type": kind, "name": file.name})
            value = _in_loop(host.ask_once(file.file, room, adapter=adapter))
    except TrialError as exc:
        exc.args = (secrets.text(str(exc)),)  # the message may be posted
        raise
    with TemporaryDirectory(prefix="ci-eval-") as folder:
        path = Path(folder, "built.json")
        # On one line, because its line numbers would not be those of the Python file.
        path.write_text(json.dumps(value), encoding="utf-8")
        yield path


def open_built(file: PythonFile, host: UnderPython, context: RunContext) -> OpenedEvalSet:
    """Return the evalset that `file` builds.

    Raises:
        TrialError: the file cannot be run, or builds none.
        UsageError: what it builds is not a valid evalset.

    """
    with as_json(file, "EvalSet", host, context) as path:
        opened = open_evalset(path, shown=context.shown(file.file))
        return replace(opened, cases=[*opened.cases()].__iter__)


def _in_loop(work: Coroutine[Any, Any, Json]) -> Json:
    """Run `work` in a separate event loop: the base arm is prepared while another loop runs."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()
