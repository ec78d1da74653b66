"""A graph of AgentFlow whose agent does as the user says: `call TOOL CITY`, or it repeats."""

import asyncio
import json
from typing import Any

from agentflow.core.graph import StateGraph, ToolNode
from agentflow.core.graph.base_agent import BaseAgent
from agentflow.core.state import AgentState, Message
from agentflow.core.state.message import TokenUsages
from agentflow.runtime.adapters.llm.base_converter import BaseConverter
from agentflow.runtime.adapters.llm.model_response_converter import ModelResponseConverter
from agentflow.utils import interrupt
from agentflow.utils.constants import END


class State(AgentState):
    mood: str = "none"
    turns: int = 0


async def weather(city: str) -> dict:
    """Look out of the window."""
    await asyncio.sleep(0.02)
    return {"city": city}


def broken(city: str) -> str:
    """Break."""
    raise RuntimeError(f"no {city}")


def ask(city: str) -> str:
    """Ask somebody."""
    return f"told {interrupt({'city': city})}"


def listed(city: str) -> list:
    """List."""
    return [city, 1]


TOOLS = ToolNode([weather, broken, ask, listed])


class AsItIs(BaseConverter):
    async def convert_response(self, response: Message) -> Message:
        return response

    async def convert_streaming_response(self, *_: Any, **__: Any) -> Any:
        yield


class Scripted(BaseAgent):
    def __init__(self) -> None:
        super().__init__("scripted-1", system_prompt=[{"role": "system", "content": "Be kind."}])
        self._tool_node = TOOLS
        self.tools_tags = None

    async def execute(self, state: AgentState, config: dict) -> ModelResponseConverter:
        await asyncio.sleep(0.02)
        last = state.context[-1]
        text = last.text()
        if last.role == "tool" and "Nowhere" in str(last.content):
            raise ValueError("nowhere")
        if last.role == "user" and text.startswith("call "):
            _, name, city = text.split()
            message = Message.text_message("", role="assistant")
            call = {"name": name, "arguments": json.dumps({"city": city})}
            message.tools_calls = [{"id": f"call-{len(state.context)}", "function": call}]
        else:
            turn = sum(each.role == "user" for each in state.context)
            limit = config.get("recursion_limit", "")
            message = Message.text_message(f"{turn}{limit}: {text}", role="assistant")
        message.usages = TokenUsages(
            prompt_tokens=10, completion_tokens=5, total_tokens=15, reasoning_tokens=2
        )
        message.metadata = {"model": "scripted-1"}
        return ModelResponseConverter(message, AsItIs())

    async def _call_llm(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


def route(state: AgentState) -> str:
    return "TOOL" if state.context[-1].tools_calls else "LAST"


def last(state: State, config: dict) -> Message:
    """Say something, as a plain function does that returns a message."""
    del config
    state.turns += 1
    return Message.text_message(f"[{state.mood}] {state.context[-1].text()}", role="assistant")


def graph_of() -> StateGraph:
    graph = StateGraph(State())
    graph.add_node("MAIN", Scripted())
    graph.add_node("TOOL", TOOLS)
    graph.add_node("LAST", last)
    graph.set_entry_point("MAIN")
    graph.add_conditional_edges("MAIN", route, {"TOOL": "TOOL", "LAST": "LAST"})
    graph.add_edge("TOOL", "MAIN")
    graph.add_edge("LAST", END)
    return graph


graph = graph_of()


async def made() -> Any:
    return graph_of().compile()


def gated() -> Any:
    return graph_of().compile(interrupt_before=["LAST"])


def fail(state: State) -> Any:
    raise ValueError("nothing to say")


def failing() -> Any:
    graph = StateGraph(State())
    graph.add_node("FAIL", fail)
    graph.set_entry_point("FAIL")
    graph.add_edge("FAIL", END)
    return graph.compile()


number = 7
