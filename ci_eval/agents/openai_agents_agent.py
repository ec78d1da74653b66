"""Agents of the OpenAI Agents SDK."""

from pydantic import Field

from ci_eval.agents._framework_agent import Framework, ObjectName
from ci_eval.plugins.points import agent


@agent("openai_agents")
class OpenAIAgents(Framework):
    """An agent of the OpenAI Agents SDK, `module:name`, in its own worker processes.

    The trajectory consists of the items of a run, each with the name of its agent; a handoff is a
    call of its tool, `transfer_to_…`.  The next message goes to the agent that responded last, with
    the whole conversation.  A call that needs approval waits for the answer `true` or `false`.
    The SDK's tracing is disabled.
    """

    openai_agents: ObjectName
    """The agent, such as `app.agents:triage`, or a sync or async function without arguments that
    returns it. Modules are imported from the folder of the configuration, which is also the
    working directory."""
    context: ObjectName | None = None
    """A function that gets the session state, a dictionary, and returns the context of the run;
    default: the dictionary itself. The final state is the context as JSON."""
    max_turns: int = Field(default=10, ge=1)
    """Maximum number of model calls for one message."""
