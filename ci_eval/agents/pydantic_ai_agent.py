"""Agents of Pydantic AI."""

from ci_eval.agents._framework_agent import Framework, ObjectName
from ci_eval.plugins.points import agent


@agent("pydantic_ai")
class PydanticAI(Framework):
    """An agent of Pydantic AI, `module:name`, in its own worker processes.

    The trajectory consists of the messages of a run, except that the call of an output tool is the
    final response.  An output that is not text is converted to JSON.  If the agent's `output_type`
    includes `DeferredToolRequests`, a call that needs approval waits for the answer `true` or
    `false`, and a deferred call for its tool's result.  A canned `error` is raised as `ToolFailed`.
    """

    pydantic_ai: ObjectName
    """The agent, such as `app.agents:support`, or a sync or async function without arguments that
    returns it. Modules are imported from the folder of the configuration, which is also the
    working directory."""
    deps: ObjectName | None = None
    """A function that gets the session state, a dictionary, and returns the dependencies of the
    run; default: the dictionary itself. The final state is the dependencies as JSON."""
