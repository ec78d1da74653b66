"""Expectations that a case states or leaves out.

A criterion measures only what it can compare with a stated expectation. An empty list states that
nothing is expected; a missing key states nothing. `plugins.criterion` uses this for all criteria.
"""

from typing import Literal

from ci_eval.records.cases import Invocation

Expectation = Literal["response", "reply", "tool_calls", "nodes"]
"""The part of an expected invocation to compare with. `response`: a final response with text.
`reply`: a final response, even an empty one."""
UNSTATED: dict[Expectation, str] = {
    "response": "expects no response",
    "reply": "expects no response",
    "tool_calls": "does not state the expected tool calls (an empty list means none)",
    "nodes": "expects no nodes",
}
"""Why a case without the expectation cannot be scored."""
SILENCE = "what is not stated of tool calls"
"""Topic of warnings by evalset readers that only concern criteria with `counts_silence`."""


def expects(turn: Invocation, what: Expectation) -> bool:
    """Return True if an invocation expects some `what`, not just states that there is none."""
    return states(turn, what) and (what != "tool_calls" or bool(turn.tool_calls))


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
