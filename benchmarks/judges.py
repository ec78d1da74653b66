"""The cost of judging: 1,000 invocations, 5 samples, a Gemini on loopback that takes 0.1 s.

python benchmarks/judges.py

Two ratios are printed for each run. Time: relative to the ideal, which is the number of calls times
0.1 s divided by 50 at once; from the first call to the last, and for the whole command. Calls:
relative to five per invocation, which Google ADK makes. If no call fails on purpose, votes
that agree to 90 % are used.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import measure

RUNS = 3
INVOCATIONS, SAMPLES, DELAY_S, AT_ONCE = 1000, 5, 0.1, 50
CONFIG = """
agents: {{bench: {{recorded: traces.jsonl}}}}
evalsets: {{bench: bench.evalset.json}}
criteria: {{final_response_match_v2: 0.5}}
judge: {{provider: gemini, model: gemini-2.5-flash, base_url: "http://127.0.0.1:{port}",
         env_file: keys.env, concurrency: {at_once}, timeout_s: {timeout_s}}}
"""


@contextmanager
def gemini(agree: float, fail: float, told: dict[str, Any]) -> Iterator[int]:
    """Serve, yield the port, and leave the received questions in `told`."""
    server = [sys.executable, str(Path(__file__).with_name("loopback_gemini.py"))]
    arguments = [str(DELAY_S), str(agree), str(fail)]
    with subprocess.Popen(
        [*server, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield int(process.stdout.readline() if process.stdout else 0)
        out, _ = process.communicate("")
        told |= json.loads(out)


def write_suite(folder: Path) -> None:
    """Write an evalset, and traces in which everything is as expected."""
    (folder / "keys.env").write_text("GOOGLE_API_KEY=none\n")
    measure.write_evalset(folder / "bench.evalset.json", INVOCATIONS)
    cases = json.loads((folder / "bench.evalset.json").read_text())["eval_cases"]
    with (folder / "traces.jsonl").open("w") as file:
        for case in cases:
            row = {"eval_id": case["eval_id"], "invocations": case["conversation"]}
            file.write(json.dumps(row) + "\n")


def scores(folder: Path) -> list[float | None]:
    """Return the values of the last run."""
    results = json.loads((folder / "ci-eval-report/run.json").read_text())["results"]
    return [result["scores"][0]["value"] for result in results]


def judged(
    folder: Path, *, agree: float = 1.0, fail: float = 0.0, fresh: bool = False
) -> tuple[measure.Cost, Any]:
    """Run the suite in `folder`, and return what it took and what the server saw.

    `fresh` runs without the answers of earlier runs.
    """
    told: dict[str, Any] = {}
    if fresh:
        (folder / ".ci-eval/cache/judge.jsonl").unlink(missing_ok=True)
    with gemini(agree, fail, told) as port:
        (folder / "ci-eval.yaml").write_text(
            CONFIG.format(port=port, at_once=AT_ONCE, timeout_s=2 if fail else 60)
        )
        cost = measure.ci_eval("run", folder=folder)
    return cost, told


def show(title: str, cost: measure.Cost, told: dict[str, Any]) -> None:
    """Print the ratios of one run."""
    calls = told["calls"]
    times = [(told["took_s"], "from the first to the last"), (cost.wall_s, "in all")]
    ideal_s = calls * DELAY_S / AT_ONCE
    shown = ", ".join(
        f"{took_s:.2f} s {what}" + (f" ({took_s / ideal_s:.3f} of the ideal)" if calls else "")
        for took_s, what in times
    )
    share = calls / (INVOCATIONS * SAMPLES)
    print(f"{title}: {calls} calls, {share:.3f} of five each, {told['most']} at once; {shown}")


def main() -> None:
    """Measure."""
    print(measure.environment())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_suite(folder)
        # Disturbances can only add time.
        runs = [judged(folder, agree=0.9, fresh=True) for _ in range(RUNS)]
        best = min(runs, key=lambda run: run[1]["took_s"])
        show(f"votes that agree to 90 %, best of {RUNS}", *best)
        show("the same again", *judged(folder, agree=0.9))
        show("votes that all agree", *(sound := judged(folder, fresh=True)))
        expected = scores(folder)
        show("20 % of calls fail", *(failing := judged(folder, fail=0.2, fresh=True)))
        print(f"same scores: {scores(folder) == expected}")
        print(f"calls: {failing[1]['calls'] / sound[1]['calls']:.3f} of those where none fails")


if __name__ == "__main__":
    main()
