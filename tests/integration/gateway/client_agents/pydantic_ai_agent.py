"""An agent of Pydantic AI with a tool."""

from pydantic_ai import Agent

agent = Agent("openai-chat:gpt-4.1-mini")


@agent.tool_plain
def weather(city: str) -> dict:
    """Tell the weather."""
    return {"report": f"sunny in {city}"}
