"""Answers with a text."""

from google.adk.agents import LlmAgent
from scripted import asked, model

root_agent = LlmAgent(
    name="plain", model=model(lambda request: f"You said {asked(request)}."), instruction="Repeat."
)
