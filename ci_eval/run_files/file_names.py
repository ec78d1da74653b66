"""Names of the files that users see, each in one place, and the folder of a run."""

from pathlib import Path

CONFIG_FILE = "ci-eval.yaml"
"""The configuration, where none is named."""
REPORT_FOLDER = "ci-eval-report"
"""The folder of a run and its documents, where none is named."""
RUN_FILE = "run.json"
TRACES_FILE = "traces.jsonl"
UNDERWAY_FILE = "underway.jsonl"
"""Conversations that are not over, while a run goes on."""
BASE_FOLDER = "base"
"""In the folder of a run: the same files for the base arm."""
REPORT_FILE = "report.json"
PAGE_FILE = "report.html"
SHARD_FILE = "shard.json"
"""Beside the files of a run, if it is a shard of a suite: which one, and of what."""
LOCK_FILE = ".lock"
"""In the folder of a run, while a process writes to it."""
CASSETTES_FOLDER = "cassettes"
"""In the folder of a shard: what it recorded."""


def remove_files(folder: Path, pattern: str) -> None:
    """Remove the files that fit `pattern` from a folder in that of a run; others are somebody's."""
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    for file in folder.glob(pattern):
        file.unlink()


def make_report_folder(folder: Path) -> None:
    """Create the folder of a run, which git ignores, as it does pytest's cache; keep an old one."""
    if folder.name == BASE_FOLDER:
        make_report_folder(folder.parent)
    if folder.is_dir():
        return
    folder.mkdir(parents=True)
    (folder / ".gitignore").write_text("# Written by ci-eval.\n*\n", encoding="utf-8")
