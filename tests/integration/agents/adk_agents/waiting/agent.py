"""Asks for a permission that takes its time; pays after a confirmation."""

from google.adk.agents import LlmAgent
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from scripted import answers, asked, call, model


def answer(request):
    found = answers(request)
    if found:
        return f"Answered: {found[-1]}."
    if "pay" in asked(request):
        return [call("pay", amount=5)]
    return [call("permit", what="a trip")]


def permit(what: str) -> None:
    """Ask for a permission."""


def pay(amount: int) -> dict:
    """Pay."""
    return {"paid": amount}


root_agent = LlmAgent(
    name="waiting",
    model=model(answer),
    tools=[LongRunningFunctionTool(permit), FunctionTool(pay, require_confirmation=True)],
)
