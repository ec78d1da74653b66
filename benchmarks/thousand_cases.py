"""1,000 one-tool cases of a Python callable: trajectory, ROUGE, all reports, and a comparison.

python benchmarks/thousand_cases.py [CASES]
"""

import sys
import tempfile
from pathlib import Path

import measure

RUNS = 5
AGENT = """
def answer(message):
    city = message.split("in ")[-1][:-1]
    return {
        "response": f"The weather in {city} is sunny at 20 degrees today.",
        "tool_calls": [{"name": "get_weather", "args": {"city": city}}],
    }
"""


def prepare(folder: Path, cases: int) -> None:
    """Write the agent, the evalset and the configuration, and store a baseline."""
    measure.write_evalset(folder / "bench.evalset.json", cases)
    (folder / "bench_agent.py").write_text(AGENT)
    (folder / "ci-eval.yaml").write_text(
        'agents: {bench: {python: "bench_agent:answer"}}\n'
        "evalsets: {bench: bench.evalset.json}\n"
        "baseline: {store: file}\n" + measure.CRITERIA
    )
    measure.ci_eval("run", "--baseline-save", folder=folder)


def main(cases: int) -> None:
    """Measure with a stored baseline."""
    print(measure.environment())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder, cases)
        runs = [measure.ci_eval("run", folder=folder) for _ in range(RUNS)]
        measure.report(f"ci-eval, {cases} cases, best of {RUNS}", measure.best(runs))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
