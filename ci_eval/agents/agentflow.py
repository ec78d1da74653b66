"""An agent that is a graph of AgentFlow."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from ci_eval.agents._framework import Framework
from ci_eval.agents._object_name import ObjectName
from ci_eval.plugins.points import agent
from ci_eval.records.model import Json
from ci_eval.records.trials import Trial
from ci_eval.runtime.context import RunContext


@agent("agentflow")
class AgentFlow(Framework):
    """A graph of AgentFlow (10xGraph), `module:name`, in worker processes of its own.

    The messages of its nodes are the trajectory, each under the name of its node: those of plain
    functions, too, and calls of tools that raise.  `nodes` are all that were visited, `__start__`
    and tool nodes as well.  Each conversation is a thread of its own; the session state of the
    case begins it, as far as the graph's state has such fields, and the state without its
    messages is the final state.  A graph that calls `interrupt()` waits for an answer to
    `interrupt(value=…)`, at a breakpoint to `interrupt(node=…)`, at a remote tool to the call.
    """

    adapter: ClassVar[str] = "agentflow"

    agentflow: ObjectName
    """The graph, such as `app.graph:graph`, compiled or not, or a function without arguments,
    sync or async, that makes it. Modules are found from the folder of the configuration, which
    is the working directory, too."""
    config: Mapping[str, Json] = Field(default_factory=dict)
    """What else the graph is invoked with, such as `recursion_limit`; `session_input.config` of
    a case adds to it."""

    def target(self, context: RunContext) -> str:
        """Return the name of the graph."""
        del context
        return self.agentflow

    def options(self) -> Mapping[str, Json]:
        """Return what else the graph is invoked with."""
        return {"config": dict(self.config)}

    def opening(self, trial: Trial, session_id: str) -> dict[str, Any]:
        """Return the session, with the configuration that AgentFlow's files give a case."""
        session = super().opening(trial, session_id)
        given = trial.case.session_input
        config = (given.model_extra or {}).get("config") if given else None
        return {**session, "config": config} if isinstance(config, dict) else session
