"""An agent that asks Gemini without asyncio."""

from google import genai

client = genai.Client()


def answer(message):
    return client.models.generate_content(model="gemini-2.5-flash", contents=message).text
