"""ADK's simulated user, whose model says what it is told; run by a Python that has google-adk.

It reads a list of plays from standard input, `{"scenario", "config", "answers", "turns"}`, and
writes for each what was said, how it ended, and what the model was shown.  `turns` are the events
that follow a message, `[[author, part], …]`; the last one is repeated.
"""

import asyncio
import json
import logging
import sys


def told(answers, shown):
    """Return a class of models that gives these answers, and notes what it was shown."""
    from google.adk.models.llm_response import LlmResponse
    from google.genai import types

    class Model:
        def __init__(self, model):
            pass

        async def generate_content_async(self, request):
            shown.append(request.contents[0].parts[0].text)
            parts = [types.Part(**part) for part in next(answers)]
            yield LlmResponse(content=types.Content(role="model", parts=parts))

    return Model


async def play(given):
    from google.adk.evaluation.conversation_scenarios import ConversationScenario
    from google.adk.evaluation.simulation import llm_backed_user_simulator as module
    from google.adk.events.event import Event
    from google.genai import types

    said, shown, events, turns = [], [], [], iter(given["turns"])
    model = told(iter(given["answers"]), shown)
    module.LLMRegistry = type("Registry", (), {"resolve": lambda *_: model})
    user = module.LlmBackedUserSimulator(
        config=module.LlmBackedUserSimulatorConfig.model_validate(given["config"]),
        conversation_scenario=ConversationScenario.model_validate(given["scenario"]),
    )
    while True:
        try:
            found = await user.get_next_user_message(events)
        except RuntimeError as exc:
            return {"said": said, "end": f"error: {exc}", "shown": shown}
        if found.user_message is None:
            return {"said": said, "end": found.status.value, "shown": shown}
        said.append(found.user_message.parts[0].text)
        events.append(Event(author="user", content=found.user_message))
        for author, part in next(turns, given["turns"][-1]):
            content = types.Content(role="model", parts=[types.Part.model_validate(part)])
            events.append(Event(author=author, content=content))


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    json.dump([asyncio.run(play(each)) for each in json.load(sys.stdin)], sys.stdout)
