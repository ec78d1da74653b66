"""Graphs of LangGraph whose model does as the user says: `call TOOL CITY`, or it repeats."""

import asyncio
import operator
from typing import Annotated, Any, TypedDict

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import interrupt

USED = {
    "input_tokens": 10,
    "output_tokens": 5,
    "total_tokens": 15,
    "output_token_details": {"reasoning": 2},
}


class Model(BaseChatModel):
    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self.bind(tools=[convert_to_openai_tool(each) for each in tools])

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        last = messages[-1]
        if last.type == "tool" and "Nowhere" in last.content:
            raise ValueError("nowhere")
        told = {"usage_metadata": USED, "response_metadata": {"model_name": "scripted-1"}}
        if last.type == "human" and last.content.startswith("call "):
            _call, name, city = last.content.split()
            calls = [{"id": f"call-{len(messages)}", "name": name, "args": {"city": city}}]
            message = AIMessage("", tool_calls=calls, **told)
        else:
            turn = sum(each.type == "human" for each in messages)
            if "be cut off" in last.content:
                told["response_metadata"] = {"model_name": "scripted-1", "finish_reason": "length"}
            message = AIMessage(f"{turn}: {last.content}", **told)
        return ChatResult(generations=[ChatGeneration(message=message)])


@tool
async def weather(city: str) -> dict:
    """Look out of the window."""
    await asyncio.sleep(0.02)
    return {"city": city}


@tool
def broken(city: str) -> str:
    """Break."""
    raise RuntimeError(f"no {city}")


@tool
def ask(city: str) -> str:
    """Ask somebody."""
    return f"told {interrupt({'city': city})}"


class State(TypedDict):
    messages: Annotated[list[BaseMessage], add_messages]
    mood: str
    turns: Annotated[int, operator.add]


TOOLS = [weather, broken, ask]
model = Model().bind_tools(TOOLS)


async def agent(state: State) -> Any:
    prompt = [SystemMessage("Be kind."), *state["messages"]]
    return {"messages": [await model.ainvoke(prompt)], "turns": 1}


graph = StateGraph(State)
graph.add_node("agent", agent)
graph.add_node("tools", ToolNode(TOOLS, handle_tool_errors=True))
graph.add_edge(START, "agent")
graph.add_conditional_edges("agent", tools_condition)
graph.add_edge("tools", "agent")


async def made() -> Any:
    return graph.compile()


def cheer(_: State) -> Any:
    return {"mood": "good"}


team = StateGraph(State)
team.add_node("team", graph.compile())
team.add_node("cheer", cheer)
team.add_edge(START, "team")
team.add_edge("team", "cheer")
team.add_edge("cheer", END)

gated = StateGraph(State)
gated.add_node("agent", agent)
gated.add_node("cheer", cheer)
gated.add_edge(START, "agent")
gated.add_edge("agent", "cheer")
gated.add_edge("cheer", END)
gated = gated.compile(interrupt_before=["cheer"])


class Question(TypedDict):
    question: str
    answer: str


async def look(state: Question) -> Any:
    """Call a tool and a model without a message of it in the state."""
    seen = await weather.ainvoke({"city": state["question"]})
    said = await Model().ainvoke(seen["city"])
    return {"answer": f"{said.content}!"}


question = StateGraph(Question)
question.add_node("look", look)
question.add_edge(START, "look")
question.add_edge("look", END)


async def said_plainly(state: State) -> Any:
    """Say the same things as `agent`, in forms that are no objects yet."""
    last = state["messages"][-1]
    if last.type == "tool":
        return {"messages": ("assistant", f"plainly {last.content}")}
    function = {"name": "weather", "arguments": '{"city": "Rome"}'}
    call = {"id": "call-1", "type": "function", "function": function}
    return {"messages": [{"role": "assistant", "content": "Wait.", "tool_calls": [call]}]}


plain = StateGraph(State)
plain.add_node("agent", said_plainly)
plain.add_node("tools", ToolNode(TOOLS))
plain.add_edge(START, "agent")
plain.add_conditional_edges("agent", tools_condition)
plain.add_edge("tools", "agent")

plain_team = StateGraph(State)
plain_team.add_node("team", plain.compile())
plain_team.add_edge(START, "team")
plain_team.add_edge("team", END)


def fail(_: State) -> Any:
    raise ValueError("nothing to say")


failing = StateGraph(State)
failing.add_node("fail", fail)
failing.add_edge(START, "fail")
number = 7
