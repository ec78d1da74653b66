"""Agents of Google ADK."""

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from ci_eval.agents._adk_events import refuse_silence, to_invocation
from ci_eval.agents._framework_agent import Framework
from ci_eval.plugins.points import agent
from ci_eval.records.cases import Content, Invocation, Json
from ci_eval.records.errors import UsageError
from ci_eval.records.trials import Trial
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.path_checks import contained, similar_path
from ci_eval.runtime.python_modules import names_error
from ci_eval.text.yaml_files import MAX_CONFIG, read_text

_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_AGENT_NAMES = ("root_agent", "app", "get_agent_async")
"""The possible names of an agent in its module; the first is the usual one."""
_AGENT_FILES = ("__init__.py", "agent.py", "root_agent.yaml")
MAX_EVENTS = 2000
"""Maximum number of events in a memento; longer conversations have no memento."""


@agent("adk")
class Adk(Framework):
    """An agent of Google ADK, 2.3 or later, loaded and run as by `adk eval`, in worker processes.

    In its folder it is the `app` of the module `agent`, else `root_agent`, else the result of
    `get_agent_async()`, else `root_agent.yaml`.  The nearest `.env`, in its folder or above, is
    read; variables that are already set take precedence.  An `App` is used with its plugins and
    its configuration.

    The trace is what `adk eval` of the same version stores.  However, each conversation has its
    own sessions, artifacts and memory, and toolsets stay open until all conversations have ended.
    A long-running call that is not answered in the same run, a request for confirmation and a
    request for input wait for an answer.  A canned result replaces a tool of any toolset, after
    the agent's callbacks and the tool's request for confirmation.  A canned error is passed to
    the model as `{"error": message}`.
    """

    adk: str = Field(min_length=1)
    """The agent's folder, as for `adk eval`, relative to the folder of the configuration, or a
    module, such as `shop.agents.weather`."""
    agent: str | None = Field(default=None, min_length=1)
    """The name of a sub-agent to run instead of the root agent."""
    features: Mapping[str, bool] = {}
    """Features of ADK to enable or disable, such as `AGENT_STATE: true`; others are as in ADK."""

    def check(self, context: RunContext) -> Iterator[tuple[str, str]]:
        """Yield the errors in the folder, the interpreter and the environment."""
        yield from super().check(context)
        try:
            path = contained(context.root, self.adk)
        except UsageError as exc:
            yield "adk", str(exc)
            return
        if path.is_dir():
            found = [path / name for name in _AGENT_FILES if (path / name).is_file()]
            if not found:
                yield "adk", f"{self.adk} has none of __init__.py, agent.py and root_agent.yaml"
            elif message := _without_agent(found, context.root):
                yield "adk", message
        elif path.exists():
            yield "adk", f"{self.adk!r} is not a folder; name its folder"
        elif not _MODULE.fullmatch(self.adk):
            yield "adk", f"there is no folder {self.adk!r}{similar_path(context.root, self.adk)}"

    def file_variables(self, context: RunContext) -> Mapping[str, str]:
        """Return the variables of the nearest `.env`, which ADK reads."""
        try:
            folder = contained(context.root, self.adk)
            top = context.clone.top or context.root
            within = [each for each in (folder, *folder.parents) if each.is_relative_to(top)]
            path = next((each / ".env" for each in within if (each / ".env").is_file()), None)
            text = read_text(path, shown=".env", most=MAX_CONFIG) if path else ""
        except UsageError:
            return {}  # the folder is wrong, as `check` reports, or ADK cannot read the file either
        from dotenv import dotenv_values

        found = dotenv_values(stream=io.StringIO(text), interpolate=False)
        return {name: value for name, value in found.items() if value}

    def targets(self) -> Iterator[tuple[str, str]]:
        """Yield the agent if it is a module."""
        if _MODULE.fullmatch(self.adk):
            yield "adk", self.adk

    def opening(self, trial: Trial, session_id: str) -> dict[str, Any]:
        """Return the session; the default app and user are ADK's."""
        defaults = {"app_name": "EvaluationGenerator", "user_id": "test_user_id"}
        return super().opening(trial, session_id) | ({} if trial.case.session_input else defaults)

    def invocation(self, message: Content, reply: Mapping[str, Json], seconds: float) -> Invocation:
        """Convert the events of a run to an invocation.

        Raises:
            TrialError: an event is invalid, or there is none.

        """
        details = {"duration": seconds, **reply}
        found = to_invocation(reply["events"], message, rules=reply["rules"], details=details)
        if not reply.get("error"):
            refuse_silence(reply["events"], found)
        return found

    def memento(self, earlier: Json, reply: Mapping[str, Json], state: Json) -> Json:
        """Return all events so far and the state; `None` if events are missing, or too many."""
        events = earlier["events"] if earlier else []
        if len(events) != reply["behind"] or len(events) > MAX_EVENTS:
            return None
        return {"events": [*events, *reply["events"]], "state": state}


def _without_agent(files: Sequence[Path], root: Path) -> str:
    """Return why the modules in `files` define no agent; empty if they may."""
    folder, names = files[-1].parent, [*_AGENT_NAMES]
    if files[-1].suffix != ".py" or not any(file.stat().st_size for file in files):
        return ""
    if (package := folder / "agent" / "__init__.py").is_file():
        files = [*files, package]
    elif not (folder / "agent.py").is_file():
        names.append("agent")  # imported from anywhere, it may have the root agent
    return names_error(files, root, names)
