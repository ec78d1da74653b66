"""An agent of the OpenAI Agents SDK."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from ci_eval.agents._framework import Framework
from ci_eval.agents._object_name import ObjectName
from ci_eval.plugins.points import agent
from ci_eval.records.model import Json
from ci_eval.runtime.context import RunContext


@agent("openai_agents")
class OpenAIAgents(Framework):
    """An agent of the OpenAI Agents SDK, `module:name`, in worker processes of its own.

    The items of a run are the trajectory, each under the name of its agent; a handoff is a call
    of its tool, `transfer_to_…`.  The next message goes to the agent that spoke last, with all
    that was said.  A call that needs an approval waits to be answered with `true` or `false`.
    Nothing is traced.
    """

    adapter: ClassVar[str] = "openai_agents"

    openai_agents: ObjectName
    """The agent, such as `app.agents:triage`, or a function without arguments, sync or async,
    that makes it. Modules are found from the folder of the configuration, which is the working
    directory, too."""
    context: ObjectName | None = None
    """A function that gets the session state, a dictionary, and returns the context of the run;
    left out, the dictionary is it. What JSON can hold of the context is the final state."""
    max_turns: int = Field(default=10, ge=1)
    """How often models may be asked on one message."""

    def target(self, context: RunContext) -> str:
        """Return the name of the agent."""
        del context
        return self.openai_agents

    def options(self) -> Mapping[str, Json]:
        """Return what makes the context, and the limit."""
        return {"context": self.context, "max_turns": self.max_turns}
