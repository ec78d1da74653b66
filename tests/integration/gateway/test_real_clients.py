"""Agents with the real clients, recorded once and replayed with the provider gone.

Each runs under the Python that a variable names, as `.ci/run` makes them; those of google-genai and
openai run under ours.
"""

import os
import shutil
import sys
from pathlib import Path

import pytest
from servers.models import Models
from support.adk_agents import AGENTS
from support.model_projects import ModelProject

pytestmark = [pytest.mark.processes, pytest.mark.slow]

GENAI = """\
from google import genai

client = genai.Client()
MODEL = "gemini-2.5-flash"


async def answer(message):
    found = await client.aio.models.generate_content(model=MODEL, contents=message)
    stream = await client.aio.models.generate_content_stream(model=MODEL, contents="s " + message)
    return found.text + " " + "".join([each.text async for each in stream])
"""
GENAI_SYNC = """\
from google import genai

client = genai.Client()


def answer(message):
    return client.models.generate_content(model="gemini-2.5-flash", contents=message).text
"""
OPENAI = """\
from openai import AsyncOpenAI

client = AsyncOpenAI()
MODEL = "gpt-4.1-mini"


async def answer(message):
    asked = [{"role": "user", "content": message}]
    found = await client.chat.completions.create(model=MODEL, messages=asked)
    stream = await client.chat.completions.create(model=MODEL, messages=asked, stream=True)
    text = "".join([each.choices[0].delta.content or "" async for each in stream])
    other = await client.responses.create(model=MODEL, input=message)
    vector = await client.embeddings.create(model="text-embedding-3-small", input=message)
    said = found.choices[0].message.content, text, other.output_text
    return " ".join(said) + str(len(vector.data))
"""
OPENAI_SYNC = """\
from openai import OpenAI

client = OpenAI()


def answer(message):
    asked = [{"role": "user", "content": message}]
    found = client.chat.completions.create(model="gpt-4.1-mini", messages=asked)
    return found.choices[0].message.content
"""
ANTHROPIC = """\
from anthropic import AsyncAnthropic

client = AsyncAnthropic()


async def answer(message):
    asked = [{"role": "user", "content": message}]
    options = {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": asked}
    found = await client.messages.create(**options)
    async with client.messages.stream(**options) as stream:
        text = "".join([each async for each in stream.text_stream])
    return found.content[0].text + " " + text
"""
LANGGRAPH = """\
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph

model = ChatOpenAI(model="gpt-4.1-mini")


async def call(state):
    return {"messages": [await model.ainvoke(state["messages"])]}


builder = StateGraph(MessagesState)
builder.add_node("call", call)
builder.add_edge(START, "call")
builder.add_edge("call", END)
graph = builder.compile()
"""
AGENTS_SDK = """\
from agents import Agent, Runner

agent = Agent(name="bot", instructions="Answer.", model="gpt-4.1-mini")


async def answer(message):
    return (await Runner.run(agent, message)).final_output
"""
PYDANTIC_AI = """\
from pydantic_ai import Agent

agent = Agent("openai-chat:gpt-4.1-mini")


async def answer(message):
    return (await agent.run(message)).output
"""
OURS, CLIENTS, FRAMEWORKS = "", "CI_EVAL_CLIENTS_PYTHON", "CI_EVAL_FRAMEWORKS_PYTHON"
BOTS = {
    "google-genai": (GENAI, OURS, 2),
    "google-genai in threads": (GENAI_SYNC, OURS, 1),
    "openai": (OPENAI, OURS, 4),
    "openai in threads": (OPENAI_SYNC, OURS, 1),
    "anthropic": (ANTHROPIC, CLIENTS, 2),
    "langgraph": (LANGGRAPH, FRAMEWORKS, 1),
    "openai-agents": (AGENTS_SDK, FRAMEWORKS, 1),
    "pydantic-ai": (PYDANTIC_AI, FRAMEWORKS, 1),
    "adk 2.13": (None, "CI_EVAL_ADK_PYTHON", 2),
    "adk 2.3": (None, "CI_EVAL_ADK23_PYTHON", 2),
}


@pytest.mark.parametrize("concurrency", [1, 8])
@pytest.mark.parametrize("bot", BOTS)
def test_a_client_gets_from_the_cassette_what_it_got_from_the_provider(
    project: ModelProject, models: Models, bot: str, concurrency: int
):
    code, variable, calls = BOTS[bot]
    python = os.environ.get(variable, "") if variable else sys.executable
    if not python:
        pytest.skip(f"{variable} names no Python with {bot}")
    if code is None:
        shutil.copytree(Path(AGENTS, "gemini"), project.folder / "gemini")
    field = {"langgraph": 'langgraph: "bot:graph"'}.get(bot, 'python: "bot:answer"')
    agent = f"{field if code else 'adk: gemini'}, interpreter: {python}"
    project.agent(code or "", "{mode: record, cassette: models.jsonl}", kind=agent)
    project.edit("response_match_score: 0.5", "response_match_score: 0.1")
    project.add(f"run: {{repeats: 3, concurrency: {concurrency}}}\n")
    project.with_keys(models)
    recorded = project.run()
    assert recorded.code == 0, recorded.err
    assert project.values("ci/model_calls") == [calls] * 9
    asked = len(models.requests)
    assert asked == 9 * calls
    project.without_keys()

    for out in ("again", "once more"):
        replayed = project.run("--models", "replay", out=out)
        assert replayed.code == 0, replayed.err
        assert project.responses(out) == project.responses()
        for name in ("ci/tokens", "ci/cost_usd", "ci/model_calls"):
            assert project.values(name, out) == project.values(name)
    assert len(models.requests) == asked
