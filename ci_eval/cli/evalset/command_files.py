"""Files that commands read and write: local, or objects in Cloud Storage."""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from io import BytesIO
from pathlib import Path

from ci_eval.cli import command_inputs
from ci_eval.config.load_config import gcs_options
from ci_eval.records.errors import Problem, UsageError
from ci_eval.run_files.run_file import alone_in, replacing
from ci_eval.runtime.storage.adk_storage import evalset_place
from ci_eval.runtime.storage.downloads import Copy
from ci_eval.runtime.storage.gcs import Bucket, Entry, Storage
from ci_eval.runtime.storage.gs_uri import Place, is_place


class File(ABC):
    """A file that may or may not exist yet."""

    shown: str
    """The name for messages."""

    @property
    @abstractmethod
    def path(self) -> Path:
        """The path to read."""

    @property
    @abstractmethod
    def there(self) -> bool:
        """Whether anything of this name exists."""

    @abstractmethod
    def beside(self, name: str) -> "File":
        """Return the file of another name in the same folder."""

    def locked(self) -> AbstractContextManager[None]:
        """Return the lock to hold from reading the file to writing it, if it needs one."""
        return nullcontext()

    def unwritable(self) -> list[Problem]:
        """Return the reasons why it cannot be written, as far as known before the attempt."""
        return []

    @abstractmethod
    def write(self, text: str) -> None:
        """Write the whole file; if that fails, its old content remains.

        Raises:
            UsageError: it cannot be written, or has changed since it was read.

        """


class LocalFile(File):
    """A local file."""

    def __init__(self, path: Path, shown: str = "") -> None:
        self._path = path
        self.shown = shown or str(path)

    @property
    def path(self) -> Path:
        """The file itself."""
        return self._path

    @property
    def there(self) -> bool:
        """Whether there is a file, or a link of this name."""
        return self.path.exists() or self.path.is_symlink()

    def beside(self, name: str) -> "LocalFile":
        """Return the file of another name in the same folder."""
        return LocalFile(self.path.with_name(name))

    def locked(self) -> AbstractContextManager[None]:
        """Wait for other processes that edit files in the same folder; not on Windows."""
        return alone_in(self.path.parent)

    def unwritable(self) -> list[Problem]:
        """Refuse symlinks, anything else that is not a file, and missing folders."""
        path, shown = self.path, self.shown
        if path.is_symlink():
            message = "is a symbolic link, not written; pass the file itself"
            return [Problem(message, shown)]
        if path.exists() and not path.is_file():
            return [Problem("is not a file", shown)]
        return [] if path.parent.is_dir() else [Problem("its directory does not exist", shown)]

    def write(self, text: str) -> None:
        """Replace the file; its mode is kept."""
        problems = self.unwritable()
        if problems:
            raise UsageError(problems=problems)
        mode = self.path.stat().st_mode if self.path.exists() else None
        with replacing(self.path) as file:
            file.write(text)
        if mode is not None:
            self.path.chmod(mode & 0o777)


class StoredFile(File):
    """A stored object, written only if it has not changed since it was looked up."""

    def __init__(self, bucket: Bucket, place: Place, entry: Entry | None) -> None:
        self.place = place
        self.shown = str(place)
        self._bucket = bucket
        self._entry = entry

    @cached_property
    def _copy(self) -> Copy:
        return self._bucket.copied(self._entry) if self._entry else Copy(self.place, 0)

    @property
    def path(self) -> Path:
        """A copy, which exists as long as this object."""
        return self._copy.path

    @property
    def there(self) -> bool:
        """Whether there was an object."""
        return self._entry is not None

    def beside(self, name: str) -> "StoredFile":
        """Return the object of another name in the same folder."""
        folder, slash, _ = self.place.name.rpartition("/")
        return _stored(self._bucket, self._bucket.place(f"{folder}{slash}{name}"))

    def write(self, text: str) -> None:
        """Replace the object, unless it has changed."""
        before = self._entry.generation if self._entry else 0
        self._bucket.put(self.place.name, BytesIO(text.encode()), instead_of=before)


def file_at(given: str) -> File:
    """Return the file at `given`; `gs://bucket/app/id` is an ADK evalset.

    Raises:
        UsageError: the address is invalid, or the bucket cannot be read.

    """
    if not is_place(given):
        return LocalFile(Path(given), given)
    place = evalset_place(given)
    return _stored(bucket_at(place), place)


def bucket_at(place: Place) -> Bucket:
    """Return the bucket of `place`, with the access that the configuration in this folder sets.

    Raises:
        UsageError: the configuration has errors, or there are no credentials.

    """
    here = command_inputs.context_of()
    return Storage(gcs_options(here), here.env).bucket(place.bucket)


def _stored(bucket: Bucket, place: Place) -> StoredFile:
    return StoredFile(bucket, place, bucket.find(place.name))
