"""Files that records are added to, one a line, and read back from.

A line is written in one piece and flushed, so that whatever ends the process leaves whole
lines behind and at most one broken one at the end, which is dropped when reading.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from ci_eval.json_walk import parse_json
from ci_eval.records import Failure, Json, Trace, TrialKey


def trace_line(trace: Trace) -> str:
    """Return `trace` as one line of `traces.jsonl`, which `recorded` agents read, too."""
    row: dict[str, Json] = {
        "agent": trace.key.agent,
        "evalset": trace.key.evalset,
        "eval_id": trace.key.case,
        "repeat": trace.key.repeat,
        "invocations": [
            invocation.model_dump(mode="json", exclude_defaults=True)
            for invocation in trace.invocations
        ],
    }
    if trace.final_state is not None:
        row["final_state"] = trace.final_state
    if trace.error:
        row |= {"error": trace.error.message, "error_kind": trace.error.kind}
    row |= {"duration_s": trace.duration_s, "attempts": trace.attempts}
    return json.dumps(row, separators=(",", ":")) + "\n"


def read_traces(path: Path) -> Iterator[Trace]:
    """Yield the traces of the journal at `path`, in the order in which they were observed."""
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                return
            yield _trace(parse_json(line))


def _trace(row: dict[str, Json]) -> Trace:
    key = TrialKey(
        agent=row["agent"], evalset=row["evalset"], case=row["eval_id"], repeat=row["repeat"]
    )
    failed = row.get("error")
    error = Failure(kind=row["error_kind"], message=failed) if failed is not None else None
    return Trace.model_validate(
        {
            "key": key,
            "invocations": row["invocations"],
            "final_state": row.get("final_state"),
            "error": error,
            "duration_s": row["duration_s"],
            "attempts": row["attempts"],
        }
    )


class Journal:
    """A file that traces are added to."""

    def __init__(self, path: Path, *, append: bool) -> None:
        self._path = path
        self._mode = "a" if append else "w"
        self._file: IO[str]

    def __enter__(self) -> Self:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._path.open(self._mode, encoding="utf-8", newline="\n")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()

    def add(self, trace: Trace) -> None:
        """Add one trace."""
        self._file.write(trace_line(trace))
        self._file.flush()
