"""Replies of agents, as JSON, and their conversion to invocations."""

from collections.abc import Sequence

from pydantic import Field, ValidationError

from ci_eval.formats.event_lists import AGENT, stored_result
from ci_eval.records.cases import (
    Content,
    FunctionCall,
    FunctionResponse,
    IntermediateData,
    Invocation,
    InvocationEvent,
    InvocationEvents,
    Json,
    Part,
    Record,
)
from ci_eval.records.errors import TrialError
from ci_eval.records.finish_reasons import FinishReason
from ci_eval.runtime.workers.worker_wire import shown
from ci_eval.text.validation_messages import described

EXPECTED = (
    'expected a text, or {"response": text, "tool_calls": [{"name", "args", "result"?}], '
    '"usage"?: {"input_tokens", "output_tokens", "cost_usd"}}'
)
"""The format of a reply, for messages."""


class ReplyCall(Record):
    """A tool call in a reply."""

    name: str
    args: dict[str, Json] | None = None
    result: Json = None
    """The tool's response; omitted if unknown."""


class ReplyWait(Record):
    """A pending call in a reply, which needs an external answer."""

    name: str
    args: dict[str, Json] | None = None
    id: str | None = None
    """The id that the answer will refer to."""


class ReplyUsage(Record):
    """Token usage and cost of a reply."""

    input_tokens: int | None = Field(default=None, ge=0)
    output_tokens: int | None = Field(default=None, ge=0)
    cost_usd: float | None = Field(default=None, ge=0)


class Reply(Record):
    """A reply with more than text."""

    response: str
    tool_calls: tuple[ReplyCall, ...] | None = None
    usage: ReplyUsage | None = None
    nodes: tuple[str, ...] | None = None
    """The visited nodes of a graph, in order."""
    waits_for: tuple[ReplyWait, ...] = ()
    """Pending calls to answer before the agent continues; they count as calls, too."""
    finish_reason: FinishReason = None
    """The provider's finish reason of the response."""


def to_invocation(message: Content, reply: Json, *, seconds: float, number: int = 1) -> Invocation:
    """Convert `reply`, given to `message` after `seconds`, to an invocation.

    It is the `number`-th message of the conversation, in which all calls have unique ids.

    Raises:
        TrialError: the reply has an unexpected format.

    """
    if isinstance(reply, str):
        reply = {"response": reply}
    if not isinstance(reply, dict):
        raise unexpected(f"answered {shown(reply)}")
    try:
        checked = Reply.model_validate(reply)
    except ValidationError as exc:
        wrong = "; ".join(described(exc, Reply))
        raise unexpected(f"answered {shown(reply)}: {wrong}") from None
    prefix = "" if number == 1 else f"{number}."
    waits_for = tuple(
        FunctionCall(id=each.id or f"wait-{prefix}{at}", name=each.name, args=each.args or {})
        for at, each in enumerate(checked.waits_for, 1)
    )
    calls, responses = _calls(checked, prefix)
    return Invocation(
        user_content=message,
        final_response=Content.of_text(checked.response, role="model"),
        intermediate_data=_trajectory([*calls, *waits_for], responses, checked.usage),
        duration=seconds,
        cost_usd=checked.usage.cost_usd if checked.usage else None,
        nodes=checked.nodes,
        waits_for=waits_for,
        finish_reason=checked.finish_reason,
    )


def unexpected(what: str, output_tail: str = "") -> TrialError:
    """Return the error of an agent that did `what` instead of giving a valid reply."""
    return TrialError("protocol", f"the agent {what}; {EXPECTED}{output_tail}")


def _trajectory(
    calls: Sequence[FunctionCall], responses: Sequence[FunctionResponse], used: ReplyUsage | None
) -> IntermediateData | InvocationEvents:
    if used is None:
        return IntermediateData(tool_uses=tuple(calls), tool_responses=tuple(responses))
    # Only events can hold the usage.
    called = tuple(Part(function_call=call) for call in calls)
    answered = tuple(Part(function_response=response) for response in responses)
    usage = {"prompt_token_count": used.input_tokens, "candidates_token_count": used.output_tokens}
    content = Content(role="model", parts=called) if called else None
    events = [InvocationEvent(author=AGENT, content=content, usage_metadata=usage)]
    if answered:
        content = Content(role="user", parts=answered)
        events.append(InvocationEvent(author=AGENT, content=content))
    return InvocationEvents(invocation_events=tuple(events))


def _calls(reply: Reply, prefix: str) -> tuple[list[FunctionCall], list[FunctionResponse]]:
    """Return the calls, and the responses to those that have one, with the same ids."""
    calls, responses = [], []
    for number, call in enumerate(reply.tool_calls or (), 1):
        identity = f"call-{prefix}{number}"
        calls.append(FunctionCall(id=identity, name=call.name, args=call.args or {}))
        if "result" in call.model_fields_set:
            found = stored_result(call.result)
            responses.append(FunctionResponse(id=identity, name=call.name, response=found))
    return calls, responses
