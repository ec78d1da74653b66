"""An agent of ADK with a tool, which gets Gemini's answers as streams."""

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.runners import InMemoryRunner
from google.genai import types


def weather(city: str) -> dict:
    """Tell the weather."""
    return {"report": f"sunny in {city}"}


root_agent = LlmAgent(
    name="streams", model="gemini-2.5-flash", instruction="Tell the weather.", tools=[weather]
)
runner = InMemoryRunner(agent=root_agent, app_name="bot")
config = RunConfig(streaming_mode=StreamingMode.SSE)


async def answer(message):
    session = await runner.session_service.create_session(app_name="bot", user_id="user")
    asked = types.Content(role="user", parts=[types.Part(text=message)])
    events = runner.run_async(
        user_id="user", session_id=session.id, new_message=asked, run_config=config
    )
    parts = [part async for event in events for part in event.content.parts if event.partial]
    return "".join(part.text or "" for part in parts)
