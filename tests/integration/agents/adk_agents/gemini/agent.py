"""A Gemini, at the address that the environment names."""

from google.adk.agents import LlmAgent


def weather(city: str) -> dict:
    """Tell the weather."""
    return {"report": f"sunny in {city}"}


root_agent = LlmAgent(
    name="gemini", model="gemini-2.5-flash", instruction="Tell the weather.", tools=[weather]
)
