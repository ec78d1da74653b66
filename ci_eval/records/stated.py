"""What a case states, and what it leaves open.

A criterion that compares with something measures only where that is stated: an empty list states
that there is none, and silence states nothing. `plugins.criterion` asks here for all criteria.
"""

from typing import Literal

from ci_eval.records.model import Invocation

Expectation = Literal["response", "reply", "tool_calls", "nodes"]
"""What of an expected invocation a criterion compares with. `response`: a final response with text.
`reply`: a final response, be it empty."""
UNSTATED: dict[Expectation, str] = {
    "response": "expects no response",
    "reply": "expects no response",
    "tool_calls": "does not state the expected tool calls; an empty list states that none are",
    "nodes": "expects no nodes",
}
"""Why a case that does not state it cannot be scored."""
SILENCE = "what is not stated of tool calls"
"""Topic of readers' warnings that matter only to a criterion which counts silence."""


def states(turn: Invocation, what: Expectation) -> bool:
    """Return True if an expected invocation states `what`."""
    match what:
        case "response":
            return bool(turn.response.strip())
        case "reply":
            return turn.final_response is not None
        case "tool_calls":
            return turn.intermediate_data is not None and not turn.unseen
        case "nodes":
            return turn.nodes is not None
