"""An agent that asks Claude, whole and as a stream."""

from anthropic import AsyncAnthropic

client = AsyncAnthropic()


async def answer(message):
    asked = [{"role": "user", "content": message}]
    options = {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": asked}
    found = await client.messages.create(**options)
    async with client.messages.stream(**options) as stream:
        text = "".join([each async for each in stream.text_stream])
    return found.content[0].text + " " + text
