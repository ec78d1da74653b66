"""Where ADK keeps evalsets and results, in a folder and in a bucket, and what it calls them.

=========  =====================================  =============================================
what       below the folder of all agents         in a bucket
=========  =====================================  =============================================
evalset    `APP/ID.evalset.json`                  `APP/evals/eval_sets/ID.evalset.json`
result     `APP/.adk/eval_history/NAME…`          `APP/evals/eval_history/ID….evalset_result.json`
=========  =====================================  =============================================

As in `LocalEvalSetsManager`, `GcsEvalSetsManager` and their twins for results of ADK 2.13.0, with
its rules for ids and its words.
"""

import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Protocol

from ci_eval.records.errors import UsageError
from ci_eval.run_files.run_file import replacing
from ci_eval.runtime.paths import contained
from ci_eval.storage.gcs import Bucket
from ci_eval.storage.gs_uri import Place

EVALSET_SUFFIX = ".evalset.json"
RESULT_SUFFIX = ".evalset_result.json"
HISTORY = Path(".adk") / "eval_history"
"""Where results are, from the folder of an agent."""
_SETS = "evals/eval_sets"
_RESULTS = "evals/eval_history"
_ID = re.compile(r"[a-zA-Z0-9_]+")
_DRIVE = re.compile(r"[A-Za-z]:")
_FILES = (".json", ".jsonl", ".ndjson", ".yaml", ".yml", ".csv")


# --- Ids --------------------------------------------------------------------------------------


def check_segment(value: str, what: str) -> None:
    """Refuse an id that would be more, or less, than one part of a path.

    Raises:
        UsageError: it would.

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
    """Refuse an id that ADK would not create an evalset with.

    Raises:
        UsageError: it has other characters than letters, digits and `_`.

    """
    if not _ID.fullmatch(eval_set_id):
        raise UsageError(
            "Invalid Eval Set ID. Eval Set ID should have the `^[a-zA-Z0-9_]+$` format",
            hint=f"{eval_set_id!r} could be {id_from(eval_set_id)!r}",
        )


def id_from(name: str) -> str:
    """Return the id of an evalset in a file called `name`, where nothing else says it."""
    stem = name
    for suffix in (EVALSET_SUFFIX, ".test.json", *_FILES):
        if stem.endswith(suffix):
            stem = stem.removesuffix(suffix)
            break
    return re.sub(r"[^a-zA-Z0-9_]+", "_", stem).strip("_") or "evalset"


# --- Evalsets ---------------------------------------------------------------------------------


def evalset_object(app: str, eval_set_id: str) -> str:
    """Return the name of the object that is the evalset `eval_set_id` of an app.

    Raises:
        UsageError: one of the two is no part of a path.

    """
    check_segment(eval_set_id, "eval_set_id")
    check_segment(app, "app_name")
    return f"{app}/{_SETS}/{eval_set_id}{EVALSET_SUFFIX}"


def evalset_place(given: str) -> Place:
    """Return the object that `given` means: itself, or `gs://bucket/app/id` as ADK keeps it.

    Raises:
        UsageError: it is no address.

    """
    place = Place.parse(given)
    app, slash, eval_set_id = place.name.partition("/")
    by_id = app and slash and eval_set_id and "/" not in eval_set_id
    if by_id and not eval_set_id.lower().endswith(_FILES):
        return Place(place.bucket, evalset_object(app, eval_set_id))
    return place


# --- Results ----------------------------------------------------------------------------------


class History(Protocol):
    """Keeps the results of the runs of agents."""

    def check(self, app: str) -> None:
        """Refuse, before anything is paid for, where nothing of `app` could be kept.

        Raises:
            UsageError: it could not.

        """

    def result_id(self, full: str, name: str) -> str:
        """Return the id of the result `name`, whose id in full is that of its agent and evalset."""

    def writing(self, app: str, name: str) -> AbstractContextManager[IO[str]]:
        """Return what writes the result `name` of `app`, all of it or nothing."""

    def shown(self, app: str, name: str) -> str:
        """Return how the user finds the result `name` of `app`."""


@dataclass(frozen=True)
class FolderHistory:
    """Results below a folder of agents."""

    agents: Path
    root: Path
    """The folder of the configuration; links do not lead out of its repository."""

    def check(self, app: str) -> None:
        """Refuse a link that leads out of the repository."""
        self._folder(app)

    def result_id(self, full: str, name: str) -> str:
        """Return the id in full: files are found by their names."""
        del name
        return full

    @contextmanager
    def writing(self, app: str, name: str) -> Iterator[IO[str]]:
        """Write a file in one piece."""
        folder = self._folder(app)
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(folder / f"{name}{RESULT_SUFFIX}") as file:
            yield file

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
        """Refuse a name that ADK takes for no app, and a bucket that cannot be used."""
        check_segment(app, "app_name")
        self.bucket.require(f"{app}/{_RESULTS}/")

    def result_id(self, full: str, name: str) -> str:
        """Return the name: objects are found by their ids, which must be parts of paths."""
        del full
        return name

    @contextmanager
    def writing(self, app: str, name: str) -> Iterator[IO[str]]:
        """Write an object, once the whole text is there."""
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
        return f"{app}/{_RESULTS}/{name}{RESULT_SUFFIX}"
