"""Files that traces are added to, one a line, and read back from.

`traces.jsonl` holds every trace; `underway.jsonl` how far conversations have come that are not
over, and is there only as long as one of them is.  A line is written in one piece and flushed, so
that whatever ends the process leaves whole lines behind and at most one broken one at the end,
which is dropped when reading.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ci_eval.records.model import Json
from ci_eval.records.trials import Trace, Trial, TrialKey
from ci_eval.run_files.names import UNDERWAY_FILE
from ci_eval.run_files.resume import Begun
from ci_eval.text.fingerprint import of_question
from ci_eval.text.json_text import TRACE_DEPTH, parse_json
from ci_eval.text.redact import Secrets

MAX_LINE_BYTES = 64 * 1024 * 1024
"""A longer line is not read again, by a `recorded` agent neither."""


def trace_line(trace: Trace, **more: Json) -> str:
    """Return `trace` as one line that a `recorded` agent reads, `more` keys at its end."""
    row = {**_names(trace.key), "invocations": [*_dumped(trace)]}
    if trace.final_state is not None:
        row["final_state"] = trace.final_state
    if trace.error:
        row |= {"error": trace.error.message, "error_kind": trace.error.kind}
    return _line(row | more)


class Journal:
    """Every trace of a run, written as it is observed."""

    def __init__(
        self, path: Path, *, suite: str, resume: bool, secrets: Secrets | None = None
    ) -> None:
        self._suite = suite
        self._secrets = secrets or Secrets({})
        self._traces = _Lines(path, resume=resume)
        self._begun = _Lines(path.with_name(UNDERWAY_FILE), resume=resume)
        self._open = ExitStack()

    def __enter__(self) -> Self:
        self._open.enter_context(self._traces)
        self._open.enter_context(self._begun)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._open.close()
        if not self._begun.places:
            self._begun.path.unlink(missing_ok=True)

    def add(self, trace: Trace, case_fingerprint: str) -> None:
        """Add one trace; `case_fingerprint` tells a later run whether it still applies.

        What held a secret applies to none: it cannot be scored again.
        """
        found, trace = trace, self._secrets.cleaned(trace)
        waits = trace.error and trace.error.kind == "waiting"
        if trace.key in self._begun.places and not waits:
            # Before the trace, or an error could be gone on with that was one to the end.
            self._begun.write(trace.key, _line(_names(trace.key) | {"over": True}))
            del self._begun.places[trace.key]
        line = trace_line(
            trace,
            duration_s=trace.duration_s,
            attempts=trace.attempts,
            suite=self._suite,
            case_fingerprint=case_fingerprint if trace is found else "",
            **({"output": trace.output} if trace.output else {}),
        )
        self._traces.write(trace.key, line)

    def keep(self, trial: Trial, begun: Begun) -> None:
        """Keep how far the conversation of `trial` has come.

        What held a secret is never gone on with: the agent would be told other things.
        """
        found, begun = begun, self._secrets.cleaned(begun)
        key = self._secrets.cleaned(trial.key)
        row = {
            **_names(key),
            "suite": self._suite,
            "case_fingerprint": of_question(trial.case) if begun is found else "",
            "invocations": [*_dumped(begun)],
            "memento": begun.memento,
            "answered": [
                each.model_dump(mode="json", exclude_none=True) for each in begun.answered
            ],
        }
        self._begun.write(key, _line(row))

    def observed(self, trial: Trial) -> Trace | Begun | None:
        """Return what an earlier run observed of `trial`, all of it or how far it had come.

        What failed is not taken, nor what was observed of a case that has changed since.
        """
        trace = self._observed(trial)
        return trace or self._kept(trial)

    def _observed(self, trial: Trial) -> Trace | None:
        row = self._traces.read(trial.key)
        applies = row.get("suite") == self._suite and row.get("error") is None
        if not applies or row.get("case_fingerprint") != trial.fingerprint:
            return None
        return _trace(trial.key, row)

    def _kept(self, trial: Trial) -> Begun | None:
        row = self._begun.read(trial.key)
        applies = row.get("suite") == self._suite and not row.get("over")
        if not applies or row.get("case_fingerprint") != of_question(trial.case):
            return None
        try:
            return Begun.model_validate(row)
        except ValueError:
            return None


class _Lines:
    """A file of lines, each about one trial, of which the last one counts."""

    def __init__(self, path: Path, *, resume: bool) -> None:
        self.path = path
        self.places: dict[TrialKey, int] = {}
        """Where the last line about each trial begins."""
        self._resume = resume

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        keep = self._resume and self.path.exists() and not self.path.is_symlink()
        if not keep:
            self.path.unlink(missing_ok=True)
        self._file = self.path.open("r+b" if keep else "x+b")
        self._index()
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _index(self) -> None:
        """Note where the last line of each trial stands, and cut off a broken last line."""
        whole = 0
        for line in iter(self._read_line, b""):
            if not line.endswith(b"\n"):
                break
            row = _row(line)
            key = _key(row)
            if key and row.get("over"):
                self.places.pop(key, None)
            elif key:
                self.places[key] = whole
            whole = self._file.tell()
        self._file.truncate(whole)

    def _read_line(self) -> bytes:
        """Return the next line; of one that is too long, the end, which nobody understands."""
        line = self._file.readline(MAX_LINE_BYTES)
        while len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
            line = self._file.readline(MAX_LINE_BYTES)
        return line

    def write(self, key: TrialKey, line: str) -> None:
        self.places[key] = self._file.seek(0, 2)
        self._file.write(line.encode())
        self._file.flush()

    def read(self, key: TrialKey) -> Mapping[str, Json]:
        """Return the last line about a trial; nothing where there is none."""
        if key not in self.places:
            return {}
        self._file.seek(self.places[key])
        return _row(self._file.readline(MAX_LINE_BYTES))


def _names(key: TrialKey) -> dict[str, Json]:
    return {
        "agent": key.agent,
        "evalset": key.evalset,
        "eval_id": key.case,
        "repeat": key.repeat,
    }


def _dumped(observed: Trace | Begun) -> Iterator[Json]:
    return (each.model_dump(mode="json", exclude_defaults=True) for each in observed.invocations)


def _line(row: Mapping[str, Json]) -> str:
    return json.dumps(row, separators=(",", ":")) + "\n"


def _row(line: bytes) -> Mapping[str, Any]:
    """Return what stands in a line; nothing where it is damaged, or not one of ours."""
    try:
        row = parse_json(line, max_depth=TRACE_DEPTH)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}


def _key(row: Mapping[str, Json]) -> TrialKey | None:
    """Return whose line `row` is; `None` where it is nobody's."""
    try:
        names = {"agent": row["agent"], "evalset": row["evalset"], "case": row["eval_id"]}
        return TrialKey.model_validate({**names, "repeat": row["repeat"]})
    except (ValueError, LookupError):
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
                "output": row.get("output", ""),
            }
        )
    except (ValueError, LookupError):
        return None
