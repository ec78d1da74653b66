"""An agent that asks OpenAI without asyncio."""

from openai import OpenAI

client = OpenAI()


def answer(message):
    asked = [{"role": "user", "content": message}]
    found = client.chat.completions.create(model="gpt-4.1-mini", messages=asked)
    return found.choices[0].message.content
