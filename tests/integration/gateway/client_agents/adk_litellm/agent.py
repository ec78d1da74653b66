"""Three agents of ADK in a row, each with a tool; LiteLLM asks another provider for each."""

from google.adk.agents import LlmAgent, SequentialAgent
from google.adk.models.lite_llm import LiteLlm


def weather(city: str) -> dict:
    """Tell the weather."""
    return {"report": f"sunny in {city}"}


def asking(model: str) -> LlmAgent:
    name = model.partition("/")[0]
    return LlmAgent(
        name=name, model=LiteLlm(model=model), instruction="Tell the weather.", tools=[weather]
    )


models = ("openai/gpt-4.1-mini", "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-flash")
root_agent = SequentialAgent(name="all", sub_agents=[asking(each) for each in models])
