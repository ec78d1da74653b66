"""An agent that is a graph of LangGraph."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from ci_eval.agents._framework import Framework
from ci_eval.agents._object_name import ObjectName
from ci_eval.plugins.points import agent
from ci_eval.records.model import Json
from ci_eval.runtime.context import RunContext


@agent("langgraph")
class LangGraph(Framework):
    """A graph of LangGraph, `module:name`, in worker processes of its own.

    The messages that its nodes put into the state are the trajectory, each under the name of its
    node; `parent/node` is a node of a graph within the graph.  `nodes` are those that wrote into
    the state, in the order in which they were done.  Each conversation is a thread of its own:
    of the graph's checkpointer, or of one in memory where it has none.  The session state of the
    case begins the thread, as far as the graph's state has such keys; what JSON can hold of the
    state is the final state.  A graph that is interrupted waits for an answer to
    `interrupt(value=…)`, at a breakpoint to `interrupt(before=[…])`.
    """

    adapter: ClassVar[str] = "langgraph"

    langgraph: ObjectName
    """The graph, such as `app.graph:graph`, compiled or not, or a function without arguments,
    sync or async, that makes it. Modules are found from the folder of the configuration, which
    is the working directory, too."""
    input: str = Field(default="messages", min_length=1)
    """The key of the state that the user's message belongs to; where it is not `messages`, that
    is given a text."""
    output: str | None = Field(default=None, min_length=1)
    """The key of the state that holds the final response; left out, the one of `input`. Of
    `messages`, it is the last one."""
    config: Mapping[str, Json] = Field(default_factory=dict)
    """What else the graph is invoked with, such as `recursion_limit` and `configurable`."""

    def target(self, context: RunContext) -> str:
        """Return the name of the graph."""
        del context
        return self.langgraph

    def options(self) -> Mapping[str, Json]:
        """Return where messages belong, and what else the graph is invoked with."""
        return {"input": self.input, "output": self.output, "config": dict(self.config)}
