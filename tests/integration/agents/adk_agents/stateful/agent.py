"""Has callbacks that change the state and the request, and an instruction that names state."""

from google.adk.agents import LlmAgent
from scripted import answers, asked, call, model, response


def before_agent(callback_context):
    callback_context.state["turns"] = callback_context.state.get("turns", 0) + 1


def before_model(callback_context, llm_request):
    llm_request.config.system_instruction += "\nBe brief."
    if asked(llm_request) == "stop":
        return response("Stopped.")
    return None


def after_model(callback_context, llm_response):
    callback_context.state["user:last"] = "model"


def before_tool(tool, args, tool_context):
    return {"result": "guarded"} if args.get("value") == "secret" else None


def after_tool(tool, args, tool_context, tool_response):
    tool_context.state["kept"] = tool_response


def keep(value: str) -> str:
    """Keep."""
    return f"kept {value}"


def answer(request):
    found = answers(request)
    return f"Now {found[0]['result']}." if found else [call("keep", value=asked(request))]


root_agent = LlmAgent(
    name="stateful",
    model=model(answer),
    instruction="The guest is {guest}.",
    tools=[keep],
    before_agent_callback=before_agent,
    before_model_callback=before_model,
    after_model_callback=after_model,
    before_tool_callback=before_tool,
    after_tool_callback=after_tool,
    output_key="said",
)
