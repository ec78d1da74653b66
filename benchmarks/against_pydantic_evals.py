"""The same cases and the same two scores, by pydantic-evals in its own process.

    python benchmarks/against_pydantic_evals.py [--check] [--python PYTHON] [CASES …]

Measures 1,000 and 20,000 cases unless told otherwise. PYTHON is an interpreter that has
pydantic-evals and rouge-score; without it, a virtual environment is created. pydantic-evals writes
no reports and compares with nothing; ci-eval does both.

The runs alternate, and the medians are compared: CPU and memory of all processes together.
pydantic-evals is measured twice: with rouge-score, like ci-eval, and with a ROUGE-1 of a few lines
(without a stemmer, so its values differ), which shows how much that library takes.  `--check` exits
with 1 if ci-eval takes more than 0.95 of the CPU or the memory of the latter.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import measure
import thousand_cases

RUNS = {1_000: 7}
"""How often each size is measured; larger sizes vary less."""
MOST = 0.95
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
        for number in range(CASES)
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


def peers(folder: Path, cases: int, python: str) -> dict[str, list[str]]:
    """Write the peer's programs for a number of cases, and return the commands that run them."""
    program = PEER.replace("CASES", str(cases))
    (folder / "peer.py").write_text(program)
    (folder / "peer_by_hand.py").write_text(program.replace(_IMPORT, BY_HAND))
    return {
        "pydantic-evals": [python, "peer.py"],
        "pydantic-evals, ROUGE by hand": [python, "peer_by_hand.py"],
    }


def met(cases: int, python: str) -> bool:
    """Measure a size, and return True if ci-eval stays within the limits."""
    runs: dict[str, list[measure.Cost]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        thousand_cases.prepare(folder, cases)
        commands = {"ci-eval": [sys.executable, "-m", "ci_eval", "run"]}
        commands |= peers(folder, cases, python)
        for _ in range(RUNS.get(cases, 3)):
            for said, command in commands.items():
                runs.setdefault(said, []).append(measure.measure_tree(command, folder))
    costs = {said: measure.medians(each) for said, each in runs.items()}
    for said, cost in costs.items():
        measure.report(f"{cases} cases, {said}", cost)
    ours = costs.pop("ci-eval")
    for said, peer in costs.items():
        cpu, memory = ours.cpu_s / peer.cpu_s, ours.peak_mb / peer.peak_mb
        print(f"{cases} cases, of {said}: CPU {cpu:.2f}, memory {memory:.2f}")
    is_met = max(cpu, memory) <= MOST
    print(f"at most {MOST:g} of the last: {'met' if is_met else 'NOT met'}")
    return is_met


def main(sizes: list[int], python: str | None, *, check: bool) -> int:
    """Measure each size, and return the exit code."""
    print(measure.environment())
    with tempfile.TemporaryDirectory() as name:
        if python is None:
            venv = Path(name) / "venv"
            subprocess.run([sys.executable, "-m", "venv", venv], check=True)
            python = str(venv / "bin" / "python")
            packages = ["pydantic-evals", "rouge-score"]
            subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
        results = [met(cases, python) for cases in sizes]
    return int(check and not all(results))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sizes", nargs="*", type=measure.positive, metavar="CASES")
    parser.add_argument("--python")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    sys.exit(main(given.sizes or [1_000, 20_000], given.python, check=given.check))
