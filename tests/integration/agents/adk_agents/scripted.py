"""A model that answers by a function, at once and always the same."""

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.genai import types

MODEL = "scripted-1"


class Scripted(BaseLlm):
    """Answers with what `answer(request)` returns: a text, parts, or a whole response."""

    answer: object = None

    async def generate_content_async(self, llm_request, stream=False):
        found = self.answer(llm_request)
        if not isinstance(found, LlmResponse):
            found = response(found)
        yield found


def model(answer):
    return Scripted(model=MODEL, answer=answer)


def response(found, **fields):
    parts = [types.Part(text=found)] if isinstance(found, str) else found
    usage = types.GenerateContentResponseUsageMetadata(
        prompt_token_count=11, candidates_token_count=5, total_token_count=16
    )
    return LlmResponse(
        content=types.Content(role="model", parts=parts),
        usage_metadata=usage,
        model_version=MODEL,
        **fields,
    )


def text(value, **fields):
    return types.Part(text=value, **fields)


def call(name, /, **args):
    return types.Part(function_call=types.FunctionCall(name=name, args=args))


def asked(request):
    """Return the text of the last message, where that is one."""
    return request.contents[-1].parts[-1].text or ""


def answers(request):
    """Return the tool responses in the last message."""
    parts = request.contents[-1].parts
    return [part.function_response.response for part in parts if part.function_response]
