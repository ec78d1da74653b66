"""An agent that is made by an async function."""

from contextlib import AsyncExitStack

from google.adk.agents import LlmAgent
from scripted import model


async def get_agent_async():
    return LlmAgent(name="later", model=model(lambda _: "At last.")), AsyncExitStack()
