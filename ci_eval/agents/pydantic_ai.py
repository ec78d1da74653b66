"""An agent of Pydantic AI."""

from collections.abc import Mapping
from typing import ClassVar

from ci_eval.agents._framework import Framework
from ci_eval.agents._object_name import ObjectName
from ci_eval.plugins.points import agent
from ci_eval.records.model import Json
from ci_eval.runtime.context import RunContext


@agent("pydantic_ai")
class PydanticAI(Framework):
    """An agent of Pydantic AI, `module:name`, in worker processes of its own.

    The messages of a run are the trajectory; the call of an output tool is none, it is the final
    response.  An output that is no text is a text of JSON.  A call that needs an approval waits
    to be answered with `true` or `false`, a deferred one with what its tool would return, where
    the agent's `output_type` has `DeferredToolRequests`.  A canned `error` is what a tool says
    with `ToolFailed`.
    """

    adapter: ClassVar[str] = "pydantic_ai"

    pydantic_ai: ObjectName
    """The agent, such as `app.agents:support`, or a function without arguments, sync or async,
    that makes it. Modules are found from the folder of the configuration, which is the working
    directory, too."""
    deps: ObjectName | None = None
    """A function that gets the session state, a dictionary, and returns the dependencies of the
    run; left out, the dictionary is it. What JSON can hold of them is the final state."""

    def target(self, context: RunContext) -> str:
        """Return the name of the agent."""
        del context
        return self.pydantic_ai

    def options(self) -> Mapping[str, Json]:
        """Return what makes the dependencies."""
        return {"deps": self.deps}
