"""Graphs of AgentFlow as agents."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from ci_eval.agents._framework_agent import Framework, ObjectName
from ci_eval.plugins.points import agent
from ci_eval.records.cases import Json
from ci_eval.records.trials import Trial


@agent("agentflow")
class AgentFlow(Framework):
    """A graph of AgentFlow (10xGraph), `module:name`, in its own worker processes.

    The trajectory consists of the messages of its nodes, each with the name of its node, including
    those of plain functions and calls of tools that raise.  `nodes` are all visited nodes,
    including `__start__` and tool nodes.  Each conversation is a separate thread, which begins
    with those fields of the case's session state that the graph's state also has; the final state
    is the state without messages.  A graph that calls `interrupt()` waits for an answer to
    `interrupt(value=…)`, at a breakpoint to `interrupt(node=…)`, at a remote tool to the call.
    """

    agentflow: ObjectName
    """The graph, such as `app.graph:graph`, compiled or not, or a sync or async function without
    arguments that returns it. Modules are imported from the folder of the configuration, which is
    also the working directory."""
    config: Mapping[str, Json] = Field(default_factory=dict)
    """The config that the graph is invoked with, such as `recursion_limit`; `session_input.config`
    of a case adds to it."""

    def opening(self, trial: Trial, session_id: str) -> dict[str, Any]:
        """Return the session, with the case's config from AgentFlow's files, if any."""
        session = super().opening(trial, session_id)
        given = trial.case.session_input
        config = (given.model_extra or {}).get("config") if given else None
        return {**session, "config": config} if isinstance(config, dict) else session
