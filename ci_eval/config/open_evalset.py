"""Opening an evalset in any format."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from ci_eval.formats import known_formats
from ci_eval.formats.sniff import is_json_lines, read_head, syntax_of
from ci_eval.plugins import points
from ci_eval.plugins.plugin import Syntax
from ci_eval.plugins.points import EvalSetReader
from ci_eval.records.cases import EvalCase, Json
from ci_eval.records.errors import EvalSetError
from ci_eval.records.evalset_facts import OpenedEvalSet
from ci_eval.runtime.storage.adk_storage import evalset_place
from ci_eval.runtime.storage.downloads import Copy
from ci_eval.runtime.storage.gcs import Storage


def open_evalset(path: Path, *, shown: str) -> OpenedEvalSet:
    """Read the evalset at `path`, in any format.

    Raises:
        EvalSetError: the file is not a valid evalset.

    """
    head = read_head(path, shown=shown)
    if syntax_of(path) == "json" and isinstance(head, dict) and is_json_lines(path, shown=shown):
        message = "has several JSON values, one per line; name the file *.jsonl"
        raise EvalSetError(message, file=shown, line=2)
    reader = reader_of(head, syntax_of(path))
    if reader is None:
        found = _described(head, syntax_of(path))
        message = f"is not a known evalset format ({', '.join(points.evalset)}): found {found}"
        raise EvalSetError(message, file=shown, line=1)
    return reader().read(path, shown=shown)


def open_stored(given: str, storage: Storage) -> OpenedEvalSet:
    """Download and read the evalset in the object `given`, `gs://…`.

    The downloaded copy is kept as long as its cases may be read.

    Raises:
        UsageError: the object cannot be read, or is not a valid evalset.

    """
    copy = storage.copy(evalset_place(given))
    opened = open_evalset(copy.path, shown=given)
    header = opened.header.model_copy(update={"path": str(copy.place)})
    return replace(opened, header=header, cases=partial(_cases, opened, copy))


def _cases(opened: OpenedEvalSet, copy: Copy) -> Iterator[EvalCase]:
    yield from opened.cases()
    del copy  # keeps the file until here


def reader_of(head: Json, syntax: Syntax = "json") -> type[EvalSetReader] | None:
    """Return the reader for evalsets that begin like `head`, if any."""
    return None if known_formats.recognised(head) else points.evalset.of(head, syntax)


def _described(head: Json, syntax: Syntax) -> str:
    """Return a description of a document that is not an evalset."""
    reader = points.recording.of(head, syntax)
    if reader is None or known_formats.recognised(head):
        return known_formats.described(head)
    return f"a recording ({reader.type_name}); an agent `{{recorded: FILE}}` replays it"
