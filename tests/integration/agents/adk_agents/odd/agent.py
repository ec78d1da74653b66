"""Leaves what JSON has no form for."""

import datetime as dt
import math

from google.adk.agents import BaseAgent
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.genai import types


class Thing:
    def __str__(self):
        return "a thing"


LEFT = {"thing": Thing(), "none": math.nan, "day": dt.date(2026, 1, 1), "set": {1}}


class Odd(BaseAgent):
    async def _run_async_impl(self, ctx):
        names = {"author": self.name, "invocation_id": ctx.invocation_id}
        yield Event(actions=EventActions(state_delta=LEFT), **names)
        response = types.FunctionResponse(id="1", name="odd", response=LEFT)
        part = types.Part(function_response=response)
        yield Event(content=types.Content(role="user", parts=[part]), **names)
        text = types.Part(text="Half: \ud83d")
        yield Event(content=types.Content(role="model", parts=[text]), **names)


root_agent = Odd(name="odd")
