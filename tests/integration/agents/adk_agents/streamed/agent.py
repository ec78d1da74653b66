"""Answers in chunks, and may raise or die in the middle of them."""

import asyncio
import os

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from scripted import asked, response


class Chunked(BaseLlm):
    async def generate_content_async(self, llm_request, stream=False):
        if stream:
            yield response("It is ", partial=True)
            yield response("fi", partial=True)
        if asked(llm_request) == "raise":
            raise RuntimeError("lost the thread")
        if asked(llm_request) == "die":
            await asyncio.sleep(0.3)  # what was said is on its way
            os._exit(3)
        if stream:
            yield response("ne.", partial=True)
        yield response("It is fine.")


root_agent = LlmAgent(name="streamed", model=Chunked(model="chunked-1"))
