"""Graphs of LangGraph as agents."""

from collections.abc import Mapping

from pydantic import Field

from ci_eval.agents._framework_agent import Framework, ObjectName
from ci_eval.plugins.points import agent
from ci_eval.records.cases import Json


@agent("langgraph")
class LangGraph(Framework):
    """A graph of LangGraph, `module:name`, in its own worker processes.

    The trajectory consists of the messages that its nodes write to the state, each with the name of
    its node; `parent/node` is a node of a subgraph.  `nodes` are those that wrote to the state, in
    the order in which they finished.  Each conversation is a separate thread of the graph's
    checkpointer, or of one in memory if the graph has none.  The thread begins with those keys of
    the case's session state that the graph's state also has; the final state is the state as JSON.
    An interrupted graph waits for an answer to `interrupt(value=…)`, at a breakpoint to
    `interrupt(before=[…])`.
    """

    langgraph: ObjectName
    """The graph, such as `app.graph:graph`, compiled or not, or a sync or async function without
    arguments that returns it. Modules are imported from the folder of the configuration, which is
    also the working directory."""
    input: str = Field(default="messages", min_length=1)
    """The state key for the user's message; any key other than `messages` gets it as text."""
    output: str | None = Field(default=None, min_length=1)
    """The state key with the final response; default: that of `input`. With `messages`, it is the
    last message."""
    config: Mapping[str, Json] = Field(default_factory=dict)
    """The config that the graph is invoked with: `recursion_limit`, `configurable` …"""
