"""Calls two tools at once, then one, then says what came of it; thinks before."""

from google.adk.agents import LlmAgent
from scripted import answers, asked, call, model, text


def answer(request):
    found = answers(request)
    if not found:
        city = asked(request)
        thought = text("Both are needed.", thought=True)
        return [thought, call("weather", city=city), call("time_in", city=city, summer=True)]
    if len(found) == 2:
        return [text("Let me add it up."), call("add", left=1, right=2.5)]
    return [text("All of it.", thought=True), text(f"It makes {found[0].get('result')}.")]


def weather(city: str) -> dict:
    """Tell the weather."""
    return {"report": f"sunny in {city}", "degrees": [20, 21.5]}


async def time_in(city: str, summer: bool = False) -> str:
    """Tell the time."""
    return "12:00"


def add(left: float, right: float) -> float:
    """Add."""
    return left + right


root_agent = LlmAgent(
    name="tools", model=model(answer), instruction="Help.", tools=[weather, time_in, add]
)
