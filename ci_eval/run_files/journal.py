"""Journal of a run: files to which traces are appended and from which a run resumes.

`traces.jsonl` holds every trace; `underway.jsonl` holds the progress of unfinished conversations
and exists only while there are any.  Each line is written in one piece and flushed: if the process
is killed, at most the last line is broken, and a broken line is dropped on reading.
"""

import json
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from ci_eval.records.cases import Json, Record
from ci_eval.records.model_usage import ModelUsage
from ci_eval.records.trials import Place, Trace, Trial, TrialKey
from ci_eval.run_files.file_names import UNDERWAY_FILE, make_report_folder
from ci_eval.run_files.resume import Begun
from ci_eval.text.fingerprint import of_question
from ci_eval.text.json_text import TRACE_DEPTH, parse_json
from ci_eval.text.redact import Secrets

_encode = json.JSONEncoder(separators=(",", ":")).encode
Row = Mapping[str, Any]
"""The parsed content of a line."""
MAX_LINE_BYTES = 64 * 1024 * 1024
"""Longer lines are skipped on reading; a `recorded` agent skips them, too."""


def trace_line(trace: Trace, **more: Json) -> str:
    """Return `trace` as one line that a `recorded` agent can read, followed by `more` keys."""
    row = {**names_of(trace.key), "invocations": [*_dumped(trace)]}
    if trace.final_state is not None:
        row["final_state"] = trace.final_state
    if trace.error:
        row |= {"error": trace.error.message, "error_kind": trace.error.kind}
    return _line(row | more)


def read_traces(path: Path, places: Container[Place]) -> dict[TrialKey, Trace]:
    """Return the traces of agents on these cases; the last one of each repeat counts.

    Lines that are damaged, or too long, are left out.
    """
    found: dict[TrialKey, Trace] = {}
    for key, row, _ in _traces(path):
        trace = trace_of(key, row) if key.place in places else None
        if trace:
            found[key] = trace
    return found


def is_recording(path: Path) -> bool:
    """Return True if the first line of a file that is not blank is a recorded conversation."""
    with path.open("rb") as file:
        lines = iter(lambda: file.readline(MAX_LINE_BYTES), b"")
        row = row_of(next((line for line in lines if line.strip()), b""))
    return "invocations" in row or {"eval_id", "error"} <= row.keys()


def _traces(path: Path) -> Iterator[tuple[TrialKey, Row, bytes]]:
    """Yield each whole line about a trial, with its key and its parsed content."""
    with path.open("rb") as file:
        for line in iter(lambda: file.readline(MAX_LINE_BYTES), b""):
            row = row_of(line) if line.endswith(b"\n") else {}
            if key := key_of(row):
                yield key, row, line


