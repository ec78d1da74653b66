"""An evalset in whatever format it has, opened by the reader that understands it."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from ci_eval.formats import known_files
from ci_eval.formats.sniff import read_head, syntax_of
from ci_eval.plugins import points
from ci_eval.plugins.plugin import Syntax
from ci_eval.plugins.points import EvalSetReader
from ci_eval.records.errors import EvalSetError, Problem
from ci_eval.records.evalset_facts import OpenedEvalSet
from ci_eval.records.model import EvalCase, Json
from ci_eval.storage.adk_storage import evalset_place
from ci_eval.storage.downloads import Copy
from ci_eval.storage.gcs import Storage


def open_evalset(path: Path, *, shown: str) -> OpenedEvalSet:
    """Read the evalset at `path` in whatever format it has.

    Raises:
        EvalSetError: it is no evalset, or one with errors.

    """
    head = read_head(path, shown=shown)
    reader = reader_of(head, syntax_of(path))
    if reader is None:
        found = _described(head, syntax_of(path))
        message = f"is no evalset that is known here ({', '.join(points.evalset)}): found {found}"
        raise EvalSetError(problems=[Problem(message, shown, 1)])
    return reader().read(path, shown=shown)


def open_stored(given: str, storage: Storage) -> OpenedEvalSet:
    """Read the evalset in the object that `given` means, `gs://…`; it is fetched this once.

    Raises:
        UsageError: it cannot be read, is no evalset, or one with errors.

    """
    place = evalset_place(given)
    return of_copy(storage.copy(place), shown=given)


def of_copy(copy: Copy, *, shown: str) -> OpenedEvalSet:
    """Read the evalset in a copy, which is kept for as long as its cases can be asked for.

    Raises:
        EvalSetError: it is no evalset, or one with errors.

    """
    opened = open_evalset(copy.path, shown=shown)
    header = opened.header.model_copy(update={"path": str(copy.place)})
    return replace(opened, header=header, cases=partial(_cases, opened, copy))


def _cases(opened: OpenedEvalSet, copy: Copy) -> Iterator[EvalCase]:
    yield from opened.cases()
    del copy  # it was there until here


def reader_of(head: Json, syntax: Syntax = "json") -> type[EvalSetReader] | None:
    """Return the reader of evalsets that begin like `head`, if there is one."""
    return None if known_files.recognised(head) else points.evalset.of(head, syntax)


def _described(head: Json, syntax: Syntax) -> str:
    """Return what a document that is no evalset seems to be."""
    reader = points.recording.of(head, syntax)
    if reader is None or known_files.recognised(head):
        return known_files.described(head)
    return f"a recording ({reader.type_name}); an agent `{{recorded: FILE}}` replays it"
