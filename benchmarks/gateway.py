"""The costs of the model gateway: for a call, a stream, a replay, and a large cassette.

python benchmarks/gateway.py [--check] [--only PART]

The provider, the gateway and the client are one process each, all on loopback.  The gateway's cost
is the difference between calls through it and direct calls to the provider, made in turn.  The best
of several rounds counts, because other work on the machine can only add time.  A replay is compared
with the same agent without a network, where the client's transport answers from memory, and with
calls to the provider.  The agents are one with only OpenAI's client and, under the Pythons in
CI_EVAL_ADK_PYTHON, CI_EVAL_ADK23_PYTHON and CI_EVAL_FRAMEWORKS_PYTHON, framework agents that call a
tool before each answer.  `--check` exits with 1 if a limit is exceeded.
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
from gateway_agents import (
    BARE,
    CALLS,
    KEY,
    MODELS,
    NETWORK,
    PROVIDER,
    Agent,
    frameworks,
    write_project,
)

from ci_eval.llm.gateway.cassette_lines import Place, digest_of_trial
from ci_eval.records.trials import TrialKey

ROUNDS = 5
MODEL = "gpt-4.1-mini"
DELAY_S = 0.2
AT_ONCE = 50
EXCHANGES = 10_000
"""The number of replayed calls."""
LARGE = 50_000
FRAMEWORK_EXCHANGES = 1_000
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
    """Run a program until the context ends; yield the first line that it prints."""
    command = [sys.executable, "-c", code, *arguments]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        yield child.stdout.readline().strip() if child.stdout else ""
        child.communicate("")


# --- Single calls and streams -----------------------------------------------------------------

Ask = Callable[[aiohttp.ClientSession, str], Awaitable[float]]


def asking(*, delay_s: float = 0, stream: bool = False) -> Ask:
    """Return a function that makes a call and returns the seconds until its (first) answer.

    The provider waits for the number of seconds in the temperature.
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
    """Make calls, several at a time, and return the seconds of each."""
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        await asyncio.gather(*(ask(session, url) for _ in range(at_once)))  # connect

        async def work(wait_s: float) -> list[float]:
            await asyncio.sleep(wait_s)
            return [await ask(session, url) for _ in range(calls // at_once)]

        # Agents do not call in lockstep.
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
    """Measure calls that are only forwarded, and calls that are also recorded."""
    found: list[Limit] = []
    for mode in ("live", "record"):
        with (
            process(PROVIDER) as provider,
            process(GATEWAY, str(folder), provider, mode) as gateway,
        ):
            found += asyncio.run(calls([provider, gateway], mode))
    return found


# --- Replays --------------------------------------------------------------------------------------


def replayed(folder: Path, name: str, agent: Agent, exchanges: int) -> list[Limit]:
    """Compare a replay with the same agent without a network, and with the provider itself."""
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
        for _ in range(3):  # in turn, because other work on the machine varies
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
    """Measure replays of an agent with only a client."""
    return replayed(folder, "the client of OpenAI", BARE, EXCHANGES)


def replay_frameworks(folder: Path) -> list[Limit]:
    """Measure replays of framework agents."""
    found: list[Limit] = []
    for name, agent in frameworks():
        found += replayed(folder / name, name, agent, FRAMEWORK_EXCHANGES)
    return found


# --- Large cassettes ------------------------------------------------------------------------------


def write_cassette(path: Path, count: int) -> None:
    """Write a cassette with five calls per trial."""
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
    """Measure commands with a large cassette, and the difference from a small one."""
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
    parser.add_argument("--only", choices=PARTS, help="Measure only this part.")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    sys.exit(main([given.only] if given.only else [*PARTS], check=given.check))
