"""An app with a plugin that keeps a tool from being called."""

from google.adk.agents import LlmAgent
from google.adk.apps.app import App
from google.adk.plugins.base_plugin import BasePlugin
from scripted import answers, call, model


class Guard(BasePlugin):
    async def before_tool_callback(self, *, tool, tool_args, tool_context):
        return {"result": "guarded by the plugin"}

    async def on_user_message_callback(self, *, invocation_context, user_message):
        invocation_context.session.state["met"] = True


def touch() -> str:
    """Touch."""
    return "touched"


agent = LlmAgent(
    name="guarded",
    model=model(lambda r: str(answers(r)[0]["result"]) if answers(r) else [call("touch")]),
    tools=[touch],
)
app = App(name="guarded_app", root_agent=agent, plugins=[Guard("guard")])
root_agent = agent
