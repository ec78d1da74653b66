"""Files that traces are added to, one a line, and read back from.

A line is written in one piece and flushed, so that whatever ends the process leaves whole
lines behind and at most one broken one at the end, which is dropped when reading.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from ci_eval.json_text import TRACE_DEPTH, parse_json
from ci_eval.records import Json
from ci_eval.trials import Trace, TrialKey


def trace_line(trace: Trace, **more: Json) -> str:
    """Return `trace` as one line that a `recorded` agent reads, `more` keys at its end."""
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
    return json.dumps(row | more, separators=(",", ":")) + "\n"


class Journal:
    """Every trace of a run, written as it is observed."""

    def __init__(self, path: Path, *, resume: bool) -> None:
        self._path = path
        self._resume = resume
        self._known: dict[TrialKey, int] = {}
        self._file: IO[bytes]

    def __enter__(self) -> Self:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        keep = self._resume and self._path.exists() and not self._path.is_symlink()
        if not keep:
            self._path.unlink(missing_ok=True)
        self._file = self._path.open("r+b" if keep else "x+b")
        self._index()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()

    def _index(self) -> None:
        """Note where the last line of each trial stands, and cut off a broken last line."""
        whole = 0
        for line in self._file:
            if not line.endswith(b"\n"):
                break
            key = _key(line)
            if key:
                self._known[key] = whole
            whole += len(line)
        self._file.truncate(whole)

    def add(self, trace: Trace, case_fingerprint: str) -> None:
        """Add one trace; `case_fingerprint` tells a later run whether it still applies."""
        line = trace_line(
            trace,
            duration_s=trace.duration_s,
            attempts=trace.attempts,
            case_fingerprint=case_fingerprint,
        )
        self._file.seek(0, 2)
        self._file.write(line.encode())
        self._file.flush()

    def observed(self, key: TrialKey, case_fingerprint: str) -> Trace | None:
        """Return the trace of an earlier run, unless it failed or the case has changed."""
        if key not in self._known:
            return None
        self._file.seek(self._known[key])
        row = parse_json(self._file.readline(), max_depth=TRACE_DEPTH)
        if row.get("error") is not None or row.get("case_fingerprint") != case_fingerprint:
            return None
        return _trace(key, row)


def _key(line: bytes) -> TrialKey | None:
    """Return whose trace `line` is; `None` where it is nobody's."""
    try:
        row = parse_json(line, max_depth=TRACE_DEPTH)
        names = {"agent": row["agent"], "evalset": row["evalset"], "case": row["eval_id"]}
        return TrialKey.model_validate({**names, "repeat": row["repeat"]})
    except (ValueError, LookupError, TypeError):
        return None


def _trace(key: TrialKey, row: Mapping[str, Json]) -> Trace | None:
    """Return the trace that `row` holds; `None` where another version wrote it otherwise."""
    try:
        return Trace.model_validate(
            {
                "key": key,
                "invocations": row["invocations"],
                "final_state": row.get("final_state"),
                "duration_s": row["duration_s"],
                "attempts": row["attempts"],
            }
        )
    except (ValueError, LookupError):
        return None
