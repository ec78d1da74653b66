"""An agent of Google ADK behind `to_a2a`: a shop with a model that follows a script.

Run by a Python that has google-adk with its `a2a` extra, with `PORT`.
"""

# ruff: noqa: TID253  # it is never imported by ours

import sys

import uvicorn
from google.adk.a2a.utils.agent_to_a2a import to_a2a
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.tools import LongRunningFunctionTool
from google.genai import types

USAGE = types.GenerateContentResponseUsageMetadata(
    prompt_token_count=11, candidates_token_count=7, total_token_count=18
)


class Script(BaseLlm):
    """Calls the tool that the user names, and then says what it answered."""

    model: str = "script"

    async def generate_content_async(self, llm_request, stream=False):
        part = llm_request.contents[-1].parts[-1]
        if part.function_response:
            said = types.Part(text=f"It says: {part.function_response.response}")
        elif part.text in ("track", "refund"):
            call = types.FunctionCall(name=part.text, args={"order": 9})
            said = types.Part(function_call=call)
        else:
            said = types.Part(text=f"You said {part.text}")
        content = types.Content(role="model", parts=[said])
        yield LlmResponse(content=content, usage_metadata=USAGE)


def track(order: int) -> dict:
    """Say where an order is."""
    return {"place": "Oslo", "order": order}


def refund(order: int) -> None:
    """Refund an order, once somebody has allowed it."""


if __name__ == "__main__":
    port = int(sys.argv[1])
    tools = [track, LongRunningFunctionTool(refund)]
    shop = LlmAgent(name="shop", description="A shop.", model=Script(), tools=tools)
    app = to_a2a(shop, host="127.0.0.1", port=port)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")
