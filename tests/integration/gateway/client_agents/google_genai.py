"""An agent that asks Gemini, whole and as a stream."""

from google import genai

client = genai.Client()
MODEL = "gemini-2.5-flash"


async def answer(message):
    found = await client.aio.models.generate_content(model=MODEL, contents=message)
    stream = await client.aio.models.generate_content_stream(model=MODEL, contents="s " + message)
    return found.text + " " + "".join([each.text async for each in stream])
