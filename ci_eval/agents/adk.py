"""An agent of Google ADK."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from pydantic import Field

from ci_eval.agents._adk_events import refuse_silence, to_invocation
from ci_eval.agents._framework import Framework
from ci_eval.plugins.points import agent
from ci_eval.records.errors import UsageError
from ci_eval.records.model import Content, Invocation, Json
from ci_eval.records.trials import Trial
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.paths import contained

_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_MADE_OF = ("__init__.py", "agent.py", "root_agent.yaml")
MAX_EVENTS = 2000
"""A conversation of more events leaves no memento."""


@agent("adk")
class Adk(Framework):
    """An agent of Google ADK, 2.3 or later, found and run as by `adk eval`, in worker processes.

    In its folder it is the `app` of the module `agent`, else `root_agent`, else what
    `get_agent_async()` returns; else `root_agent.yaml`.  The nearest `.env`, from its folder
    upwards, is read; what the environment has already counts.  An `App` brings its plugins and
    its configuration.

    What is observed is what `adk eval` of the same version stores.  But sessions, artifacts and
    memory are each conversation's own, and toolsets stay open until all conversations are over.
    A call that takes its time and is not answered in the same run, a request for confirmation and
    one for input wait for an answer.  A canned result takes the place of a tool, whatever toolset
    it is from: the callbacks of the agent and the confirmation that the tool asks for come first,
    as ever.  A canned error is told to the model as `{"error": message}`.
    """

    adapter: ClassVar[str] = "adk"

    adk: str = Field(min_length=1)
    """The folder of the agent as `adk eval` takes it, from the folder of the configuration, or a
    module, such as `shop.agents.weather`."""
    agent: str | None = Field(default=None, min_length=1)
    """The name of an agent below the root agent that is asked instead of it."""

    def target(self, context: RunContext) -> str:
        """Return the folder or the module."""
        del context
        return self.adk

    def options(self) -> Mapping[str, Json]:
        """Return which agent of it is meant."""
        return {"agent": self.agent}

    def check(self, context: RunContext) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with the folder, the interpreter and the environment."""
        yield from super().check(context)
        try:
            path = contained(context.root, self.adk)
        except UsageError as exc:
            yield "adk", str(exc)
            return
        if path.is_dir():
            if not any(path.joinpath(name).is_file() for name in _MADE_OF):
                yield "adk", f"{self.adk} has none of __init__.py, agent.py and root_agent.yaml"
        elif path.exists():
            yield "adk", f"{self.adk!r} is no folder; name the one that it is in"
        elif not _MODULE.fullmatch(self.adk):
            yield "adk", f"there is no folder {self.adk!r}"

    def opening(self, trial: Trial, session_id: str) -> dict[str, Any]:
        """Return the session; where the case names no app and no user, they are ADK's."""
        nobody = {"app_name": "EvaluationGenerator", "user_id": "test_user_id"}
        return super().opening(trial, session_id) | ({} if trial.case.session_input else nobody)

    def invocation(self, message: Content, reply: Mapping[str, Json], seconds: float) -> Invocation:
        """Return what the events of a run come to.

        Raises:
            TrialError: they cannot be understood, or there is none.

        """
        told = {"duration": seconds, **reply}
        found = to_invocation(reply["events"], message, rules=reply["rules"], told=told)
        if not reply.get("error"):
            refuse_silence(reply["events"], found)
        return found

    def memento(self, earlier: Json, reply: Mapping[str, Json], state: Json) -> Json:
        """Return all events so far and the state; nothing where some are missing, or too many."""
        events = earlier["events"] if earlier else []
        if len(events) != reply["behind"] or len(events) > MAX_EVENTS:
            return None
        return {"events": [*events, *reply["events"]], "state": state}
