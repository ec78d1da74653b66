"""Names of the files that users see, defined once; the folder of a run; commands that name them."""

import shlex
from pathlib import Path

CONFIG_FILE = "ci-eval.yaml"
"""The default configuration."""
REPORT_FOLDER = "ci-eval-report"
"""The default folder of a run and its documents."""
RUN_FILE = "run.json"
TRACES_FILE = "traces.jsonl"
UNDERWAY_FILE = "underway.jsonl"
"""The unfinished conversations of a run in progress."""
BASE_FOLDER = "base"
"""Subfolder in the folder of a run, with the same files for the base arm."""
REPORT_FILE = "report.json"
PAGE_FILE = "report.html"
SHARD_FILE = "shard.json"
"""Beside the files of a run that is a shard of a suite: its number and its suite."""
LOCK_FILE = ".lock"
"""Exists in the folder of a run while a process writes to it."""
CASSETTES_FOLDER = "cassettes"
"""Subfolder in the folder of a shard, with the cassettes that the shard recorded."""


def command_line(config: str, *words: str) -> str:
    """Return the command line `ci-eval WORDS…` for the configuration at `config`."""
    named = [] if config in ("", CONFIG_FILE) else ["-c", config]
    return shlex.join(["ci-eval", *words, *named])


def remove_files(folder: Path, pattern: str) -> None:
    """Remove the files that match `pattern` from a subfolder of a run; others are the user's."""
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    for file in folder.glob(pattern):
        file.unlink()


def make_report_folder(folder: Path) -> None:
    """Create the folder of a run unless it exists; like pytest's cache, git ignores it."""
    if folder.name == BASE_FOLDER:
        make_report_folder(folder.parent)
    if folder.is_dir():
        return
    folder.mkdir(parents=True)
    (folder / ".gitignore").write_text("# Written by ci-eval.\n*\n", encoding="utf-8")
