"""Agents of frameworks, talked to in their own environments, and what they did in short."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.agent_sessions import Place, Talk, converse, trial

from ci_eval.plugins.points import Agent, RunningAgent
from ci_eval.records.cases import Content, FunctionResponse, Invocation, Part

AGENTS = Path(__file__).parents[1] / "integration" / "agents" / "framework_agents"
VARIABLES = {"agentflow": "CI_EVAL_AGENTFLOW_PYTHON", "frameworks": "CI_EVAL_FRAMEWORKS_PYTHON"}


def interpreter(kind: str) -> str:
    """Return the Python that has the frameworks of this kind; skip where there is none."""
    variable = VARIABLES[kind]
    if not os.environ.get(variable):
        pytest.skip(f"{variable} names no Python with {kind}")
    return os.environ[variable]


def place_of(folder: Path, agent: str) -> Place:
    """Return a folder with `app.py`, which is one of the agents beside the tests."""
    place = Place(folder)
    place.write("app.py", (AGENTS / agent).read_text(encoding="utf-8"))
    return place


class Said(NamedTuple):
    """What is said in one conversation, and what its case says besides."""

    messages: tuple[str, ...]
    case: Mapping[str, Any] = {}


def said(*messages: str, **case: Any) -> Said:
    return Said(messages, case)


def at_once(place: Place, agent: Agent, conversations: Mapping[str, Said]) -> dict[str, Talk]:
    """Hold all conversations at the same time, in the same worker."""

    async def hold(running: RunningAgent) -> list[Talk]:
        each = (converse(running, *one.messages, **one.case) for one in conversations.values())
        return await asyncio.gather(*each)

    return dict(zip(conversations, place.run(agent, hold), strict=True))


def answer(invocation: Invocation, result: Any) -> Content:
    """Return the message that answers what `invocation` waits for."""
    given = result if isinstance(result, dict) else {"result": result}
    responses = [
        FunctionResponse(id=call.id, name=call.name, response=given)
        for call in invocation.waits_for
    ]
    parts = tuple(Part(function_response=response) for response in responses)
    return Content(role="user", parts=parts)


class Answered(NamedTuple):
    """What the agent did before and after it was answered, and its state at last."""

    asked: Invocation
    done: Invocation
    state: Any


async def answered(
    running: RunningAgent, *messages: str, result: Any, elsewhere: bool = False
) -> Answered:
    """Answer what the agent waits for after the last message.

    It may be answered `elsewhere`: in another process, which goes on from the memento.
    """
    session = await running.open(trial())
    for message in messages:
        asked = await session.send(Content.of_text(message, role="user"))
    if elsewhere:
        memento = session.memento
        await session.close()
        session = await running.open(trial(), alone=True, memento=memento)
    done = await session.send(answer(asked, result))
    return Answered(asked, done, await session.close())


def here_and_elsewhere(
    place: Place, agent: Agent, *messages: str, result: Any
) -> tuple[Answered, Answered]:
    """Answer what the agent waits for in the same process, and in another one."""

    async def hold(running: RunningAgent) -> tuple[Answered, Answered]:
        here = answered(running, *messages, result=result)
        elsewhere = answered(running, *messages, result=result, elsewhere=True)
        return await asyncio.gather(here, elsewhere)

    found: tuple[Answered, Answered] = place.run(agent, hold)
    return found


def steps(invocation: Invocation) -> list[str]:
    """Return the events in short: who said, called, or was answered what, and what it took."""
    return [
        line
        for event in invocation.events or ()
        for line in (
            *(_step(event.author, part) for part in (event.content and event.content.parts) or ()),
            *(
                [f"{event.author} used {_used(event.usage_metadata)}"]
                if event.usage_metadata
                else []
            ),
        )
    ]


def _step(author: str, part: Part) -> str:
    if part.function_call:
        args = ", ".join(
            f"{key}={value!r}" for key, value in (part.function_call.args or {}).items()
        )
        return f"{author} calls {part.function_call.name}({args})"
    if part.function_response:
        response = part.function_response
        return f"{author} gets {response.response} of {response.name}"
    return f"{author} {'thinks' if part.thought else 'says'} {part.text}"


def _used(usage: Mapping[str, Any]) -> str:
    names = ("prompt_token_count", "candidates_token_count", "thoughts_token_count")
    return "+".join(str(usage[name]) for name in names if name in usage)
