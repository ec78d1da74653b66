"""500 cases of an async Python agent that sleeps 0.2 s, 50 at a time: 2.0 s at best.

python benchmarks/concurrency.py
"""

import tempfile
from pathlib import Path

import measure

RUNS = 3
AGENT = """
import asyncio


async def answer(message):
    await asyncio.sleep(0.2)
    return "The weather is sunny."
"""


def main() -> None:
    """Measure the elapsed time."""
    print(measure.environment())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measure.write_evalset(folder / "bench.evalset.json", 500)
        (folder / "bench_agent.py").write_text(AGENT)
        (folder / "ci-eval.yaml").write_text(
            'agents: {bench: {python: "bench_agent:answer"}}\n'
            "evalsets: {bench: bench.evalset.json}\n"
            "run: {concurrency: 50}\n" + measure.CRITERIA
        )
        runs = [measure.ci_eval("run", folder=folder) for _ in range(RUNS)]
        fastest = min(runs, key=lambda cost: cost.wall_s)
        measure.report(f"500 cases of 0.2 s, 50 at a time, best of {RUNS}", fastest)


if __name__ == "__main__":
    main()
