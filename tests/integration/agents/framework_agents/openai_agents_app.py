"""Agents whose model does as the user says: `call TOOL CITY`, or it repeats what was said last."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

from agents import Agent, Model, ModelResponse, RunContextWrapper, Usage, function_tool
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseReasoningItem,
)
from openai.types.responses.response_reasoning_item import Summary
from openai.types.responses.response_usage import OutputTokensDetails
from pydantic import BaseModel


def message(text: str) -> ResponseOutputMessage:
    content = [ResponseOutputText(text=text, type="output_text", annotations=[])]
    status = "incomplete" if "be cut off" in text else "completed"
    return ResponseOutputMessage(
        id="message", role="assistant", status=status, type="message", content=content
    )


def calls(words: str, number: int) -> list[Any]:
    _, name, *city = words.split()
    arguments = json.dumps({"city": city[0]} if city else {})
    return [
        ResponseReasoningItem(
            id="thought", type="reasoning", summary=[Summary(text="Hm.", type="summary_text")]
        ),
        ResponseFunctionToolCall(
            call_id=f"call-{number}", name=name, arguments=arguments, type="function_call"
        ),
    ]


class Scripted(Model):
    async def get_response(self, *_: Any, output_schema: Any, **told: Any) -> ModelResponse:
        await asyncio.sleep(0.02)
        given = told["input"]
        last = given[-1]
        words = str(last.get("content") or last.get("output"))
        if "Nowhere" in words and last.get("role") != "user":
            raise ValueError("nowhere")
        turn = sum(each.get("role") == "user" for each in given)
        if last.get("role") == "user" and words.startswith("call "):
            output = calls(words, len(given))
        elif output_schema is not None and not output_schema.is_plain_text():
            output = [message(json.dumps({"words": words}))]
        else:
            output = [message(f"{turn}: {words}")]
        details = OutputTokensDetails(reasoning_tokens=2)
        usage = Usage(
            requests=1,
            input_tokens=10,
            output_tokens=5,
            total_tokens=15,
            output_tokens_details=details,
        )
        return ModelResponse(output=output, usage=usage, response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


@function_tool
async def weather(context: RunContextWrapper[Any], city: str) -> dict:
    """Look out of the window."""
    await asyncio.sleep(0.02)
    if isinstance(context.context, dict):
        context.context["looked_at"] = city
    return {"city": city}


@function_tool
def broken(city: str) -> str:
    """Break."""
    raise RuntimeError(f"no {city}")


def tell(_context: Any, error: Exception) -> str:
    return f"sorry, {error}"


@function_tool(failure_error_function=tell)
def frank(city: str) -> str:
    """Break, and say why."""
    raise RuntimeError(f"no {city}")


@function_tool(needs_approval=True)
def pay(city: str) -> str:
    """Pay for a journey."""
    return f"paid {city}"


billing = Agent(name="Billing", instructions="Be exact.", model=Scripted())
triage = Agent(
    name="Triage",
    instructions="Be kind.",
    model=Scripted(),
    tools=[weather, broken, frank, pay],
    handoffs=[billing],
)


async def made() -> Agent:
    return triage


class Words(BaseModel):
    words: str


typed = Agent(name="Typed", model=Scripted(), output_type=Words)


@dataclass
class Shop:
    name: str
    visits: list = field(default_factory=list)


def shop(state: dict) -> Shop:
    return Shop(state.get("shop", "nameless"))


@function_tool
def visit(context: RunContextWrapper[Shop], city: str) -> str:
    """Visit the shop."""
    context.context.visits.append(city)
    return context.context.name


visitor = Agent(name="Visitor", model=Scripted(), tools=[visit])


number = 7
