"""Two agents one after the other, and a third until it is content."""

from google.adk.agents import LlmAgent, LoopAgent, SequentialAgent
from google.adk.tools.exit_loop_tool import exit_loop
from scripted import call, model


def improve(request):
    said = [part.text or "" for content in request.contents for part in content.parts]
    if any("Better, again." in text for text in said):
        return [call("exit_loop")]
    return "Better, again." if any("Not yet." in text for text in said) else "Not yet."


root_agent = SequentialAgent(
    name="steps",
    sub_agents=[
        LlmAgent(name="first", model=model(lambda _: "A draft."), output_key="draft"),
        LlmAgent(name="second", model=model(lambda _: "A review."), instruction="Review {draft}"),
        LoopAgent(
            name="loop",
            max_iterations=5,
            sub_agents=[LlmAgent(name="third", model=model(improve), tools=[exit_loop])],
        ),
    ],
)
