"""The same 1,000 cases and the same two scores by pydantic-evals, in its own process.

    python benchmarks/against_pydantic_evals.py [PYTHON]

PYTHON is an interpreter that has pydantic-evals and rouge-score; left out, a virtual
environment is made for it.  It writes no reports and compares with nothing; ci-eval does both.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import measure
import thousand_cases

RUNS = 5
PEER = """
from dataclasses import dataclass

from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Evaluator
from rouge_score.rouge_scorer import RougeScorer

SCORER = RougeScorer(["rouge1"], use_stemmer=True)


@dataclass
class Trajectory(Evaluator):
    def evaluate(self, ctx):
        return float(ctx.output["tool_calls"] == ctx.expected_output["tool_calls"])


@dataclass
class ResponseMatch(Evaluator):
    def evaluate(self, ctx):
        found = SCORER.score(ctx.expected_output["response"], ctx.output["response"])
        return found["rouge1"].fmeasure


def answer(message):
    city = message.split("in ")[-1][:-1]
    return {
        "response": f"The weather in {city} is sunny at 20 degrees today.",
        "tool_calls": [{"name": "get_weather", "args": {"city": city}}],
    }


def expected(number):
    city = f"city {number}"
    return {
        "response": f"The weather in {city} is sunny, 20 degrees.",
        "tool_calls": [{"name": "get_weather", "args": {"city": city}}],
    }


dataset = Dataset(
    name="bench",
    cases=[
        Case(
            name=f"case_{number}",
            inputs=f"What is the weather in city {number}?",
            expected_output=expected(number),
        )
        for number in range(1000)
    ],
    evaluators=[Trajectory(), ResponseMatch()],
)
dataset.evaluate_sync(answer, progress=False)
"""


def main(python: str | None) -> None:
    """Measure both."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if python is None:
            subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
            python = str(folder / "venv" / "bin" / "python")
            packages = ["pydantic-evals", "rouge-score"]
            subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
        (folder / "peer.py").write_text(PEER)
        runs = [measure.measure([python, "peer.py"], folder) for _ in range(RUNS)]
        peer = measure.best(runs)
        measure.report(f"pydantic-evals, best of {RUNS}", peer)
        ours = thousand_cases.main(1000)
        print(f"CPU {ours.cpu_s / peer.cpu_s:.2f}, memory {ours.peak_mb / peer.peak_mb:.2f} of it")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
