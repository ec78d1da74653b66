"""The cost of a Ray cluster: 400 trials of 0.2 s on two machines, and the driver's CPU per trial.

python benchmarks/ray_cluster.py [--check]      needs `pip install 'ci-eval[ray]'`

Both machines are this one: each runs a task of 8 trials at a time. `--check` exits with 1 if the
400 trials take more than 1.25 times the ideal time, or if ci-eval takes more than 3 ms of CPU per
trial on the cluster, scoring included. The start is subtracted from both: it is what a run of few
trials takes.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from measure import Cost, ci_eval

SCRIPT = Path(__file__).parents[1] / "tests" / "support" / "ray_cluster.py"
SLEEP_S, TRIALS, AT_ONCE = 0.2, 400, 16
FEW, MANY = 200, 2200
MOST, MOST_MS = 1.25, 3.0
CONFIG = """\
agents: {{bot: {{python: "bot:answer"}}}}
evalsets: {{many: "many.csv"}}
criteria: {{response_match_score: 0.8}}
run: {{engine: ray, address: "{address}", concurrency: 16, per_task: 8}}
"""


@contextmanager
def cluster(folder: str) -> Iterator[str]:
    """Start a cluster, and yield its address."""
    command = [sys.executable, str(SCRIPT), "1", folder]
    with subprocess.Popen(
        command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        lines = iter(process.stdout or ())
        yield json.loads(next(line for line in lines if line.startswith("{")))["address"]
        process.communicate()


def run(folder: Path, address: str, *, trials: int, sleep_s: float, engine: str) -> Cost:
    """Run a suite whose trials sleep."""
    (folder / "ci-eval.yaml").write_text(CONFIG.format(address=address))
    code = f"import time\ndef answer(text):\n    time.sleep({sleep_s})\n    return 'yes'\n"
    (folder / "bot.py").write_text(code)
    rows = [f"c{number},question {number},yes" for number in range(trials)]
    (folder / "many.csv").write_text("\n".join(["id,prompt,expected", *rows]) + "\n")
    cost = ci_eval("run", "--engine", engine, folder=folder)
    if cost.exit_code:
        sys.exit(f"the run ended with {cost.exit_code}")
    return cost


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    with (
        tempfile.TemporaryDirectory(prefix="ray-") as sockets,
        tempfile.TemporaryDirectory() as name,
        cluster(sockets) as address,
    ):
        folder = Path(name)
        run(folder, address, trials=AT_ONCE, sleep_s=0, engine="ray")  # starts Ray processes
        start = run(folder, address, trials=AT_ONCE, sleep_s=SLEEP_S, engine="ray").wall_s
        whole = run(folder, address, trials=TRIALS, sleep_s=SLEEP_S, engine="ray").wall_s
        ideal = (TRIALS - AT_ONCE) / AT_ONCE * SLEEP_S
        factor = (whole - start) / ideal
        print(f"{TRIALS} trials of {SLEEP_S} s: {factor:.2f} times the ideal {ideal:.1f} s")
        ms = {}
        for engine in ("ray", "local"):
            few, many = (
                run(folder, address, trials=count, sleep_s=0, engine=engine).cpu_s
                for count in (FEW, MANY)
            )
            ms[engine] = (many - few) / (MANY - FEW) * 1000
            print(f"{engine}: {ms[engine]:.2f} ms of CPU a trial")
    return int(check and (factor > MOST or ms["ray"] > MOST_MS))


if __name__ == "__main__":
    sys.exit(main())
