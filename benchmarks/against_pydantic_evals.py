"""The same 1,000 cases and the same two scores by pydantic-evals, in its own process.

    python benchmarks/against_pydantic_evals.py [PYTHON]

PYTHON is an interpreter that has pydantic-evals and rouge-score; left out, a virtual
environment is made for it.  It writes no reports and compares with nothing; ci-eval does both.

The runs alternate, and the medians are compared: CPU and memory of all processes together.  The
peer is measured twice: with rouge-score, as ci-eval has it, and with a ROUGE-1 of a few lines
(without a stemmer, so its values differ), which shows how much that library takes.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import measure
import thousand_cases

RUNS = 7
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


BY_HAND = """
from collections import Counter
from types import SimpleNamespace


class RougeScorer:
    def __init__(self, kinds, use_stemmer):
        pass

    def score(self, target, prediction):
        one, other = (Counter(text.lower().split()) for text in (target, prediction))
        same = (one & other).total()
        return {"rouge1": SimpleNamespace(fmeasure=2 * same / (one.total() + other.total()))}
"""
_IMPORT = "from rouge_score.rouge_scorer import RougeScorer\n"


def main(python: str | None) -> None:
    """Measure all three."""
    print(measure.environment())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if python is None:
            subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
            python = str(folder / "venv" / "bin" / "python")
            packages = ["pydantic-evals", "rouge-score"]
            subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
        (folder / "peer.py").write_text(PEER)
        (folder / "peer_by_hand.py").write_text(PEER.replace(_IMPORT, BY_HAND))
        thousand_cases.prepare(folder, 1000)
        commands = {
            "ci-eval": [sys.executable, "-m", "ci_eval", "run"],
            "pydantic-evals": [python, "peer.py"],
            "pydantic-evals, ROUGE by hand": [python, "peer_by_hand.py"],
        }
        runs: dict[str, list[measure.Cost]] = {}
        for _ in range(RUNS):
            for said, command in commands.items():
                runs.setdefault(said, []).append(measure.measure_tree(command, folder))
        costs = {said: measure.medians(each) for said, each in runs.items()}
        for said, cost in costs.items():
            measure.report(f"{said}, median of {RUNS}", cost)
        ours = costs.pop("ci-eval")
        for said, peer in costs.items():
            cpu, memory = ours.cpu_s / peer.cpu_s, ours.peak_mb / peer.peak_mb
            print(f"of {said}: CPU {cpu:.2f}, memory {memory:.2f}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
