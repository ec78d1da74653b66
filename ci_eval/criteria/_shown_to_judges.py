"""The parts of a trace that a judge sees: instructions, tools, calls, dialogue.

All of it is JSON, so that no text can imitate another step.  Ids are left out: they differ from run
to run, and the same conversation must give the same question.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ci_eval.formats.event_lists import AGENT
from ci_eval.records.cases import (
    AgentDetails,
    FunctionCall,
    FunctionResponse,
    IntermediateData,
    Invocation,
    InvocationEvent,
    Json,
)
from ci_eval.records.result_owners import result_owners


class Moment(NamedTuple):
    """One message before the final response."""

    by: str
    texts: tuple[str, ...] = ()
    calls: tuple[FunctionCall, ...] = ()
    results: tuple[FunctionResponse, ...] = ()
    grounding: Json = None


def moments(invocation: Invocation) -> list[Moment]:
    """Return the messages before the final response, in order.

    A trajectory that was recorded as separate lists has no order: its calls come first.
    """
    data = invocation.intermediate_data
    if not isinstance(data, IntermediateData):
        return [_moment(event) for event in invocation.events or ()]
    found = [Moment(AGENT, (), data.tool_uses, data.tool_responses)]
    for by, parts in data.intermediate_responses:
        found.append(Moment(by, tuple(part.text for part in parts if part.text)))
    return found


def _moment(event: InvocationEvent) -> Moment:
    return Moment(
        event.author,
        tuple(part.text for part in event.parts if part.text),
        tuple(part.function_call for part in event.parts if part.function_call),
        tuple(part.function_response for part in event.parts if part.function_response),
        event.grounding_metadata,
    )


def steps(happened: Iterable[Moment]) -> list[dict[str, Json]]:
    """Return the texts, calls, results and search results as one list of steps.

    Calls are numbered, and a result has the number of its call, if an id identifies it.
    """
    return list(_steps(list(happened)))


def _steps(happened: Sequence[Moment]) -> Iterator[dict[str, Json]]:
    number = 0
    calls = [call for moment in happened for call in moment.calls]
    results = [result for moment in happened for result in moment.results]
    owners = iter(result_owners(calls, results))
    for moment in happened:
        for text in moment.texts:
            yield {"by": moment.by, "says": text}
        for call in moment.calls:
            number += 1
            yield {"by": moment.by, "calls": call.name, "call": number, "arguments": call.args}
        for result in moment.results:
            owner = next(owners)
            to = owner + 1 if owner is not None and result.id is not None else None
            yield {"returns": result.name, "call": to, "result": result.response}
        if moment.grounding:
            yield {"by": moment.by, "grounding_metadata": without_nulls(moment.grounding)}


def tool_calls(invocation: Invocation) -> list[dict[str, Json]]:
    """Return the tool calls, numbered, each with its result; `null` if there is none."""
    return [
        {"call": number, "tool": call.name, "arguments": call.args, "result": call.result}
        for number, call in enumerate(invocation.tool_calls, 1)
    ]


def grounding(invocation: Invocation) -> list[Json]:
    """Return the grounding metadata of the events, which a model's own searches produce."""
    return [without_nulls(each.grounding) for each in moments(invocation) if each.grounding]


def instructions(invocations: Iterable[Invocation]) -> dict[str, Json]:
    """Return the instructions of each agent, by name, without duplicate texts."""
    found: dict[str, dict[str, None]] = {}
    for name, details in _details(invocations):
        if details.instructions:
            found.setdefault(name, {})[details.instructions] = None
    return {name: "\n\n".join(texts) for name, texts in found.items()}


def declared_tools(invocations: Iterable[Invocation]) -> dict[str, Json]:
    """Return the tools of each agent, by name, without duplicates."""
    found: dict[str, list[Json]] = {}
    for name, details in _details(invocations):
        tools = found.setdefault(name, [])
        tools += [
            each for each in map(without_nulls, details.tool_declarations) if each not in tools
        ]
    return {name: tools for name, tools in found.items() if tools}


def _details(invocations: Iterable[Invocation]) -> Iterator[tuple[str, AgentDetails]]:
    for invocation in invocations:
        if invocation.app_details:
            yield from invocation.app_details.agent_details.items()


def dialogue(invocations: Sequence[Invocation]) -> list[dict[str, Json]]:
    """Return the whole conversation, turn by turn."""
    return [
        {"turn": turn, "user": each.user, "steps": steps(moments(each)), "response": each.response}
        for turn, each in enumerate(invocations, 1)
    ]


def without_nulls(value: Json) -> Json:
    """Return `value` without object keys whose value is null."""
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list | tuple) else value
