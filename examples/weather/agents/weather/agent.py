"""A weather agent as Google ADK has it; `traces/weather.jsonl` shows what it answers."""

from google.adk.agents import LlmAgent

REPORTS = {
    "Paris": "18 °C and sunny",
    "Oslo": "4 °C with light rain",
    "Cairo": "31 °C and clear",
    "Lima": "19 °C and cloudy",
}


def get_weather(city: str) -> dict[str, str]:
    """Return the weather report for a city."""
    return {"report": REPORTS.get(city, "unknown")}


root_agent = LlmAgent(
    name="weather",
    model="gemini-2.5-flash",
    instruction="Answer questions about the weather, in one sentence. Decline all others.",
    tools=[get_weather],
)
