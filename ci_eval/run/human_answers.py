"""Human answers to agents that wait for input, and the joined invocation."""

import json
from collections.abc import Iterator
from typing import Any

from ci_eval.formats.event_lists import AGENT, USER, trajectory_events
from ci_eval.records.cases import (
    Content,
    EvalCase,
    FunctionCall,
    IntermediateData,
    Invocation,
    InvocationEvent,
    InvocationEvents,
    Json,
)
from ci_eval.records.model_usage import ModelUsage
from ci_eval.runtime.workers.canned_tools import Canned

CONFIRMATION = "adk_request_confirmation"
"""The call by which ADK asks whether a tool may be called; its arguments name the tool."""


class Human:
    """Answers waiting calls from the case's `human_answers`."""

    def __init__(self, case: EvalCase) -> None:
        results = {
            name: [each.model_dump(mode="json", exclude_unset=True) for each in listed]
            for name, listed in case.human_answers.items()
        }
        self._canned = Canned(results)

    def knows(self, call: FunctionCall) -> bool:
        """Return True if there is an answer to `call`."""
        return self._canned.knows(*self._meant(call))

    def answer(self, call: FunctionCall) -> dict[str, Json] | None:
        """Return the answer to `call`; `None` if there is none."""
        given = self._canned.find(*self._meant(call))
        if given is None:
            return None
        if given.error is not None:
            return {"error": given.error}
        if call.name == CONFIRMATION and isinstance(given.result, bool):
            return {"confirmed": given.result}
        return given.result if isinstance(given.result, dict) else {"result": given.result}

    def _meant(self, call: FunctionCall) -> tuple[str, dict[str, Json]]:
        """Return the call to answer: for a confirmation, usually the call to be confirmed."""
        own = call.name or "", call.args or {}
        about = to_be_confirmed(call)
        return own if about is None or self._canned.knows(*own) else about


def to_be_confirmed(call: FunctionCall) -> tuple[str, dict[str, Json]] | None:
    """Return the call to be confirmed, if `call` is a confirmation request of ADK."""
    about = (call.args or {}).get("originalFunctionCall")
    if call.name != CONFIRMATION or not isinstance(about, dict):
        return None
    name, args = about.get("name"), about.get("args")
    return (name, args if isinstance(args, dict) else {}) if isinstance(name, str) else None


def joined(first: Invocation, answer: Content, then: Invocation) -> Invocation:
    """Join what an agent did before and after the answer into one invocation.

    A value that is known for only one half is unknown for the whole.
    """
    answered = InvocationEvent(author=USER, content=answer)
    events = (*trajectory_events(first), *_spoken(first), answered, *trajectory_events(then))
    known = first.intermediate_data is not None and then.intermediate_data is not None
    return then.model_copy(
        update={
            "invocation_id": first.invocation_id,
            "user_content": first.user_content,
            "creation_timestamp": first.creation_timestamp,
            "intermediate_data": InvocationEvents(invocation_events=events) if known else None,
            "app_details": first.app_details or then.app_details,
            "unseen": first.unseen or then.unseen,
            **{name: _sum(getattr(first, name), getattr(then, name)) for name in _SUMMED},
        }
    )


def settled(waited: Invocation, answer: Content, output: Json) -> Invocation:
    """Return `waited` completed by the answers alone, without calling the agent again."""
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
    then = Invocation(
        user_content=waited.user_content,
        final_response=Content.of_text(text, role="model"),
        intermediate_data=IntermediateData(),
        nodes=(),
        metered=waited.metered and ModelUsage(),
        **dict.fromkeys(_TIMES_AND_COST, 0.0),
    )
    return joined(waited, answer, then)


_TIMES_AND_COST = ("duration", "model_duration", "tool_duration", "cost_usd")
_SUMMED = (*_TIMES_AND_COST, "nodes", "metered")


def _sum(one: Any, other: Any) -> Any:
    return None if one is None or other is None else one + other


def _spoken(invocation: Invocation) -> Iterator[InvocationEvent]:
    """Yield the text of the waiting response, without the calls, which are events already."""
    content = invocation.final_response
    said = tuple(part for part in (content and content.parts) or () if part.text)
    if said:
        yield InvocationEvent(author=AGENT, content=Content(role="model", parts=said))
