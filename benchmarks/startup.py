"""How long a command with nothing to do takes.

python benchmarks/startup.py
"""

import tempfile
from pathlib import Path

import measure

RUNS = 10


def main() -> None:
    """Measure `--help` and `list`."""
    print(measure.environment())
    with tempfile.TemporaryDirectory() as name:
        for command in ("--help", "list"):
            runs = [measure.ci_eval(command, folder=Path(name)) for _ in range(RUNS)]
            measure.report(f"ci-eval {command}, best of {RUNS}", measure.best(runs))


if __name__ == "__main__":
    main()
