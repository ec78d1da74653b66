"""Downloads: size limits, decompression and temporary copies."""

import shutil
import tempfile
import weakref
import zlib
from pathlib import Path
from typing import IO

from ci_eval.records.errors import UsageError
from ci_eval.runtime.storage.gs_uri import Place

MAX_OBJECT = 1 << 30
"""The largest object that is read, in bytes, decompressed."""
_CHUNK = 1 << 20


class Copy:
    """A local copy of an object, deleted together with this Python object."""

    def __init__(self, place: Place, generation: int) -> None:
        self.place = place
        self.generation = generation
        """The generation of the object; 0 if the object does not exist, and there is no file."""
        folder = tempfile.mkdtemp(prefix="ci-eval-")
        self.path = Path(folder, place.file_name)
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)


class Bounded:
    """Writes a download to a file, decompressed and limited in size."""

    def __init__(self, file: IO[bytes], encoding: str, shown: str) -> None:
        self._file = file
        self._shown = shown
        self._left = MAX_OBJECT
        self._decompressor = _gzip_decompressor() if encoding == "gzip" else None

    def write(self, data: bytes) -> int:
        """Write `data`, decompressed.

        Raises:
            UsageError: it is too large, or not gzip although declared as such.

        """
        if self._decompressor is None:
            self._store(data)
        else:
            try:
                self._decompress(data)
            except zlib.error as exc:
                message = f"is not gzip, although its Content-Encoding says so: {exc}"
                raise UsageError(message, file=self._shown) from exc
        return len(data)

    def _decompress(self, rest: bytes) -> None:
        """Decompress and write `rest` piece by piece, so that a decompression bomb stays small."""
        while self._decompressor:
            piece = self._decompressor.decompress(rest, _CHUNK)
            self._store(piece)
            rest = self._decompressor.unconsumed_tail
            if self._decompressor.eof:
                # A gzip file may have several members.
                rest = self._decompressor.unused_data
                self._decompressor = _gzip_decompressor()
            if not rest and len(piece) < _CHUNK:
                return

    def _store(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left < 0:
            raise too_large(self._shown)
        self._file.write(data)


def _gzip_decompressor() -> "zlib._Decompress":
    return zlib.decompressobj(wbits=31)


def too_large(shown: str) -> UsageError:
    """Return the error for an object that is too large."""
    message = f"is larger than {MAX_OBJECT >> 20} MiB, the limit for an object"
    return UsageError(message, file=shown)
