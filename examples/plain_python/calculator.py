"""An agent without a framework: a function from a message to a response and tool calls."""

import re

OPERATIONS = {
    "plus": ("add", lambda a, b: a + b),
    "minus": ("subtract", lambda a, b: a - b),
    "times": ("multiply", lambda a, b: a * b),
}


def answer(message, session):
    """Work out "12 plus 7"; "it" means the last result of this conversation."""
    state = session["state"]
    words = message.replace(" it", f" {state.get('result', 'it')}")
    found = re.search(r"(-?\d+) (plus|minus|times) (-?\d+)", words)
    if not found:
        return "I can only add, subtract and multiply."
    name, operation = OPERATIONS[found[2]]
    a, b = int(found[1]), int(found[3])
    state["result"] = operation(a, b)
    return {
        "response": f"The result is {state['result']}.",
        "tool_calls": [
            {"name": name, "args": {"a": a, "b": b}, "result": {"value": state["result"]}}
        ],
    }
