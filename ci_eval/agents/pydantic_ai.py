"""Agents of Pydantic AI."""

from collections.abc import Mapping
from typing import ClassVar

from ci_eval.agents._framework import Framework
from ci_eval.agents._object_name import ObjectName
from ci_eval.plugins.points import agent
from ci_eval.records.model import Json
from ci_eval.runtime.context import RunContext


@agent("pydantic_ai")
class PydanticAI(Framework):
    """An agent of Pydantic AI, `module:name`, in its own worker processes.

    The trajectory is the messages of a run; the call of an output tool is the final response
    instead.  An output that is not text is converted to JSON.  If the agent's `output_type` has
    `DeferredToolRequests`, a call that needs approval waits for the answer `true` or `false`, and a
    deferred call for its tool's result.  A canned `error` is raised as `ToolFailed`.
    """

    adapter: ClassVar[str] = "pydantic_ai"

    pydantic_ai: ObjectName
    """The agent, such as `app.agents:support`, or a sync or async function without arguments that
    returns it. Modules are imported from the folder of the configuration, which is also the
    working directory."""
    deps: ObjectName | None = None
    """A function that gets the session state, a dictionary, and returns the dependencies of the
    run; default: the dictionary itself. The final state is the dependencies as JSON."""

    def target(self, context: RunContext) -> str:
        """Return the name of the agent."""
        del context
        return self.pydantic_ai

    def options(self) -> Mapping[str, Json]:
        """Return the function for the dependencies."""
        return {"deps": self.deps}
