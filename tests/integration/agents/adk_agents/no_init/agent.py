"""Needs no `__init__.py`, and imports its neighbour."""

from google.adk.agents import LlmAgent
from scripted import model

from .words import SAID

root_agent = LlmAgent(name="no_init", model=model(lambda _: SAID))
