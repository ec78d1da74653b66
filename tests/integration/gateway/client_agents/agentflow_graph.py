"""A graph of AgentFlow: one agent asks Gemini and has a tool, the next asks OpenAI."""

from agentflow.core.graph import Agent, StateGraph, ToolNode
from agentflow.utils.constants import END


def weather(city: str) -> dict:
    """Tell the weather."""
    return {"report": f"sunny in {city}"}


tools = ToolNode([weather])
first = Agent(
    model="gemini-2.5-flash",
    provider="google",
    system_prompt=[{"role": "system", "content": "Tell the weather."}],
    tool_node=tools,
)
second = Agent(
    model="gpt-4.1-mini",
    provider="openai",
    system_prompt=[{"role": "system", "content": "Be polite."}],
)


def route(state):
    return "TOOL" if state.context[-1].tools_calls else "SECOND"


graph = StateGraph()
graph.add_node("FIRST", first)
graph.add_node("TOOL", tools)
graph.add_node("SECOND", second)
graph.set_entry_point("FIRST")
graph.add_conditional_edges("FIRST", route, {"TOOL": "TOOL", "SECOND": "SECOND"})
graph.add_edge("TOOL", "FIRST")
graph.add_edge("SECOND", END)
