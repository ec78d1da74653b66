"""Recorded answers of judges in one file: a cache on a laptop, a cassette in a repository.

The first line names the format; each other line holds one answer under its key, and the last line
of a key counts.  The file contains no questions and no known secrets.  Several processes may write
at the same time: each line is written in one piece, under a lock.
"""

import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ci_eval.records.errors import Problem, UsageError
from ci_eval.records.questions import Answer
from ci_eval.text.json_text import parse_json
from ci_eval.text.redact import Secrets

MAX_BYTES = 1 << 30
"""Maximum size of the file, in bytes."""
MAX_LINE_BYTES = 16 * 1024 * 1024
"""Maximum length of a line that holds an answer, in bytes."""
VERSION = 1
"""Version of the format; incremented when older readers would misread it."""
_HEAD = b'{"ci-eval cassette":%d}\n'
_FIRST_LINE = re.compile(rb'\{"ci-eval cassette":([0-9]{1,9})[,}]')
_LINE = re.compile(rb'\{"key":"([0-9a-f]{32})",')
_HINT = "record a new one under another name, or remove it"
_LOCK_OFFSET = 1 << 40
"""Offset of the locked byte, beyond the end of any file."""
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)


class Cassette:
    """The answers in the file at `path`, named `shown` in messages."""

    def __init__(self, path: Path, *, shown: str, secrets: Secrets | None = None) -> None:
        self._path = path
        self._secrets = secrets or Secrets({})
        self.shown = shown
        """Path of the file in messages."""
        self._positions: dict[str, tuple[int, int]] = {}
        """Offset and length of the last line of each key."""
        self._added: dict[str, Answer] = {}

    @property
    def is_empty(self) -> bool:
        """True if there are no answers."""
        return not (self._positions or self._added)

    def load(self) -> None:
        """Index the answers in the file.

        Raises:
            UsageError: it is not a regular file, not a cassette of this version, or too large.

        """
        if not self._path.exists():
            return
        if self._path.stat().st_size > MAX_BYTES:
            message = f"{self.shown} is larger than {MAX_BYTES >> 20} MiB, the limit of cassettes"
            raise UsageError(message, hint=_HINT)
        at = 0
        with self._open() as file:
            for number, line in enumerate(_lines(file)):
                if number == 0:
                    self._check_head(line)
                elif (found := _LINE.match(line)) and line.endswith(b"}\n"):
                    self._positions[found[1].decode()] = at, len(line)
                at += len(line)

    def _open(self) -> IO[bytes]:
        """Open the file for reading, without waiting for the writer of a pipe.

        Raises:
            UsageError: it is not a regular file.

        """
        file = os.open(self._path, os.O_RDONLY | _NONBLOCK | getattr(os, "O_BINARY", 0))
        try:
            self._check_regular(file)
        except BaseException:
            os.close(file)
            raise
        return os.fdopen(file, "rb")

    def _check_regular(self, file: int) -> None:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise UsageError(problems=[Problem("is not a file", self.shown)])

    def _check_head(self, line: bytes) -> None:
        found = _FIRST_LINE.match(line)
        if found and int(found[1]) == VERSION:
            return
        if found:
            message = f"is a version {int(found[1])} cassette; this ci-eval reads version {VERSION}"
        else:
            message = "is not a ci-eval cassette"
        raise UsageError(f"{self.shown} {message}", hint=_HINT)

    def begin(self) -> None:
        """Create the file if it is missing, and check that it can be written.

        Raises:
            OSError: it cannot be written.
            UsageError: it is not a regular file.

        """
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._locked() as file:
            if not os.fstat(file).st_size:
                _write(file, _HEAD % VERSION)

    def get(self, key: str) -> Answer | None:
        """Return the answer recorded under `key`, if there is one."""
        if key in self._added or key not in self._positions:
            return self._added.get(key)
        at, length = self._positions[key]
        with self._open() as file:
            file.seek(at)
            line = file.read(length)
        found = _LINE.match(line)
        if found is None or found[1].decode() != key:
            return None  # another process has replaced the file
        try:
            return Answer.model_validate(parse_json(line)["answer"])
        except (ValueError, LookupError, TypeError):
            return None  # somebody edited it

    def add(self, key: str, answer: Answer, *, about: str) -> None:
        """Record `answer` under `key`; `about` names the criterion for people."""
        self._added[key] = answer
        clean = self._secrets.cleaned(answer)
        row = {"key": key, "criterion": about, "answer": clean.model_dump(exclude_defaults=True)}
        line = json.dumps(row, separators=(",", ":")).encode("ascii") + b"\n"
        with self._locked() as file:
            size = os.fstat(file).st_size
            if not size:  # the file was removed meanwhile
                line = _HEAD % VERSION + line
            elif _byte_at(file, size - 1) != b"\n":  # a killed process left half a line
                line = b"\n" + line
            _write(file, line)

    def tidy(self) -> None:
        """Remove lines that a later line of the same key replaces."""
        if not self._path.exists() or sys.platform == "win32":  # open files cannot be replaced
            return
        with self._locked():
            last: dict[bytes, bytes] = {}
            with self._open() as lines:
                for line in _lines(lines):
                    found = _LINE.match(line)
                    if found and line.endswith(b"}\n"):
                        last[found[1]] = line
            beside = self._path.with_name(f".{self._path.name}.{os.getpid()}")
            beside.write_bytes(_HEAD % VERSION + b"".join(last.values()))
            beside.replace(self._path)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Open the file for appending, with the lock held."""
        file = self._open_locked()
        while os.fstat(file).st_ino != self._path.stat().st_ino:  # the file was replaced meanwhile
            os.close(file)
            file = self._open_locked()
        try:
            yield file
        finally:
            os.close(file)

    def _open_locked(self) -> int:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | _NONBLOCK | getattr(os, "O_BINARY", 0)
        # Resolve links first: a link that replaces the file meanwhile is refused.
        file = os.open(self._path.resolve(), flags | getattr(os, "O_NOFOLLOW", 0), 0o644)
        try:
            self._check_regular(file)
            _lock(file)
        except BaseException:
            os.close(file)
            raise
        return file


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    """Yield lines; a line that is too long comes in pieces, which hold no answer."""
    return iter(lambda: file.readline(MAX_LINE_BYTES), b"")


def _lock(file: int) -> None:
    """Wait for the lock on `file`; closing the file releases it."""
    if sys.platform == "win32":
        import msvcrt

        os.lseek(file, _LOCK_OFFSET, os.SEEK_SET)  # a locked byte cannot be read by others
        msvcrt.locking(file, msvcrt.LK_LOCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)


def _byte_at(file: int, at: int) -> bytes:
    os.lseek(file, at, os.SEEK_SET)
    return os.read(file, 1)


def _write(file: int, text: bytes) -> None:
    rest = memoryview(text)
    while rest:
        rest = rest[os.write(file, rest) :]
