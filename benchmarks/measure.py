"""Runs `ci-eval` and measures it: CPU time of all its processes, memory of the largest."""

import json
import os
import re
import resource
import subprocess
import sys
import time
from argparse import ArgumentTypeError
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

# Installed packages are compiled, and so is a checkout after its first run.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # noqa: TID251  # for the programs it starts


class Cost(NamedTuple):
    """The resources that a command took."""

    cpu_s: float
    """User and system time of the command and all its children."""
    wall_s: float
    peak_mb: float
    """The largest resident set of any one of the processes."""
    exit_code: int


def ci_eval(*arguments: str, folder: Path) -> Cost:
    """Run the command in `folder`."""
    return measure([sys.executable, "-m", "ci_eval", *arguments], folder)


def measure(command: list[str], folder: Path) -> Cost:
    """Run `command` in `folder`, in a separate process that reports its resources."""
    probe = (
        "import json,resource,subprocess,sys,time;"
        "begun=time.perf_counter();"
        "code=subprocess.run(sys.argv[1:],stdout=subprocess.DEVNULL,"
        "stderr=subprocess.DEVNULL).returncode;"
        "wall=time.perf_counter()-begun;"
        "used=resource.getrusage(resource.RUSAGE_CHILDREN);"
        "print(json.dumps([used.ru_utime+used.ru_stime,wall,used.ru_maxrss,code]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe, *command],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    cpu_s, wall_s, peak_kb, code = json.loads(done.stdout)
    return Cost(cpu_s, wall_s, peak_kb / 1024, code)


def measure_tree(command: list[str], folder: Path) -> Cost:
    """Run `command` in `folder`; the memory is the peak of all its processes together.

    Shared pages count once (PSS), sampled every 10 ms. Linux only.
    """
    before, begun = os.times(), now()
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    peak_kb = 0
    while process.poll() is None:
        peak_kb = max(peak_kb, sum(map(_pss_kb, _tree(process.pid))))
        time.sleep(0.01)
    wall_s, after = now() - begun, os.times()
    cpu_s = after.children_user + after.children_system
    cpu_s -= before.children_user + before.children_system
    return Cost(cpu_s, wall_s, peak_kb / 1024, process.returncode)


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in path.read_text().split():
                yield from _tree(int(child))


def _pss_kb(pid: int) -> int:
    with suppress(OSError):  # it has ended
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        found = re.search(r"^Pss:\s+(\d+)", text, re.MULTILINE)
        return int(found[1]) if found else 0
    return 0


def medians(runs: list[Cost]) -> Cost:
    """Return the median of each quantity."""
    return Cost(*(median(each) for each in zip(*runs, strict=True)))


def best(runs: list[Cost]) -> Cost:
    """Return the run with the least CPU time: disturbances can only add to it."""
    return min(runs)


def write_evalset(path: Path, cases: int) -> None:
    """Write an evalset of one-turn, one-tool cases."""
    with path.open("w") as file:
        file.write('{"eval_set_id": "bench", "eval_cases": [\n')
        for number in range(cases):
            file.write(("," if number else "") + json.dumps(_case(number)) + "\n")
        file.write("]}\n")


def question(number: int) -> str:
    """Return the user's message in a case."""
    return f"What is the weather in city {number}?"


def answer(text: str) -> str:
    """Return the agent's answer, which is not word for word the expected one."""
    return f"The weather in {text.rsplit('in ', maxsplit=1)[-1][:-1]} is sunny at 20 degrees today."


def call(text: str) -> dict[str, Any]:
    """Return the tool call that the agent makes."""
    return {"name": "get_weather", "args": {"city": text.rsplit("in ", maxsplit=1)[-1][:-1]}}


def _case(number: int) -> dict[str, Any]:
    asked = question(number)
    return {
        "eval_id": f"case_{number}",
        "conversation": [
            {
                "user_content": {"role": "user", "parts": [{"text": asked}]},
                "final_response": {
                    "role": "model",
                    "parts": [{"text": f"The weather in city {number} is sunny, 20 degrees."}],
                },
                "intermediate_data": {"tool_uses": [call(asked)]},
            }
        ],
    }


def write_recording(path: Path, cases: int) -> None:
    """Write the traces of a recorded agent for these cases."""
    with path.open("w") as file:
        for number in range(cases):
            case = _case(number)
            turn = case["conversation"][0]
            turn["final_response"]["parts"][0]["text"] = answer(question(number))
            row = {"eval_id": case["eval_id"], "invocations": [turn]}
            file.write(json.dumps(row) + "\n")


CRITERIA = """
criteria:
  tool_trajectory_avg_score: 1.0
  response_match_score: 0.5
"""


def positive(text: str) -> int:
    """Return a command-line argument as a whole number above 0."""
    if not text.isdecimal() or not int(text):
        raise ArgumentTypeError(f"{text!r} is no whole number above 0")
    return int(text)


def report(name: str, cost: Cost) -> None:
    """Print one line."""
    print(
        f"{name:<44} {cost.cpu_s:7.2f} s CPU {cost.wall_s:7.2f} s wall "
        f"{cost.peak_mb:6.0f} MB  exit {cost.exit_code}"
    )


def environment() -> str:
    """Return the environment that affects the measurements."""
    pages = resource.getpagesize()
    return f"Python {sys.version.split()[0]}, {os.cpu_count()} CPUs, pages of {pages} bytes"


def now() -> float:
    """Return a time to subtract from another."""
    return time.perf_counter()
