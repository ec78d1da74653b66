"""Google ADK agents: what `ci-eval run` takes for 1,000 cases, compared with `adk eval`.

    python benchmarks/adk_cases.py PYTHON

PYTHON has google-adk 2.13 with its `eval` extra.  The model answers at once, with one tool call.
Both programs score the same two criteria, with all bytecode compiled.  ci-eval has two workers; the
memory is that of the largest process.  Then 200 cases with a model that takes 0.2 s, 50 at a time.
"""

import sys
import tempfile
from pathlib import Path

import measure

CASES = 1000
RUNS = 3
LATENCY_S = 0.2
AT_ONCE = 50
SLOW_CASES = 200
AGENT = '''
import asyncio
import os

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.genai import types


class Fake(BaseLlm):
    async def generate_content_async(self, llm_request, stream=False):
        await asyncio.sleep(float(os.environ.get("LATENCY_S", "0")))
        last = llm_request.contents[-1].parts[-1]
        if last.function_response:
            city = last.function_response.response["city"]
            part = types.Part(text=f"The weather in {city} is sunny at 20 degrees today.")
        else:
            city = last.text.rsplit("in ", maxsplit=1)[-1][:-1]
            part = types.Part.from_function_call(name="get_weather", args={"city": city})
        usage = types.GenerateContentResponseUsageMetadata(
            prompt_token_count=11, candidates_token_count=5, total_token_count=16
        )
        content = types.Content(role="model", parts=[part])
        yield LlmResponse(content=content, usage_metadata=usage, model_version="fake-1")


def get_weather(city: str) -> dict:
    """Tell the weather."""
    return {"city": city}


root_agent = LlmAgent(
    name="bench", model=Fake(model="fake"), instruction="Tell the weather.", tools=[get_weather]
)
'''


def main(python: str) -> None:
    """Measure both."""
    print(measure.environment())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder, python)
        theirs = _best(
            f"adk eval, {CASES} cases",
            [python, "-m", "google.adk.cli", "eval", "bench", "1000.evalset.json"],
            folder,
        )
        ours = _best(f"ci-eval run, {CASES} cases", _run("1000"), folder)
        wall, cpu = ours.wall_s / theirs.wall_s, ours.cpu_s / theirs.cpu_s
        print(f"wall {wall:.2f}, CPU {cpu:.2f}, memory {ours.peak_mb / theirs.peak_mb:.2f} of it")
        more = measure.measure(_run("4000"), folder)
        measure.report("ci-eval run, 4000 cases", more)
        print(f"memory {more.peak_mb / ours.peak_mb:.2f} of that of {CASES}")
        _slow(folder)


def _slow(folder: Path) -> None:
    """Measure how close the waiting time is to the ideal; every case has two model answers."""
    start = _best("ci-eval run, 2 cases", _run("2"), folder)
    slow = _best(f"ci-eval run, {SLOW_CASES} slow cases", _run("slow"), folder)
    ideal = SLOW_CASES / AT_ONCE * 2 * LATENCY_S
    print(f"{(slow.wall_s - start.wall_s) / ideal:.2f} of the ideal {ideal:.1f} s after the start")


def _run(config: str) -> list[str]:
    return [sys.executable, "-m", "ci_eval", "run", "-c", f"{config}.yaml"]


def _best(name: str, command: list[str], folder: Path) -> measure.Cost:
    found = min((measure.measure(command, folder) for _ in range(RUNS)), key=lambda it: it.wall_s)
    measure.report(f"{name}, best of {RUNS}", found)
    return found


def _write(folder: Path, python: str) -> None:
    (folder / "bench").mkdir()
    (folder / "bench" / "__init__.py").write_text("from . import agent\n")
    (folder / "bench" / "agent.py").write_text(AGENT)
    for name, cases in (("2", 2), ("1000", CASES), ("4000", 4000), ("slow", SLOW_CASES)):
        measure.write_evalset(folder / f"{name}.evalset.json", cases)
        latency_s = LATENCY_S if name == "slow" else 0
        agent = (
            f"{{adk: bench, interpreter: {python}, workers: 2, env: {{LATENCY_S: '{latency_s}'}}}}"
        )
        (folder / f"{name}.yaml").write_text(
            f"agents: {{bench: {agent}}}\n"
            f"evalsets: {{bench: {name}.evalset.json}}\n"
            f"run: {{concurrency: {AT_ONCE}}}\n" + measure.CRITERIA
        )


if __name__ == "__main__":
    main(sys.argv[1])
