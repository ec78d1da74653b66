"""Calls a tool that raises."""

from google.adk.agents import LlmAgent
from scripted import call, model


def broken() -> str:
    """Break."""
    raise RuntimeError("the tool is broken")


root_agent = LlmAgent(name="raising", model=model(lambda _: [call("broken")]), tools=[broken])
