"""An agent without a model: what it says is written down here."""

from google.adk.agents import Agent  # noqa: TID253  # ADK runs it
from google.adk.models import BaseLlm, LlmResponse  # noqa: TID253  # ADK runs it
from google.genai import types  # noqa: TID253  # ADK runs it

LONG = (
    "Order 9 left the warehouse in Bergen on Monday, passed Lillehammer on Tuesday night, and is "
    "in Oslo now.\n\n  - It comes tomorrow.\n  - Nobody has to sign for it."
)


def track(order: int, options: dict | None = None) -> dict:
    """Return where an order is."""
    return {"place": "Oslo"}


class Scripted(BaseLlm):
    async def generate_content_async(self, llm_request, stream=False):
        part = llm_request.contents[-1].parts[0]
        said = types.Part(text="Hello, how can I help?")
        if part.function_response:
            place = part.function_response.response["place"]
            said = types.Part(text=f"Order 9 is in {place}.")
        elif "exactly" in part.text:
            said = types.Part(text=LONG)
        elif "9" in part.text:
            args = {"order": 9}
            if "now" in part.text:
                args["options"] = {"fresh": True, "words": ["it's", "late"]}
            said = types.Part(function_call=types.FunctionCall(name="track", args=args))
        used = types.GenerateContentResponseUsageMetadata(
            prompt_token_count=7, candidates_token_count=3, cached_content_token_count=2
        )
        if "exactly" in (part.text or ""):
            used.thoughts_token_count = 5
        content = types.Content(role="model", parts=[said])
        yield LlmResponse(content=content, usage_metadata=used)


root_agent = Agent(name="shop", model=Scripted(model="scripted"), tools=[track])
