"""Answers of judges, kept in one file: a cache on a laptop, a cassette in a repository.

The first line says what the file is; every other one holds one answer under its key, a later
one in place of an earlier one.  No question is in it, and no secret that is known.  Several
processes may write at once: each line is written in one piece, under a lock.
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
"""The longest file."""
MAX_LINE_BYTES = 16 * 1024 * 1024
"""The longest line that holds an answer."""
VERSION = 1
"""Raised when a reader of the old form would go wrong."""
_HEAD = b'{"ci-eval cassette":%d}\n'
_OPENING = re.compile(rb'\{"ci-eval cassette":([0-9]{1,9})[,}]')
_LINE = re.compile(rb'\{"key":"([0-9a-f]{32})",')
_ANEW = "record it anew under another name, or remove it"
_FAR = 1 << 40
"""A place in the file where nothing ever is."""
_AT_ONCE = getattr(os, "O_NONBLOCK", 0)


class Cassette:
    """The answers in the file at `path`, which the user calls `shown`."""

    def __init__(self, path: Path, *, shown: str, secrets: Secrets | None = None) -> None:
        self._path = path
        self._secrets = secrets or Secrets({})
        self._shown = shown
        self._places: dict[str, tuple[int, int]] = {}
        """For each key, where its last line begins and how long it is."""
        self._own: dict[str, Answer] = {}

    @property
    def shown(self) -> str:
        """The file, as the user calls it."""
        return self._shown

    @property
    def is_empty(self) -> bool:
        """Whether it holds no answer."""
        return not (self._places or self._own)

    def load(self) -> None:
        """Note which answers the file holds.

        Raises:
            UsageError: it is no regular file, no cassette, one of another version, or too long.

        """
        if not self._path.exists():
            return
        if self._path.stat().st_size > MAX_BYTES:
            message = f"{self._shown} is longer than {MAX_BYTES >> 20} MiB, the most for a cassette"
            raise UsageError(message, hint=_ANEW)
        at = 0
        with self._opened() as file:
            for number, line in enumerate(_lines(file)):
                if number == 0:
                    self._check_head(line)
                elif (found := _LINE.match(line)) and line.endswith(b"}\n"):
                    self._places[found[1].decode()] = at, len(line)
                at += len(line)

    def _opened(self) -> IO[bytes]:
        """Open the file to read it, at once: a pipe would keep us waiting for a writer.

        Raises:
            UsageError: it is no regular file.

        """
        file = os.open(self._path, os.O_RDONLY | _AT_ONCE | getattr(os, "O_BINARY", 0))
        try:
            self._check_regular(file)
        except BaseException:
            os.close(file)
            raise
        return os.fdopen(file, "rb")

    def _check_regular(self, file: int) -> None:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise UsageError(problems=[Problem("is not a file", self._shown)])

    def _check_head(self, line: bytes) -> None:
        found = _OPENING.match(line)
        if found and int(found[1]) == VERSION:
            return
        if found:
            message = f"is a cassette of version {int(found[1])}; this ci-eval reads {VERSION}"
        else:
            message = "is no cassette of ci-eval"
        raise UsageError(f"{self._shown} {message}", hint=_ANEW)

    def begin(self) -> None:
        """See to it that the file is there and can be written.

        Raises:
            OSError: it cannot be.
            UsageError: it is no regular file.

        """
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._locked() as file:
            if not os.fstat(file).st_size:
                _write(file, _HEAD % VERSION)

    def get(self, key: str) -> Answer | None:
        """Return the answer that is kept under `key`."""
        if key in self._own or key not in self._places:
            return self._own.get(key)
        at, length = self._places[key]
        with self._opened() as file:
            file.seek(at)
            line = file.read(length)
        found = _LINE.match(line)
        if found is None or found[1].decode() != key:
            return None  # another process made the file anew meanwhile
        try:
            return Answer.model_validate(parse_json(line)["answer"])
        except (ValueError, LookupError, TypeError):
            return None  # somebody edited it

    def add(self, key: str, answer: Answer, *, about: str) -> None:
        """Keep `answer` under `key`; `about`, the criterion, is for readers of the file."""
        self._own[key] = answer
        clean = self._secrets.cleaned(answer)
        row = {"key": key, "criterion": about, "answer": clean.model_dump(exclude_defaults=True)}
        line = json.dumps(row, separators=(",", ":")).encode("ascii") + b"\n"
        with self._locked() as file:
            size = os.fstat(file).st_size
            if not size:  # somebody removed it meanwhile
                line = _HEAD % VERSION + line
            elif _byte(file, size - 1) != b"\n":  # a kill broke its last line off
                line = b"\n" + line
            _write(file, line)

    def tidy(self) -> None:
        """Drop every line in whose place a later one has come."""
        if not self._path.exists() or sys.platform == "win32":  # where no open file is replaced
            return
        with self._locked():
            last: dict[bytes, bytes] = {}
            with self._opened() as lines:
                for line in _lines(lines):
                    found = _LINE.match(line)
                    if found and line.endswith(b"}\n"):
                        last[found[1]] = line
            beside = self._path.with_name(f".{self._path.name}.{os.getpid()}")
            beside.write_bytes(_HEAD % VERSION + b"".join(last.values()))
            beside.replace(self._path)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Open the file to add to it, while nobody else writes."""
        file = self._open_locked()
        while os.fstat(file).st_ino != self._path.stat().st_ino:  # it was made anew meanwhile
            os.close(file)
            file = self._open_locked()
        try:
            yield file
        finally:
            os.close(file)

    def _open_locked(self) -> int:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | _AT_ONCE | getattr(os, "O_BINARY", 0)
        # A link is followed once, so that none that is put in its place meanwhile is.
        file = os.open(self._path.resolve(), flags | getattr(os, "O_NOFOLLOW", 0), 0o644)
        try:
            self._check_regular(file)
            _lock(file)
        except BaseException:
            os.close(file)
            raise
        return file


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a file; of one that is too long pieces, which hold no answer."""
    return iter(lambda: file.readline(MAX_LINE_BYTES), b"")


def _lock(file: int) -> None:
    """Wait until nobody else has locked `file`; closing it frees it."""
    if sys.platform == "win32":
        import msvcrt

        os.lseek(file, _FAR, os.SEEK_SET)  # where nothing is: others could not read what is locked
        msvcrt.locking(file, msvcrt.LK_LOCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)


def _byte(file: int, at: int) -> bytes:
    os.lseek(file, at, os.SEEK_SET)
    return os.read(file, 1)


def _write(file: int, text: bytes) -> None:
    rest = memoryview(text)
    while rest:
        rest = rest[os.write(file, rest) :]
