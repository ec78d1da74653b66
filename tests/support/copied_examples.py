"""The examples that the repository ships, copied for a test to run in."""

import shutil
from pathlib import Path

ROOT = Path(__file__).parents[2]
LEFT_BEHIND = shutil.ignore_patterns("__pycache__", ".ci-eval", "ci-eval-report")
"""What runs leave beside them, whose answers and baselines a test would take for its own."""


def copy_examples(to: Path, part: str = "") -> Path:
    """Copy all examples, or a part of them, to the folder `to`, and return it."""
    return shutil.copytree(ROOT / "examples" / part, to, ignore=LEFT_BEHIND, dirs_exist_ok=True)
