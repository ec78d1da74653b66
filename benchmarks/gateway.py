"""What the model gateway costs: a call, a stream, a replay, and a large cassette.

python benchmarks/gateway.py [--check] [--only PART]

The provider, the gateway and the client are a process each, all on loopback.  What the gateway adds
is the difference between calls through it and calls of the provider, made in turn; the best of some
rounds counts, because other work on the machine only ever adds.  A replay is compared with the same
agent without a network, where the client's transport answers from memory, and with calls of the
provider: an agent with nothing but the client of OpenAI, and, under the Pythons that
CI_EVAL_ADK_PYTHON, CI_EVAL_ADK23_PYTHON and CI_EVAL_FRAMEWORKS_PYTHON name, agents of frameworks
that call a tool before each answer.  `--check` ends with 1 if a limit is exceeded.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import aiohttp
import measure

from ci_eval.llm.gateway.model_cassette import Place, digest_of_trial
from ci_eval.records.trials import TrialKey

ROUNDS = 5
MODEL = "gpt-4.1-mini"
DELAY_S = 0.2
AT_ONCE = 50
EXCHANGES, CALLS = 10_000, 10
"""What is replayed, and how many calls each conversation has."""
LARGE = 50_000
FRAMEWORK_EXCHANGES = 1_000
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
GATEWAY = """
import asyncio, sys, time
from pathlib import Path
from ci_eval.llm.gateway.gateway import gateway_for
from ci_eval.llm.gateway.gateway_options import ModelOptions
from ci_eval.records.trials import TrialKey
from ci_eval.runtime.context import RunContext


async def main(folder, url, mode):
    env = {"OPENAI_API_KEY": "sk-of-nobody-at-all", "OPENAI_BASE_URL": url}
    context = RunContext(env=env, root=Path(folder), now=time.time)
    async with gateway_for(ModelOptions(mode=mode, cassette="c.jsonl"), context) as gateway:
        process = gateway.process()
        gateway.open(process, 1, TrialKey(agent="a", evalset="e", case="c"))
        print(process.base + "/openai/v1", flush=True)
        await asyncio.to_thread(sys.stdin.read)


