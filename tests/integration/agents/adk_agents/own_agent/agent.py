"""An agent without a model, with several last words and one under no name."""

from google.adk.agents import BaseAgent
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.genai import types


class Own(BaseAgent):
    """Yields events of all sorts."""

    async def _run_async_impl(self, ctx):
        def event(*parts, **fields):
            content = types.Content(role="model", parts=list(parts)) if parts else None
            fields.update(author=self.name, invocation_id=ctx.invocation_id)
            return Event(content=content, **fields)

        yield event(actions=EventActions(state_delta={"step": 1}))
        yield event(types.Part(text="First."))
        grounding = types.GroundingMetadata(web_search_queries=["what is it"])
        yield event(grounding_metadata=grounding)
        yield event(
            types.Part(
                code_execution_result=types.CodeExecutionResult(
                    outcome=types.Outcome.OUTCOME_OK, output="7"
                )
            )
        )
        yield event(types.Part(inline_data=types.Blob(data=b"\x00\xff", mime_type="image/png")))
        yield event(types.Part(text="Last."), model_version="own-1")
        yield event(
            types.Part(inline_data=types.Blob(data=b"\x01", mime_type="audio/wav")),
            grounding_metadata=grounding,
        )


root_agent = Own(name="own")
