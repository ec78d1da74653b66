"""Hands over to a sub agent, which has a tool, and says something before."""

from google.adk.agents import LlmAgent
from scripted import call, model, text


def lead(request):
    return [text("One moment."), call("transfer_to_agent", agent_name="expert")]


def expert(request):
    parts = [part for content in request.contents for part in content.parts]
    answers = [part.function_response.name for part in parts if part.function_response]
    return "It is 42." if "look_up" in answers else [call("look_up")]


def look_up() -> str:
    """Look it up."""
    return "42"


root_agent = LlmAgent(
    name="lead",
    model=model(lead),
    instruction="Find somebody.",
    sub_agents=[
        LlmAgent(
            name="expert",
            description="Knows.",
            model=model(expert),
            instruction="Look it up.",
            tools=[look_up],
        )
    ],
)