asyncio.run(main(*sys.argv[1:]))
"""
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
    """Yield the agents of frameworks whose Pythons are there."""
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


class Limit(NamedTuple):
    """A measured value and its limit."""

    name: str
    value: float
    most: float
    unit: str

    @property
    def is_met(self) -> bool:
        """True if the value is within the limit."""
        return self.value <= self.most


@contextmanager
def process(code: str, *arguments: str) -> Iterator[str]:
    """Run a program until the context is left; yield the first line that it prints."""
    command = [sys.executable, "-c", code, *arguments]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        yield child.stdout.readline().strip() if child.stdout else ""
        child.communicate("")


# --- Single calls and streams -----------------------------------------------------------------

Ask = Callable[[aiohttp.ClientSession, str], Awaitable[float]]


def asking(*, delay_s: float = 0, stream: bool = False) -> Ask:
    """Return a function that makes a call, and returns the seconds until its (first) answer.

    The provider waits for as many seconds as the temperature says.
    """
    said = {"role": "user", "content": "Tell me more about it, please. " * 200}
    body = {"model": MODEL, "messages": [said], "stream": stream, "temperature": delay_s}

    async def ask(session: aiohttp.ClientSession, url: str) -> float:
        began = measure.now()
        async with session.post(f"{url}/chat/completions", json=body) as response:
            response.raise_for_status()
            if stream:
                await response.content.readany()
                took = measure.now() - began
                await response.read()
                return took
            await response.read()
            return measure.now() - began

    return ask


async def many(ask: Ask, url: str, calls: int, at_once: int) -> list[float]:
    """Make calls, some at a time, and return the seconds of each."""
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        await asyncio.gather(*(ask(session, url) for _ in range(at_once)))  # connect

        async def work(wait_s: float) -> list[float]:
            await asyncio.sleep(wait_s)
            return [await ask(session, url) for _ in range(calls // at_once)]

        # Agents do not call in step.
        found = await asyncio.gather(*(work(DELAY_S * n / at_once) for n in range(at_once)))
        return [took for each in found for took in each]


async def added(ask: Ask, urls: Sequence[str], calls: int, at_once: int) -> float:
    """Return the milliseconds that the gateway adds to the median call."""
    differences = []
    for _ in range(ROUNDS):
        direct, through = [median(await many(ask, url, calls, at_once)) for url in urls]
        differences.append(through - direct)
    return min(differences) * 1000


async def throughput(url: str) -> float:
    """Return the calls a second."""
    found = []
    for _ in range(ROUNDS):
        began = measure.now()
        await many(asking(), url, 2000, AT_ONCE)
        found.append((2000 + AT_ONCE) / (measure.now() - began))
    return max(found)


async def calls(urls: Sequence[str], mode: str) -> list[Limit]:
    """Measure single calls, many at once, and streams."""
    quick, slow, stream = asking(), asking(delay_s=DELAY_S), asking(stream=True)
    each_ms = 1000 / await throughput(urls[1])
    return [
        Limit(f"{mode}, one at a time", await added(quick, urls, 100, 1), 1.0, "ms more"),
        Limit(f"{mode}, 50 of 0.2 s", await added(slow, urls, 250, AT_ONCE), 4.0, "ms more"),
        Limit(f"{mode}, first event", await added(stream, urls, 10, 1), 5.0, "ms later"),
        Limit(f"{mode}, 50 at once", each_ms, 1.0, "ms for each call"),
    ]


def single_calls(folder: Path) -> list[Limit]:
    """Measure what calls take that are passed on, and those that are recorded, too."""
    found: list[Limit] = []
    for mode in ("live", "record"):
        with (
            process(PROVIDER) as provider,
            process(GATEWAY, str(folder), provider, mode) as gateway,
        ):
            found += asyncio.run(calls([provider, gateway], mode))
    return found


# --- Replays --------------------------------------------------------------------------------------


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


def replayed(folder: Path, name: str, agent: Agent, exchanges: int) -> list[Limit]:
    """Measure a replay against the same agent without a network, and with the provider itself."""
    command = [sys.executable, "-m", "ci_eval", "run"]
    variable = "GOOGLE_API_KEY" if "adk" in agent.kind else "OPENAI_API_KEY"
    runs: dict[str, list[measure.Cost]] = {"replayed": [], "at the provider": [], "in memory": []}

    def write(run: str, env: str = NETWORK, more: str = "") -> None:
        write_project(folder / run, exchanges // CALLS, agent, env=env, more=more)

    with process(PROVIDER) as url:
        addresses = {"OPENAI_BASE_URL": url, "GOOGLE_GEMINI_BASE_URL": url, variable: KEY}
        given = ", ".join(f"{key}: '{value}'" for key, value in addresses.items())
        write("replayed", more=MODELS)
        write("at the provider", f"{NETWORK}, {given}")
        write("in memory", f"NETWORK: 'no', {variable}: {KEY}")
        variables = ["env", *(f"{key}={value}" for key, value in addresses.items())]
        record = [*variables, *command, "--models", "record"]
        recorded = measure.measure(record, folder / "replayed")
        measure.report(f"{name}: {exchanges} exchanges recorded", recorded)
        for _ in range(3):  # in turn, since other work on the machine changes
            for run, costs in runs.items():
                costs.append(measure.measure(command, folder / run))
    medians = {run: measure.medians(costs) for run, costs in runs.items()}
    for run, cost in medians.items():
        measure.report(f"{name}: {run}", cost)
        if cost.exit_code:
            raise SystemExit("the run failed")
    cpu_s = medians["replayed"].cpu_s
    name = f"{name}: {exchanges} exchanges replayed"
    return [
        Limit(name, cpu_s / medians["in memory"].cpu_s, 1.3, "of the CPU without a network"),
        Limit(name, cpu_s / medians["at the provider"].cpu_s, 1.3, "of the CPU at the provider"),
    ]


def replay(folder: Path) -> list[Limit]:
    """Measure replays of an agent with nothing but a client."""
    return replayed(folder, "the client of OpenAI", BARE, EXCHANGES)


def replay_frameworks(folder: Path) -> list[Limit]:
    """Measure replays of agents of frameworks."""
    found: list[Limit] = []
    for name, agent in frameworks():
        found += replayed(folder / name, name, agent, FRAMEWORK_EXCHANGES)
    return found


# --- Large cassettes ------------------------------------------------------------------------------


def write_cassette(path: Path, count: int) -> None:
    """Write a cassette, five calls a trial."""
    said = {"role": "user", "content": "Tell me more about it, please. " * 100}
    request = {"api": "openai chat", "messages": [said], "model": "gpt-4.1-mini"}
    choice = {"index": 0, "message": {"role": "assistant", "content": "word " * 150}}
    body = {"choices": [choice], "model": "gpt-4.1-mini", "usage": {"total_tokens": 18}}
    answer = {"status": 200, "type": "application/json", "body": body}
    with path.open("w") as file:
        file.write('{"ci-eval model cassette":1}\n')
        for number in range(count):
            key = TrialKey(agent="bot", evalset="bench", case=f"c{number // 5}")
            place = Place(digest_of_trial(key), f"{number:032x}", 0)
            row = {"call": str(place), **key.model_dump(), "model": "gpt-4.1-mini"}
            row |= {"request": request, "answer": answer}
            file.write(json.dumps(row, separators=(",", ":")) + "\n")


def opening(folder: Path) -> list[Limit]:
    """Measure what commands take with a large cassette, and how much more than with a small one."""
    write_project(folder, 1, BARE._replace(calls=0))
    found = []
    for command in (["run"], ["models", "show", "--case", "c7"]):
        costs = []
        for count in (1, LARGE):
            write_cassette(folder / "models.jsonl", count)
            line = [sys.executable, "-m", "ci_eval", *command]
            costs.append(measure.best([measure.measure_tree(line, folder) for _ in range(3)]))
            measure.report(f"{' '.join(command)}, {count} exchanges", costs[-1])
        small, large = costs
        name = f"{' '.join(command)} with {LARGE} exchanges"
        found.append(Limit(name, large.cpu_s - small.cpu_s, 1.0, "s of CPU more"))
        found.append(Limit(name, large.peak_mb, 200.0, "MB, all processes"))
    return found


PARTS: dict[str, Callable[[Path], list[Limit]]] = {
    "calls": single_calls,
    "replay": replay,
    "frameworks": replay_frameworks,
    "opening": opening,
}


def main(parts: Sequence[str], *, check: bool) -> int:
    """Measure, and return the exit code."""
    print(measure.environment())
    found: list[Limit] = []
    for part in parts:
        with tempfile.TemporaryDirectory() as name:
            found += PARTS[part](Path(name))
    for each in found:
        met = "met" if each.is_met else "NOT met"
        print(f"{each.name}: {each.value:.2f} {each.unit}, at most {each.most:g}: {met}")
    return int(check and not all(each.is_met for each in found))


if __name__ == "__main__":
    parser: Any = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=PARTS, help="Measure this part only.")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    sys.exit(main([given.only] if given.only else [*PARTS], check=given.check))
