"""Agents whose model does as the user says: `call TOOL CITY`, or it repeats what was said last."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel
from pydantic_ai import Agent, CallDeferred, DeferredToolRequests, ModelRetry, RunContext
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage


async def scripted(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    await asyncio.sleep(0.02)
    last = messages[-1].parts[-1]
    used = RequestUsage(input_tokens=10, output_tokens=5, details={"reasoning_tokens": 2})
    parts: list[Any]
    if not isinstance(last, UserPromptPart) and "Nowhere" in str(last.content):
        raise ValueError("nowhere")
    if isinstance(last, UserPromptPart) and str(last.content).startswith("call "):
        _, name, city = last.content.split()
        call = ToolCallPart(name, {"city": city}, tool_call_id=f"call-{len(messages)}")
        parts = [ThinkingPart("Hm."), call]
    elif info.output_tools:
        parts = [ToolCallPart(info.output_tools[0].name, {"words": str(last.content)})]
    else:
        requests = (each for each in messages if isinstance(each, ModelRequest))
        prompts = (part for each in requests for part in each.parts)
        turn = sum(isinstance(part, UserPromptPart) for part in prompts)
        parts = [TextPart(f"{turn}: {last.content}")]
    finish = "length" if "be cut off" in str(last.content) else "stop"
    return ModelResponse(parts=parts, usage=used, finish_reason=finish)


MODEL = FunctionModel(scripted)
support = Agent(
    MODEL,
    name="Support",
    system_prompt="You are Ada.",
    instructions="Be kind.",
    output_type=[str, DeferredToolRequests],
)


@support.tool
async def weather(context: RunContext[Any], city: str) -> dict:
    """Look out of the window."""
    await asyncio.sleep(0.02)
    context.deps["looked_at"] = city
    return {"city": city}


@support.tool_plain
def broken(city: str) -> str:
    """Break."""
    raise RuntimeError(f"no {city}")


@support.tool_plain
def moody(city: str) -> str:
    """Ask for something else."""
    raise ModelRetry(f"not {city}")


@support.tool_plain(requires_approval=True)
def pay(city: str) -> str:
    """Pay for a journey."""
    return f"paid {city}"


@support.tool_plain
def later(city: str) -> str:
    """Take some time."""
    raise CallDeferred


async def made() -> Agent:
    return support


class Words(BaseModel):
    words: str


typed = Agent(MODEL, output_type=Words)


@dataclass
class Shop:
    name: str
    visits: list = field(default_factory=list)


def shop(state: dict) -> Shop:
    return Shop(state.get("shop", "nameless"))


visitor = Agent(MODEL, deps_type=Shop)


@visitor.tool
def visit(context: RunContext[Shop], city: str) -> str:
    """Visit the shop."""
    context.deps.visits.append(city)
    return context.deps.name


number = 7
