"""Lookup of evalsets by file or, as in ADK's tools, by agent and id."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ci_eval.cli.evalset.command_files import File, LocalFile, StoredFile, bucket_at, file_at
from ci_eval.cli.evalset.evalset_editing import EvalSetFile
from ci_eval.config.open_evalset import reader_of
from ci_eval.formats.sniff import ENDINGS, SURE_ENDINGS, read_head, syntax_of
from ci_eval.records.errors import Problem, UsageError
from ci_eval.runtime.storage.adk_storage import (
    EVALSET_SUFFIX,
    check_segment,
    evalset_object,
    evalset_place,
    id_from,
)
from ci_eval.runtime.storage.gs_uri import Place, is_place

MAX_FILES = 10_000
"""Maximum number of files in a folder that are searched for evalsets."""
_NOT_OURS = ("node_modules", "__pycache__", "site-packages")


def located(place: str, eval_set_id: str | None) -> EvalSetFile:
    """Return the evalset that a command names: by a file, or by an agent's folder and an id.

    In a bucket the folder of an agent is `gs://bucket/app`.

    Raises:
        UsageError: the folder does not exist, or the id is invalid.

    """
    if is_place(place):
        return _located_object(place, eval_set_id)
    path = Path(place)
    if eval_set_id is None:
        if path.is_dir():
            raise UsageError(f"{place} is a directory; add the id of an evalset in it")
        return EvalSetFile(LocalFile(path, place), id_from(path.name))
    if not path.is_dir():
        what = "a file" if path.exists() else "missing"
        raise UsageError(f"{place} is {what}; an id needs the directory of an agent")
    check_segment(eval_set_id, "eval_set_id")
    file = LocalFile(path / f"{eval_set_id}{EVALSET_SUFFIX}")
    return EvalSetFile(file, eval_set_id, app=path.resolve().name)


def _located_object(given: str, eval_set_id: str | None) -> EvalSetFile:
    if eval_set_id is not None:
        place = Place.parse(given)
        app = place.name.removesuffix("/")
        named = Place(place.bucket, evalset_object(app, eval_set_id))
        return EvalSetFile(file_at(str(named)), eval_set_id, app=app)
    if is_folder(given) and evalset_place(given) == Place.parse(given):
        raise UsageError(f"{given} is a directory; add the id of an evalset in it")
    file = file_at(given)
    return EvalSetFile(file, id_from(Path(file.shown).name))


def is_folder(given: str) -> bool:
    """Return True if `given` is a folder or, in a bucket, is named like one."""
    if not is_place(given):
        return Path(given).is_dir()
    return not given.lower().endswith(ENDINGS)


def evalset_files(folder: str, unread: list[Problem] | None = None) -> Iterator[File]:
    """Yield the files in and below `folder` that are evalsets, or are named like one.

    Others that cannot be read are added to `unread`, as they may be evalsets.  Hidden folders and
    folders of installed packages are skipped; in a bucket, so are all files that are not named
    like an ADK evalset.

    Raises:
        UsageError: the folder does not exist, or contains too many files.

    """
    if is_place(folder):
        yield from _objects(folder)
        return
    top = Path(folder)
    if not top.is_dir():
        raise UsageError(f"Eval directory for app `{top.name}` not found.", file=folder)
    for path in _files(top, folder):
        try:
            is_evalset = path.name.endswith(SURE_ENDINGS) or _is_evalset(path)
        except UsageError as exc:
            if unread is not None:
                unread += exc.problems
            continue
        if is_evalset:
            yield LocalFile(path)


def _objects(folder: str) -> Iterator[StoredFile]:
    place = Place.parse(folder)
    name = place.name.rstrip("/")
    bucket = bucket_at(place)
    found = [
        entry
        for entry in bucket.listed(f"{name}/" if name else "")
        if entry.place.name.endswith(SURE_ENDINGS)
    ]
    _refuse_many(found, folder)
    yield from (StoredFile(bucket, entry.place, entry) for entry in found)


def _files(folder: Path, shown: str) -> list[Path]:
    found: list[Path] = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", *_NOT_OURS))]
        found += [Path(parent, name) for name in names if name.lower().endswith(ENDINGS)]
        _refuse_many(found, shown)
    return sorted(path for path in found if path.is_file())


def _refuse_many(found: Sequence[object], shown: str) -> None:
    if len(found) > MAX_FILES:
        message = f"holds more than {MAX_FILES} files that may be evalsets; pass a subdirectory"
        raise UsageError(message, file=shown)


def _is_evalset(path: Path) -> bool:
    """Return True if a file begins like an evalset that is not empty."""
    head = read_head(path, shown=str(path))
    return bool(head) and reader_of(head, syntax_of(path)) is not None
