"""An app that can be resumed, with an agent that waits within a sequence."""

from google.adk.agents import LlmAgent, SequentialAgent
from google.adk.apps.app import App, ResumabilityConfig
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from scripted import answers, call, model


def permit(what: str) -> None:
    """Ask for a permission."""


def ask(request):
    found = answers(request)
    return f"Answered: {found[-1]}." if found else [call("permit", what="a trip")]


asking = LlmAgent(name="asking", model=model(ask), tools=[LongRunningFunctionTool(permit)])
closing = LlmAgent(name="closing", model=model(lambda _: "All is settled."))
app = App(
    name="resumable",
    root_agent=SequentialAgent(name="steps", sub_agents=[asking, closing]),
    resumability_config=ResumabilityConfig(is_resumable=True),
)
