"""What is fetched from elsewhere: bounded in size, and here for as long as it is read."""

import shutil
import tempfile
import weakref
import zlib
from pathlib import Path
from typing import IO

from ci_eval.records.errors import Problem, UsageError
from ci_eval.storage.gs_uri import Place

MAX_OBJECT = 1 << 30
"""The largest object that is read, in bytes, unpacked."""
_CHUNK = 1 << 20


class Copy:
    """A copy of an object in a file of this machine, which is there as long as this is."""

    def __init__(self, place: Place, generation: int) -> None:
        self.place = place
        self.generation = generation
        """Of the object; 0 where there is none, and no file."""
        folder = tempfile.mkdtemp(prefix="ci-eval-")
        self.path = Path(folder, place.file_name)
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)


class Bounded:
    """Takes what is downloaded, unpacks it where it is packed, and never takes too much."""

    def __init__(self, file: IO[bytes], encoding: str, shown: str) -> None:
        self._file = file
        self._shown = shown
        self._left = MAX_OBJECT
        self._unpack = _gunzip() if encoding == "gzip" else None

    def write(self, data: bytes) -> int:
        """Keep `data`, or what is packed in it.

        Raises:
            UsageError: it is too much, or not packed as was said.

        """
        if self._unpack is None:
            self._keep(data)
        else:
            try:
                self._unpacked(data)
            except zlib.error as exc:
                message = f"is said to be gzip, and is not: {exc}"
                raise UsageError(problems=[Problem(message, self._shown)]) from exc
        return len(data)

    def _unpacked(self, rest: bytes) -> None:
        """Keep what is packed in `rest`, piece by piece, so that a small bomb stays small."""
        while self._unpack:
            piece = self._unpack.decompress(rest, _CHUNK)
            self._keep(piece)
            rest = self._unpack.unconsumed_tail
            if self._unpack.eof:
                # Several packed files, one after the other, are one.
                rest = self._unpack.unused_data
                self._unpack = _gunzip()
            if not rest and len(piece) < _CHUNK:
                return

    def _keep(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left < 0:
            raise too_large(self._shown)
        self._file.write(data)


def _gunzip() -> "zlib._Decompress":
    return zlib.decompressobj(wbits=31)


def too_large(shown: str) -> UsageError:
    """Return the error that says that the object `shown` is."""
    message = f"is larger than {MAX_OBJECT >> 20} MiB, which is the most for an object"
    return UsageError(problems=[Problem(message, shown)])
