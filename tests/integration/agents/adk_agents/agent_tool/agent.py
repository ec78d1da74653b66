"""Has an agent as a tool."""

from google.adk.agents import LlmAgent
from google.adk.tools.agent_tool import AgentTool
from scripted import answers, call, model


def inner(request):
    return "It is 42." if answers(request) else [call("look_up")]


def look_up() -> str:
    """Look it up."""
    return "42"


expert = LlmAgent(name="expert", description="Knows.", model=model(inner), tools=[look_up])
root_agent = LlmAgent(
    name="lead",
    model=model(lambda r: "He says it." if answers(r) else [call("expert", request="Well?")]),
    tools=[AgentTool(expert)],
)
