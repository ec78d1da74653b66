"""Files of recorded calls: a first line that names the format, then one JSON object per line.

Several processes may write at the same time: each line is written in one piece, under a lock.  A
process that is killed leaves at most one incomplete line, which readers ignore.
"""

import hashlib
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from ci_eval.records.errors import UsageError
from ci_eval.text.json_text import NotJsonError, parse_json

MAX_BYTES = 1 << 30
"""Maximum size of a file, in bytes."""
MAX_LINE_BYTES = 16 * 1024 * 1024
"""Maximum length of a line, in bytes."""
_HINT = "record a new one under another name, or remove it"
_CONFLICT = (b"<<<<<<<", b"|||||||", b"=======", b">>>>>>>")
"""The beginnings of the lines that mark a merge conflict."""
_LOCK_OFFSET = 1 << 40
"""Offset of the locked byte, beyond the end of any file."""
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)


class Position(NamedTuple):
    """The place of a line."""

    file: "LineFile"
    at: int
    length: int

    def read(self) -> bytes:
        """Return the line; another process may have replaced the file."""
        return self.file.line(self.at, self.length)


def shard_file_name(given: str) -> str:
    """Return the name of the file that a shard records to, instead of the cassette at `given`."""
    return f"{hashlib.sha256(os.path.normpath(given).encode()).hexdigest()[:16]}.jsonl"


def shard_file(folder: Path | None, given: str) -> Path | None:
    """Return the path of that file in `folder`; `None` without a folder (no shards)."""
    return folder / shard_file_name(given) if folder else None


def line_counts(folder: Path) -> dict[str, int]:
    """Return the number of complete lines in each file that a shard recorded to `folder`."""
    counts = {}
    for path in filter(Path.is_file, folder.glob("[0-9a-f]*.jsonl")):
        with path.open("rb") as file:
            counts[path.name] = sum(line.endswith(b"\n") for line in _lines(file))
    return counts


class LineFile:
    """The file at `path`, named `shown` in messages; its first line is `{"FORMAT":VERSION}`.

    Marks of a merge conflict are skipped, or with `refuses_conflicts`, the file is refused.
    """

    def __init__(
        self, path: Path, *, shown: str, of: str, version: int, refuses_conflicts: bool = False
    ) -> None:
        # A link is followed once, so that none which replaces the file meanwhile leads elsewhere.
        self._path = Path(os.path.realpath(path))
        self._format = of
        self._version = version
        self._refuses_conflicts = refuses_conflicts
        self._head = f'{{"{of}":{version}}}\n'.encode()
        self.shown = shown
        """Path of the file in messages."""
        self.incomplete = 0
        """The number of lines that were skipped when the file was last read."""
        self._read: os.stat_result | None = None
        """The file that was read last."""

    @property
    def exists(self) -> bool:
        """True if there is a file."""
        return self._path.exists()

    @property
    def is_replaced(self) -> bool:
        """True if another file has replaced the one that was read last."""
        if self._read is None or not self.exists:
            return False
        return not os.path.samestat(self._read, self._path.stat())

    def lines(self) -> Iterator[tuple[Position, bytes]]:
        """Yield the place and the text of each complete line after the first.

        Editors may leave out the line end of the last one.

        Raises:
            UsageError: it is not a regular file, not a cassette of this version, or too large, or
                it has a merge conflict.

        """
        if not self.exists:
            return
        if self._path.stat().st_size > MAX_BYTES:
            message = f"{self.shown} is larger than {MAX_BYTES >> 20} MiB, the limit of cassettes"
            raise UsageError(message, hint=_HINT)
        at = self.incomplete = 0
        with os.fdopen(self._opened(os.O_RDONLY), "rb") as file:
            self._read = os.fstat(file.fileno())
            for number, line in enumerate(_lines(file)):
                if number == 0:
                    self._check_head(line)
                elif self._refuses_conflicts and line.startswith(_CONFLICT):
                    raise self._conflict()
                elif line.endswith((b"}\n", b"}\r\n")) or _is_whole(line):
                    yield Position(self, at, len(line)), line.rstrip(b"\r\n") + b"\n"
                else:
                    self.incomplete += 1
                at += len(line)

    def line(self, at: int, length: int) -> bytes:
        """Return the line at an offset; another process may have replaced the file."""
        file = self._opened(os.O_RDONLY)
        try:
            os.lseek(file, at, os.SEEK_SET)
            return os.read(file, length)
        finally:
            os.close(file)

    def begin(self) -> None:
        """Create the file if it is missing, and check that it can be written.

        Raises:
            OSError: it cannot be written.
            UsageError: it is not a regular file.

        """
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._locked() as file:
            if not os.fstat(file).st_size:
                _write(file, self._head)

    def append(self, line: bytes) -> Position:
        """Write a line, and return its place."""
        with self._locked() as file:
            at = size = os.fstat(file).st_size
            before = b""
            if not size:  # the file was removed meanwhile
                before = self._head
            elif _byte_at(file, size - 1) != b"\n":  # a killed process left half a line
                before = b"\n"
            _write(file, before + line)
            return Position(self, at + len(before), len(line))

    def rewrite(self, arranged: Callable[[Iterator[bytes]], Iterable[bytes]]) -> None:
        """Replace all complete lines by the result of `arranged`."""
        if not self.exists or sys.platform == "win32":  # open files cannot be replaced
            return
        with self._locked():
            # Created anew: a link of this name may point outside the repository.
            draft = self._path.with_name(f".{self._path.name}.draft")
            draft.unlink(missing_ok=True)
            with draft.open("xb") as file:
                file.write(self._head)
                file.writelines(arranged(line for _, line in self.lines()))
            draft.replace(self._path)

    def _opened(self, flags: int) -> int:
        """Open the file, without waiting for the other end of a pipe.

        Raises:
            UsageError: it is not a regular file.

        """
        file = os.open(self._path, flags | _NONBLOCK | getattr(os, "O_BINARY", 0), 0o644)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise UsageError("is not a file", file=self.shown)
        return file

    def _check_head(self, line: bytes) -> None:
        pattern = rb'\{"' + re.escape(self._format).encode() + rb'":([0-9]{1,9})[,}]'
        found = re.match(pattern, line)
        if found and int(found[1]) == self._version:
            return
        if found:
            given = int(found[1])
            message = f"is a version {given} cassette; this ci-eval reads version {self._version}"
        elif line.startswith(_CONFLICT):
            raise self._conflict()
        else:
            # The last word is written out, so that `explain` does not find any "is not a …".
            message = f"is not a {self._format.removesuffix(' cassette')} cassette"
        raise UsageError(f"{self.shown} {message}", hint=_HINT)

    def _conflict(self) -> UsageError:
        return UsageError(f"{self.shown} has a merge conflict", hint="resolve it")

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Open the file for appending, with the lock held."""
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        while True:
            file = self._opened(flags)
            try:
                _lock(file)
                if self._is_current(file):  # else the file was replaced meanwhile
                    yield file
                    return
            finally:
                os.close(file)

    def _is_current(self, file: int) -> bool:
        try:
            return os.path.samestat(os.fstat(file), self._path.stat())
        except FileNotFoundError:
            return False


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    """Yield lines; a line that is too long comes in pieces, none of which is valid."""
    return iter(lambda: file.readline(MAX_LINE_BYTES), b"")


def _is_whole(line: bytes) -> bool:
    """Return True if a line without its end is a JSON object."""
    try:
        return line.endswith(b"}") and isinstance(parse_json(line), dict)
    except NotJsonError:
        return False


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
