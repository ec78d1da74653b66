"""The provider and the agents of `gateway.py`."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

CALLS = 10
"""The number of calls in each conversation."""
ANSWERS = """
import json

USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
GEMINI_USAGE = {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18}
SAID = "word " * 150


def answer_to(body):
    if "contents" in body:
        parts = [part for each in body["contents"] for part in each["parts"]]
        done = sum("functionResponse" in part for part in parts)
        call = {"functionCall": {"name": "weather", "args": {"city": f"city {done}"}}}
        part = call if done < TOOLS_CALLED and body.get("tools") else {"text": SAID}
        said = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
        return {"candidates": [said], "usageMetadata": GEMINI_USAGE, "modelVersion": "m"}
    done = sum(each["role"] == "tool" for each in body["messages"])
    message, reason = {"role": "assistant", "content": SAID}, "stop"
    if done < TOOLS_CALLED and body.get("tools"):
        function = {"name": "weather", "arguments": json.dumps({"city": f"city {done}"})}
        call = {"id": f"call_{done}", "type": "function", "function": function}
        message, reason = {**message, "content": None, "tool_calls": [call]}, "tool_calls"
    choice = {"index": 0, "message": message, "finish_reason": reason}
    whole = {"id": "c", "object": "chat.completion", "created": 1, "model": body["model"]}
    return {**whole, "choices": [choice], "usage": USAGE}
""".replace("TOOLS_CALLED", str(CALLS - 1))
PROVIDER = (
    ANSWERS
    + """
import asyncio, sys
from aiohttp import web


async def answer(request):
    body = await request.json()
    await asyncio.sleep(body.get("temperature", 0))
    if not body.get("stream"):
        return web.json_response(answer_to(body))
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    for _ in range(10):
        chunk = {"choices": [{"index": 0, "delta": {"content": "word "}}]}
        await response.write(b"data: " + json.dumps(chunk).encode() + b"\\n\\n")
        await asyncio.sleep(0.02)
    end = json.dumps({"choices": [], "usage": USAGE}).encode()
    await response.write(b"data: " + end + b"\\n\\ndata: [DONE]\\n\\n")
    return response


async def main():
    app = web.Application()
    app.router.add_post("/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", flush=True)
    await asyncio.to_thread(sys.stdin.read)


asyncio.run(main())
"""
)
IN_MEMORY = (
    ANSWERS
    + """
import os

if os.environ["NETWORK"] == "no" and "GOOGLE_API_KEY" in os.environ:
    from google.genai import _api_client

    async def request_once(self, request, *args, **options):
        whole = json.dumps(answer_to(request.data))
        return _api_client.HttpResponse({}, [whole])

    _api_client.BaseApiClient._async_request_once = request_once
elif os.environ["NETWORK"] == "no":
    import httpx2

    async def handle(self, request):
        return httpx2.Response(200, json=answer_to(json.loads(await request.aread())))

    httpx2.AsyncHTTPTransport.handle_async_request = handle
"""
)
AGENT = """
import os
import in_memory
from openai import AsyncOpenAI

CALLS = int(os.environ["CALLS"])
client = AsyncOpenAI()


async def answer(message):
    asked = [{"role": "system", "content": "Be kind. " * 100}]
    for number in range(CALLS):
        asked.append({"role": "user", "content": f"{message} {number}"})
        found = await client.chat.completions.create(model="gpt-4.1-mini", messages=asked)
        asked.append({"role": "assistant", "content": found.choices[0].message.content})
    return message
"""
AGENTS = Path(__file__).parents[1] / "tests" / "integration"
CLIENTS = AGENTS / "gateway" / "client_agents"
ADK = AGENTS / "agents" / "adk_agents" / "gemini" / "agent.py"


class Agent(NamedTuple):
    """An agent to replay."""

    kind: str
    """The keys that set its type."""
    code: str
    file: str = "bot.py"
    python: str = sys.executable
    calls: int = CALLS
    """The calls of each conversation that the agent with nothing but a client makes."""


def frameworks() -> Iterator[tuple[str, Agent]]:
    """Yield the framework agents whose Pythons are available."""
    for name, variable, kind, source, more in (
        ("ADK 2.13", "CI_EVAL_ADK_PYTHON", "adk: gemini", ADK, ""),
        ("ADK 2.3", "CI_EVAL_ADK23_PYTHON", "adk: gemini", ADK, ""),
        ("LangGraph", FRAMEWORKS, 'langgraph: "bot:graph"', CLIENTS / "langgraph_graph.py", ""),
        (
            "Pydantic AI",
            FRAMEWORKS,
            'pydantic_ai: "bot:agent"',
            CLIENTS / "pydantic_ai_agent.py",
            "",
        ),
        (
            "OpenAI Agents",
            FRAMEWORKS,
            'openai_agents: "bot:agent"',
            CLIENTS / "openai_agents_agent.py",
            "import agents\n\nagents.set_default_openai_api('chat_completions')\n",
        ),
    ):
        if python := os.environ.get(variable):  # noqa: TID251  # as in the tests
            code = f"import in_memory\n{source.read_text()}{more}"
            file = "gemini/agent.py" if source == ADK else "bot.py"
            yield name, Agent(kind, code, file, python)
        else:
            print(f"{name} is left out: {variable} names no Python")


CONFIG = """
agents:
  bot: {{{kind}, interpreter: {python}, env: {{CALLS: '{calls}', {env}}}{more}}}
evalsets: {{bench: bench.csv}}
criteria: {{response_match_score: 0.0}}
run: {{concurrency: 20}}
"""
MODELS = ", models: {mode: replay, cassette: models.jsonl}"
NETWORK = "NETWORK: 'yes'"
KEY = "sk-of-nobody-at-all"
FRAMEWORKS = "CI_EVAL_FRAMEWORKS_PYTHON"
BARE = Agent('python: "bot:answer"', AGENT)


def write_project(
    folder: Path, conversations: int, agent: Agent, *, env: str = NETWORK, more: str = MODELS
) -> None:
    """Write a project with an agent.

    `env` are variables that the agent gets, `more` its other options.
    """
    options = {**agent._asdict(), "env": env, "more": more}
    (folder / agent.file).parent.mkdir(parents=True, exist_ok=True)
    (folder / "ci-eval.yaml").write_text(CONFIG.format(**options))
    (folder / agent.file).write_text(agent.code)
    (folder / "in_memory.py").write_text(IN_MEMORY)
    rows = "".join(f"c{number},hello {number},word\n" for number in range(conversations))
    (folder / "bench.csv").write_text("id,prompt,expected\n" + rows)