class Journal:
    """Every trace of a run, written as soon as it is observed."""

    def __init__(
        self,
        path: Path,
        *,
        suite: str,
        resume: bool,
        secrets: Secrets | None = None,
        code: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Prepare the journal of a run; `code` has a digest of the code of each agent."""
        self._suite = suite
        self._code = code
        self.outdated = 0
        """Number of trials that were not reused because the code has changed."""
        self._secrets = secrets or Secrets({})
        self.spent: dict[str, ModelUsage] = {}
        """By agent, the metered model calls of the resumed run, whether or not they are reused."""
        begun = path.with_name(UNDERWAY_FILE)
        self._traces = _Lines(path, resume=resume, drops=self._drops)
        self._begun = _Lines(begun, resume=resume, drops=self._drops_begun)
        self._dropped: dict[TrialKey, Row] = {}
        """The last line of each unfinished conversation, where it contains a secret."""
        self._open = ExitStack()

    def __enter__(self) -> Self:
        self._open.enter_context(self._traces)
        self._open.enter_context(self._begun)
        for key in self._begun.places:
            self._count(key, self._begun.read(key))
        for key, row in self._dropped.items():
            self._count(key, row)
        self._dropped.clear()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()
        if not self._begun.places:
            self._begun.path.unlink(missing_ok=True)

    def add(self, trace: Trace, case_fingerprint: str) -> None:
        """Add one trace; a resumed run compares `case_fingerprint` to see whether it still applies.

        A redacted trace is never reused, because it cannot be scored again.
        """
        found, trace = trace, self._secrets.cleaned(trace)
        waits = trace.error and trace.error.kind == "waiting"
        if trace.key in self._begun.places and not waits:
            # Written before the trace, so that a failed conversation is never resumed.
            self._begun.write(trace.key, _line(names_of(trace.key) | {"over": True}).encode())
            del self._begun.places[trace.key]
        self._append(trace, case_fingerprint if trace is found else "")

    def _append(self, trace: Trace, case_fingerprint: str) -> None:
        line = trace_line(
            trace,
            duration_s=trace.duration_s,
            attempts=trace.attempts,
            **self._origin(trace.key.agent),
            case_fingerprint=case_fingerprint,
            **({"output": trace.output} if trace.output else {}),
        )
        self._traces.append(line.encode())

    def copy(self, path: Path, belongs: Callable[[TrialKey], bool]) -> int:
        """Add the traces in another run's file whose trials belong to this run.

        They are redacted, because that run may not have known all secrets of this one.  Returns the
        number of trials whose traces were added.
        """
        copied = set[TrialKey]()
        for key, row, line in _traces(path):
            if not belongs(key):
                continue
            if not self._is_secret(trace_of, key, row):
                self._traces.append(line)
            elif trace := trace_of(key, row):
                self._append(self._secrets.cleaned(trace), "")
            else:
                continue
            copied.add(key)
        return len(copied)

    def _is_secret(
        self, observed_of: Callable[[TrialKey, Row], Record | None], key: TrialKey, row: Row
    ) -> bool:
        """Return True if the line of an earlier run contains a secret, or may and is unreadable."""
        if not self._secrets.may_be_in(row):
            return False
        found = (key, key if row.get("over") else observed_of(key, row))
        return any(each is None or self._secrets.cleaned(each) is not each for each in found)

    def keep(self, trial: Trial, begun: Begun) -> None:
        """Store the progress of the conversation of `trial`.

        A redacted conversation is never resumed, because the agent would get different messages.
        """
        found, begun = begun, self._secrets.cleaned(begun)
        key = self._secrets.cleaned(trial.key)
        row = {
            **names_of(key),
            **self._origin(key.agent),
            "case_fingerprint": of_question(trial.case) if begun is found else "",
            "invocations": [*_dumped(begun)],
            "memento": begun.memento,
            "answered": [
                each.model_dump(mode="json", exclude_none=True) for each in begun.answered
            ],
        }
        self._begun.write(key, _line(row).encode())

    def observed(self, trial: Trial) -> Trace | Begun | None:
        """Return the trace or the progress of `trial` from the resumed run, if it can be reused.

        Failed trials and trials of other code, or of cases that have changed since, are not reused.
        """
        return self._finished(trial) or self._unfinished(trial)

    def _finished(self, trial: Trial) -> Trace | None:
        row = self._traces.read(trial.key)
        applies = row.get("error") is None and row.get("case_fingerprint") == trial.fingerprint
        return trace_of(trial.key, row) if applies and self._is_ours(trial.key, row) else None

    def _unfinished(self, trial: Trial) -> Begun | None:
        row = self._begun.read(trial.key)
        if not row or row.get("over"):
            return None
        applies = row.get("case_fingerprint") == of_question(trial.case)
        return _begun_of(trial.key, row) if applies and self._is_ours(trial.key, row) else None

    def _drops(self, key: TrialKey, row: Row) -> bool:
        """Count the metered calls of a trace; return True if it contains a secret."""
        if row.get("error_kind") != "waiting":  # otherwise, it is also unfinished
            self._count(key, row)
        return self._is_secret(trace_of, key, row)

    def _drops_begun(self, key: TrialKey, row: Row) -> bool:
        """Return True if the progress of a conversation contains a secret."""
        self._dropped.pop(key, None)
        is_secret = self._is_secret(_begun_of, key, row)
        if is_secret and not row.get("over"):
            self._dropped[key] = row
        return is_secret

    def _count(self, key: TrialKey, row: Row) -> None:
        """Add the metered calls in a line to those that the resumed run spent."""
        if row.get("suite", "") != self._suite:
            return
        with suppress(ValueError, LookupError, AttributeError, TypeError):  # edited by hand
            for metered in filter(None, (each.get("metered") for each in row["invocations"])):
                usage = ModelUsage.model_validate(metered)
                self.spent[key.agent] = self.spent.get(key.agent, ModelUsage()) + usage

    def _origin(self, agent: str) -> dict[str, Json]:
        """Return the suite and the code digest that a reused trial of this agent must have."""
        return {"suite": self._suite, "code": self._code.get(agent, "")}

    def _is_ours(self, key: TrialKey, row: Row) -> bool:
        """Return True if a line is of the same suite and code."""
        ours = self._origin(key.agent)
        found = {name: row.get(name, "") for name in ours}
        self.outdated += found != ours and found["suite"] == ours["suite"]
        return found == ours


class _Lines:
    """A file of lines, each about one trial; the last line about a trial counts."""

    def __init__(self, path: Path, *, resume: bool, drops: Callable[[TrialKey, Row], bool]) -> None:
        self.path = path
        self.places: dict[TrialKey, int] = {}
        """Offset of the last line about each trial, of existing lines and those `write` added."""
        self._resume = resume
        self._drops = drops
        """Whether an existing line is replaced by a blank one, so that its trial is run again."""

    def __enter__(self) -> Self:
        make_report_folder(self.path.parent)
        keep = self._resume and self.path.exists() and not self.path.is_symlink()
        if not keep:
            self.path.unlink(missing_ok=True)
        self._file = self.path.open("r+b" if keep else "x+b")
        self._index()
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _index(self) -> None:
        """Find the last line about each trial, and cut off a broken line at the end."""
        whole = 0
        for line in iter(self._read_line, b""):
            if not line.endswith(b"\n"):
                break
            row = row_of(line)
            key = key_of(row)
            is_dropped = key is not None and self._drops(key, row)
            if is_dropped:
                self._file.seek(whole)
                self._file.write(b" " * (len(line) - 1))
                self._file.seek(whole + len(line))
            if key and (is_dropped or row.get("over")):
                self.places.pop(key, None)
            elif key:
                self.places[key] = whole
            whole = self._file.tell()
        self._file.truncate(whole)
        self._file.seek(whole)

    def _read_line(self) -> bytes:
        """Return the next line; for a line that is too long, only its end, which does not parse."""
        line = self._file.readline(MAX_LINE_BYTES)
        while len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
            line = self._file.readline(MAX_LINE_BYTES)
        return line

    def write(self, key: TrialKey, line: bytes) -> None:
        self.places[key] = self._file.tell()
        self.append(line)

    def append(self, line: bytes) -> None:
        """Add a line that `read` does not find."""
        self._file.write(line)
        self._file.flush()

    def read(self, key: TrialKey) -> Row:
        """Return the last line about a trial; empty if there is none."""
        if key not in self.places:
            return {}
        self._file.seek(self.places[key])
        row = row_of(self._file.readline(MAX_LINE_BYTES))
        self._file.seek(0, 2)
        return row


def names_of(key: TrialKey) -> dict[str, Json]:
    """Return the keys that name a trial, as its line begins with them."""
    return {"agent": key.agent, "evalset": key.evalset, "eval_id": key.case, "repeat": key.repeat}


def _dumped(observed: Trace | Begun) -> Iterator[Json]:
    return (each.model_dump(mode="json", exclude_defaults=True) for each in observed.invocations)


def _line(row: Mapping[str, Json]) -> str:
    return _encode(row) + "\n"


def row_of(line: bytes) -> Row:
    """Return the parsed line; empty if it is damaged or not ours."""
    try:
        row = parse_json(line, max_depth=TRACE_DEPTH)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}


def key_of(row: Row) -> TrialKey | None:
    """Return the trial that `row` is about; `None` if it names none."""
    try:
        names = {"agent": row["agent"], "evalset": row["evalset"], "case": row["eval_id"]}
        return TrialKey.model_validate({**names, "repeat": row["repeat"]})
    except (ValueError, LookupError):
        return None


def _begun_of(_: TrialKey, row: Row) -> Begun | None:
    """Return the progress in `row`; `None` if another version wrote it in a different form."""
    with suppress(ValueError):
        return Begun.model_validate(row)
    return None


def trace_of(key: TrialKey, row: Row) -> Trace | None:
    """Return the trace in `row`; `None` if another version wrote it in a different form."""
    if {"invocations", "duration_s", "attempts"} <= row.keys():
        failure = {"kind": row.get("error_kind", "recorded"), "message": row.get("error")}
        with suppress(ValueError):
            error = failure if row.get("error") is not None else None
            return Trace.model_validate({**row, "key": key, "error": error})
    return None
