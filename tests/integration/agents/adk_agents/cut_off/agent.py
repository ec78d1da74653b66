"""Is cut off in the middle of a sentence, or says nothing at all."""

from google.adk.agents import LlmAgent
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from scripted import asked, model, response


def answer(request):
    if asked(request) == "nothing":
        return LlmResponse(error_code="SAFETY", error_message="It was\nblocked.")
    reason = types.FinishReason.MAX_TOKENS
    return response("It goes on and", error_code="MAX_TOKENS", finish_reason=reason)


root_agent = LlmAgent(name="cut_off", model=model(answer))
