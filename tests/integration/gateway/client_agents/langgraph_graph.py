"""A graph of LangGraph with a tool, which asks OpenAI by LangChain."""

from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition


@tool
def weather(city: str) -> dict:
    """Tell the weather."""
    return {"report": f"sunny in {city}"}


model = ChatOpenAI(model="gpt-4.1-mini").bind_tools([weather])


async def call(state):
    return {"messages": [await model.ainvoke(state["messages"])]}


graph = StateGraph(MessagesState)
graph.add_node("call", call)
graph.add_node("tools", ToolNode([weather]))
graph.add_edge(START, "call")
graph.add_conditional_edges("call", tools_condition)
graph.add_edge("tools", "call")
