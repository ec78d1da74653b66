"""What the model gateway costs: a call, a stream, a replay, and a large cassette.

python benchmarks/gateway.py [--check] [--only PART]

The provider, the gateway and the client are a process each, all on loopback.  What the gateway adds
is the difference between calls through it and calls of the provider, made in turn; the best of some
rounds counts, because other work on the machine only ever adds.  A replay is compared with the same
agent and the same client of OpenAI without a network, where answers come from memory, and with
calls of the provider.  `--check` ends with 1 if a limit is exceeded.
"""

import argparse
import asyncio
import json
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
PROVIDER = """
import asyncio, json, sys
from aiohttp import web

USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
SAID = "word " * 150


async def answer(request):
    body = await request.json()
    await asyncio.sleep(body.get("temperature", 0))
    if not body.get("stream"):
        message = {"role": "assistant", "content": SAID}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        whole = {"id": "c", "object": "chat.completion", "created": 1, "model": body["model"]}
        return web.json_response({**whole, "choices": [choice], "usage": USAGE})
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
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", flush=True)
    await asyncio.to_thread(sys.stdin.read)


asyncio.run(main())
"""
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
AGENT = """
import json, os
import httpx2
from openai import AsyncOpenAI

CALLS = int(os.environ["CALLS"])


def in_memory(request):
    body = json.loads(request.content)
    message = {"role": "assistant", "content": "word " * 150}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    whole = {"id": "c", "object": "chat.completion", "created": 1, "model": body["model"]}
    return httpx2.Response(200, json={**whole, "choices": [choice], "usage": usage})


options = {}
if os.environ["NETWORK"] == "no":
    transport = httpx2.MockTransport(in_memory)
    options = {"http_client": httpx2.AsyncClient(transport=transport), "api_key": "none"}
client = AsyncOpenAI(**options)


async def answer(message):
    asked = [{"role": "system", "content": "Be kind. " * 100}]
    for number in range(CALLS):
        asked.append({"role": "user", "content": f"{message} {number}"})
        found = await client.chat.completions.create(model="gpt-4.1-mini", messages=asked)
        asked.append({"role": "assistant", "content": found.choices[0].message.content})
    return message
"""
CONFIG = """
agents:
  bot: {{python: "bot:answer", env: {{CALLS: '{calls}', {env}}}{more}}}
evalsets: {{bench: bench.csv}}
criteria: {{response_match_score: 0.5}}
run: {{concurrency: 20}}
"""
MODELS = ", models: {mode: replay, cassette: models.jsonl}"
NETWORK = "NETWORK: 'yes'"
KEY = "sk-of-nobody-at-all"


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
    folder: Path, conversations: int, calls: int, *, env: str = NETWORK, more: str = MODELS
) -> None:
    """Write a project whose agent makes some calls in each conversation.

    `env` are variables that the agent gets, `more` its other options.
    """
    options = {"calls": calls, "env": env, "more": more}
    (folder / "ci-eval.yaml").write_text(CONFIG.format(**options))
    (folder / "bot.py").write_text(AGENT)
    rows = "".join(f"c{number},hello {number},hello {number}\n" for number in range(conversations))
    (folder / "bench.csv").write_text("id,prompt,expected\n" + rows)


def replay(folder: Path) -> list[Limit]:
    """Measure a replay against the same agent without a network, and with the provider itself."""
    command = [sys.executable, "-m", "ci_eval", "run"]

    def cost(name: str) -> float:
        found = measure.best([measure.measure(command, folder) for _ in range(3)])
        measure.report(name, found)
        if found.exit_code:
            raise SystemExit("the run failed")
        return found.cpu_s

    write_project(folder, EXCHANGES // CALLS, CALLS)
    with process(PROVIDER) as provider:
        variables = [f"OPENAI_BASE_URL={provider}", f"OPENAI_API_KEY={KEY}"]
        recorded = measure.measure(["env", *variables, *command, "--models", "record"], folder)
        measure.report(f"{EXCHANGES} exchanges recorded", recorded)
        replayed = cost("the same replayed")
        env = f"{NETWORK}, OPENAI_BASE_URL: '{provider}', OPENAI_API_KEY: {KEY}"
        write_project(folder, EXCHANGES // CALLS, CALLS, env=env, more="")
        direct = cost("the same at the provider, whose own CPU does not count")
    write_project(folder, EXCHANGES // CALLS, CALLS, env="NETWORK: 'no'", more="")
    alone = cost("the same without a network")
    name = f"{EXCHANGES} exchanges replayed"
    return [
        Limit(name, replayed / alone, 1.3, "of the CPU without a network"),
        Limit(name, replayed / direct, 1.3, "of the CPU at the provider"),
    ]


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
    write_project(folder, 1, 0)
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
