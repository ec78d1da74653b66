"""Conversations of a finished run, read one by one from `traces.jsonl`."""

import json
import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from ci_eval.records.results import Run
from ci_eval.records.trials import Trace, TrialKey
from ci_eval.run_files.journal import MAX_LINE_BYTES, key_of, names_of, row_of, trace_of

_NAMES = re.compile(
    rb'\{("agent":"(?:[^"\\]|\\.)*","evalset":"(?:[^"\\]|\\.)*",'
    rb'"eval_id":"(?:[^"\\]|\\.)*","repeat":[0-9]+),'
)
"""The beginning of a line written by us, which names its trial."""
_ENCODER = json.JSONEncoder(separators=(",", ":"))


class Conversations:
    """The traces of a file by trial; only their offsets are kept in memory."""

    def __init__(
        self, file: IO[bytes] | None, redact: Callable[[Any], Any] = lambda trace: trace
    ) -> None:
        self._file = file
        self._redact = redact
        found, offset = (array("q"), array("q")), 0
        for line in iter(lambda: file.readline(MAX_LINE_BYTES), b"") if file else ():
            names = _NAMES.match(line)
            # Finding where the names end is far faster than parsing the line.
            key = None if names else key_of(row_of(line))
            beginning = names[1] if names else _names(key) if key else b""
            if beginning and line.endswith(b"\n"):
                found[0].append(hash(beginning))
                found[1].append(offset)
            offset += len(line)
        self._hashes, self._offsets = _ordered(*found)

    def of(self, key: TrialKey) -> Trace | None:
        """Return the last trace of a trial; `None` if there is none, or it is damaged."""
        names = hash(_names(key))
        place = bisect_right(self._hashes, names) - 1
        if self._file is None or place < 0 or self._hashes[place] != names:
            return None
        self._file.seek(self._offsets[place])
        row = row_of(self._file.readline(MAX_LINE_BYTES))
        trace = trace_of(key, row) if names_of(key).items() <= row.items() else None
        return self._redact(trace) if trace else None


def _ordered(hashes: "array[int]", offsets: "array[int]") -> "tuple[array[int], array[int]]":
    """Return hashes in ascending order, and their offsets; equal hashes keep the file's order."""
    import numpy as np

    order = np.argsort(hashes, kind="stable")
    return array("q", np.array(hashes)[order].tobytes()), array(
        "q", np.array(offsets)[order].tobytes()
    )


def _names(key: TrialKey) -> bytes:
    """Return the names of a trial, as a line written by us begins with them."""
    return _ENCODER.encode(names_of(key)).encode()[1:-1]


@contextmanager
def conversations(run: Run) -> Iterator[Conversations]:
    """Open the traces of `run`; there are none if their file does not exist."""
    if run.traces is None or not run.traces.is_file():
        yield Conversations(None)
        return
    with run.traces.open("rb") as file:
        yield Conversations(file, run.redact)
