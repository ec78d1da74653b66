"""ADK's storage layout: the names of evalsets and results, in folders and in buckets.

=========  =====================================  =============================================
what       below the folder of all agents         in a bucket
=========  =====================================  =============================================
evalset    `APP/ID.evalset.json`                  `APP/evals/eval_sets/ID.evalset.json`
result     `APP/.adk/eval_history/NAME…`          `APP/evals/eval_history/ID….evalset_result.json`
=========  =====================================  =============================================

It matches `LocalEvalSetsManager`, `GcsEvalSetsManager` and their counterparts for results in
ADK 2.13.0, including the rules for ids and the messages.
"""

import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from ci_eval.records.errors import UsageError
from ci_eval.run_files.run_file import replacing
from ci_eval.runtime.path_checks import contained
from ci_eval.runtime.storage.gcs import Bucket
from ci_eval.runtime.storage.gs_uri import Place

EVALSET_SUFFIX = ".evalset.json"
RESULT_SUFFIX = ".evalset_result.json"
HISTORY = Path(".adk") / "eval_history"
"""Where results are, relative to the folder of an agent."""
_SETS = "evals/eval_sets"
_RESULTS = "evals/eval_history"
_ID = re.compile(r"[a-zA-Z0-9_]+")
_DRIVE = re.compile(r"[A-Za-z]:")
_FILES = (".json", ".jsonl", ".ndjson", ".yaml", ".yml", ".csv")


# --- Ids --------------------------------------------------------------------------------------


def check_segment(value: str, what: str) -> None:
    """Require that an id is exactly one segment of a path.

    Raises:
        UsageError: it is empty, or has other segments.

    """
    if not value:
        raise UsageError(f"{what} must not be empty.")
    if "\0" in value:
        raise UsageError(f"{what} must not contain null bytes.")
    if "/" in value or "\\" in value:
        raise UsageError(f"{what} {value!r} must not contain path separators.")
    if _DRIVE.match(value):
        raise UsageError(f"{what} {value!r} must not be drive-qualified.")
    if value in (".", ".."):
        raise UsageError(f"{what} {value!r} must not contain traversal segments.")


def check_id(eval_set_id: str) -> None:
    """Require an id that ADK would accept for a new evalset.

    Raises:
        UsageError: it has characters other than letters, digits and `_`.

    """
    if not _ID.fullmatch(eval_set_id):
        raise UsageError(
            "Invalid Eval Set ID. Eval Set ID should have the `^[a-zA-Z0-9_]+$` format",
            hint=f"{eval_set_id!r} could be {id_from(eval_set_id)!r}",
        )


def id_from(name: str) -> str:
    """Return the default id of an evalset in a file named `name`."""
    suffixes = (EVALSET_SUFFIX, ".test.json", *_FILES)
    suffix = next((each for each in suffixes if name.endswith(each)), "")
    return re.sub(r"[^a-zA-Z0-9_]+", "_", name.removesuffix(suffix)).strip("_") or "evalset"


# --- Evalsets ---------------------------------------------------------------------------------


def evalset_object(app: str, eval_set_id: str) -> str:
    """Return the object name of the evalset `eval_set_id` of an app.

    Raises:
        UsageError: the id or the app is not a path segment.

    """
    check_segment(eval_set_id, "eval_set_id")
    check_segment(app, "app_name")
    return f"{app}/{_SETS}/{eval_set_id}{EVALSET_SUFFIX}"


def evalset_place(given: str) -> Place:
    """Return the object at `given`, or the evalset that `gs://bucket/app/id` stands for.

    Raises:
        UsageError: it is not an address.

    """
    place = Place.parse(given)
    app, slash, eval_set_id = place.name.partition("/")
    by_id = app and slash and eval_set_id and "/" not in eval_set_id
    if by_id and not eval_set_id.lower().endswith(_FILES):
        return Place(place.bucket, evalset_object(app, eval_set_id))
    return place


# --- Results ----------------------------------------------------------------------------------


def result_folder(app: str) -> str:
    """Return the beginning of the names of an app's results in a bucket.

    Raises:
        UsageError: the app is not a path segment.

    """
    check_segment(app, "app_name")
    return f"{app}/{_RESULTS}/"


@dataclass(frozen=True)
class FolderHistory:
    """Results below a folder of agents."""

    agents: Path
    root: Path
    """The folder of the configuration; symlinks out of its repository are rejected."""

    def check(self, app: str) -> None:
        """Reject a symlink out of the repository."""
        self._folder(app)

    def result_id(self, full: str, name: str) -> str:
        """Return the full id: files are found by their names."""
        del name
        return full

    def writing(self, app: str, name: str) -> AbstractContextManager[IO[str]]:
        """Write a file atomically."""
        folder = self._folder(app)
        folder.mkdir(parents=True, exist_ok=True)
        return replacing(folder / f"{name}{RESULT_SUFFIX}")

    def shown(self, app: str, name: str) -> str:
        """Return the path of the file."""
        return os.path.relpath(self._folder(app) / f"{name}{RESULT_SUFFIX}")

    def _folder(self, app: str) -> Path:
        return contained(self.root, str(self.agents / app / HISTORY))


@dataclass(frozen=True)
class BucketHistory:
    """Results in a bucket."""

    bucket: Bucket

    def check(self, app: str) -> None:
        """Reject an invalid app name, and a bucket that cannot be used."""
        self.bucket.require(result_folder(app))

    def result_id(self, full: str, name: str) -> str:
        """Return the name: objects are found by their ids, which must be path segments."""
        del full
        return name

    @contextmanager
    def writing(self, app: str, name: str) -> Iterator[IO[str]]:
        """Upload an object once its text is complete."""
        with TemporaryDirectory(prefix="ci-eval-") as folder:
            path = Path(folder, "result.json")
            with path.open("w", encoding="utf-8", newline="\n") as file:
                yield file
            with path.open("rb") as written:
                self.bucket.put(self._object(app, name), written, instead_of=0)

    def shown(self, app: str, name: str) -> str:
        """Return the address of the object."""
        return str(self.bucket.place(self._object(app, name)))

    def _object(self, app: str, name: str) -> str:
        check_segment(name, "eval_set_result_id")
        return f"{result_folder(app)}{name}{RESULT_SUFFIX}"


History = FolderHistory | BucketHistory
"""Storage of evaluation results.

`check` raises a `UsageError`, before anything is spent, if results of the app cannot be stored.
In `result_id`, the argument `full` also includes the agent and the evalset.
"""
