"""An agent of the OpenAI Agents SDK with a tool."""

from agents import Agent, function_tool


@function_tool
def weather(city: str) -> dict:
    """Tell the weather."""
    return {"report": f"sunny in {city}"}


agent = Agent(name="bot", instructions="Answer.", model="gpt-4.1-mini", tools=[weather])
