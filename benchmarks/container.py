"""The image's size on top of its base, and the CPU time that it takes until the first trial.

python benchmarks/container.py IMAGE [BASE]

The agent is a program.  At its first message, it notes the CPU time that its container has used so
far: user and system time of all processes and of their ended children.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

RUNS = 5
DOCKER = ("docker",)
AGENT = """\
import glob, json, os, sys
sys.stdin.readline()
tick = os.sysconf("SC_CLK_TCK")
used = 0.0
for path in glob.glob("/proc/[0-9]*/stat"):
    try:
        fields = open(path).read().rpartition(")")[2].split()
    except OSError:
        continue
    used += sum(map(int, fields[11:15])) / tick  # utime stime cutime cstime
print(json.dumps(f"{used:.2f}"))
"""
CONFIG = """\
version: 1
agents:
  clock: {command: [python3, agent.py]}
evalsets:
  smoke: smoke.evalset.json
criteria:
  response_match_score: 0
"""
EVALSET = {
    "eval_set_id": "smoke",
    "eval_cases": [
        {
            "eval_id": "first",
            "conversation": [
                {
                    "user_content": {"role": "user", "parts": [{"text": "How late is it?"}]},
                    "final_response": {"role": "model", "parts": [{"text": "1.00"}]},
                }
            ],
        }
    ],
}


def main() -> int:
    """Measure an image."""
    if len(sys.argv) not in (2, 3):
        print(__doc__)
        return 2
    image, base = sys.argv[1], (sys.argv[2:] or ["python:3.12-slim"])[0]
    sizes = [_size(each) for each in (image, base)]
    print(f"{image}: {sizes[0]:.0f} MB, of which {sizes[0] - sizes[1]:.0f} MB beside {base}")
    starts = [_cpu_until_the_first_trial(image) for _ in range(RUNS)]
    print(f"CPU from start to the first trial: {min(starts):.2f} s, best of {RUNS}")
    return 0


def _size(image: str) -> float:
    command = [*DOCKER, "image", "inspect", "--format", "{{.Size}}", image]
    return int(subprocess.check_output(command, text=True)) / 1e6


def _cpu_until_the_first_trial(image: str) -> float:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "agent.py").write_text(AGENT, encoding="utf-8")
        (folder / "ci-eval.yaml").write_text(CONFIG, encoding="utf-8")
        (folder / "smoke.evalset.json").write_text(json.dumps(EVALSET), encoding="utf-8")
        command = [*DOCKER, "run", "--rm", "--network", "none", "--volume", f"{folder}:/work"]
        command += ["--env", "GITHUB_WORKSPACE=/work", "--env", "INPUT_COMMENT=off", image]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        traces = folder / "ci-eval-report" / "traces.jsonl"
        if not traces.exists():
            sys.exit(f"the run did not get to a trial:\n{done.stderr}")
        trace = json.loads(traces.read_text(encoding="utf-8").splitlines()[-1])
        return float(trace["invocations"][0]["final_response"]["parts"][0]["text"])


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main())
