"""An agent that asks OpenAI: chat and responses, whole and as streams, and embeddings."""

from openai import AsyncOpenAI

client = AsyncOpenAI()
MODEL = "gpt-4.1-mini"


async def answer(message):
    asked = [{"role": "user", "content": message}]
    found = await client.chat.completions.create(model=MODEL, messages=asked)
    stream = await client.chat.completions.create(model=MODEL, messages=asked, stream=True)
    text = "".join([each.choices[0].delta.content or "" async for each in stream])
    other = await client.responses.create(model=MODEL, input=message)
    events = await client.responses.create(model=MODEL, input=message, stream=True)
    deltas = [each.delta async for each in events if each.type == "response.output_text.delta"]
    vector = await client.embeddings.create(model="text-embedding-3-small", input=message)
    said = found.choices[0].message.content, text, other.output_text, "".join(deltas)
    return " ".join(said) + str(len(vector.data))
