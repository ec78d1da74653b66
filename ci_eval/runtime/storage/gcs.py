"""Google Cloud Storage client: the only module that accesses it.

Needs the extra `gcs`.  Every failure is a `UsageError` that names the `gs://` address; downloads
are limited in size, compressed and decompressed.
"""

import base64
import hashlib
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import IO, Any, NamedTuple, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from ci_eval.records.cases import Record
from ci_eval.records.errors import UsageError
from ci_eval.runtime.storage.downloads import MAX_OBJECT, Bounded, Copy, too_large
from ci_eval.runtime.storage.gs_uri import SCHEME, Place
from ci_eval.text.sanitize import one_line

MAX_LISTED = 100_000
"""The most objects that are listed."""
_CHUNK = 1 << 20
_MAX_DETAIL = 300
"""How many characters of the service's error message are shown."""


class GcsOptions(Record):
    """Connection settings for Google Cloud Storage.

    The default is Google's service with Application Default Credentials, or the emulator that the
    environment variable `STORAGE_EMULATOR_HOST` names, without credentials.
    """

    project: str | None = Field(default=None, min_length=1)
    """The project that requests are billed to; default: `GOOGLE_CLOUD_PROJECT`, else that of the
    credentials."""
    endpoint: str | None = None
    """Another address of the service, such as a private endpoint. An address outside of
    `googleapis.com` needs `anonymous: true`, so that no credentials are sent there."""
    anonymous: bool = False
    """Whether to send no credentials, which is enough to read public buckets."""
    timeout_s: float = Field(default=60.0, gt=0, le=3600)
    """Timeout of a request in seconds, including retries."""

    @model_validator(mode="after")
    def _keeps_credentials(self) -> Self:
        if self.endpoint is None:
            return self
        parts = urlsplit(self.endpoint)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            raise ValueError("expected an 'endpoint' such as https://storage.googleapis.com")
        ours = parts.scheme == "https" and f".{parts.hostname}".endswith(".googleapis.com")
        if not (ours or self.anonymous):
            raise ValueError(
                "credentials are only sent to https://….googleapis.com; "
                "another 'endpoint' needs 'anonymous: true'"
            )
        return self


class ChangedError(UsageError):
    """An object was created, changed or deleted since it was read.

    What to do: run the command again; it reads the current object.
    """


class Entry(NamedTuple):
    """Metadata of an object."""

    place: Place
    generation: int
    """Changes whenever the content does."""
    size: int
    """The stored size in bytes, possibly compressed."""
    created: str
    """When it was stored, in UTC, ISO 8601."""
    encoding: str
    """`gzip`, or empty."""
    metadata: Mapping[str, str]
    """Custom metadata."""
    md5: str
    """The hash of the content, in base64; empty if unknown."""


@dataclass(frozen=True)
class Storage:
    """Google Cloud Storage, connected according to the configuration and the environment."""

    options: GcsOptions
    env: Mapping[str, str]

    def bucket(self, name: str) -> "Bucket":
        """Return the bucket `name`, without a request.

        Raises:
            UsageError: the extra is not installed, or there are no credentials.

        """
        client = self._client(f"{SCHEME}{name}")
        return Bucket(client.bucket(name), self.options.timeout_s)

    def copy(self, place: Place) -> Copy:
        """Download the object at `place`.

        Raises:
            UsageError: it does not exist, is too large, or cannot be read.

        """
        return self.bucket(place.bucket).copy(place.name)

    def _client(self, shown: str) -> Any:
        emulator = self.env.get("STORAGE_EMULATOR_HOST", "").strip()
        if emulator and "://" not in emulator:
            emulator = f"http://{emulator}"
        endpoint = self.options.endpoint or emulator
        anonymous = self.options.anonymous or (emulator and not self.options.endpoint)
        project = self.options.project or self.env.get("GOOGLE_CLOUD_PROJECT")
        try:
            with _translated_errors(shown):
                return _client(endpoint, project, anonymous=bool(anonymous))
        except ImportError as exc:
            message = "needs the package google-cloud-storage: pip install 'ci-eval[gcs]'"
            raise UsageError(message, file=shown) from exc


@cache
def _client(endpoint: str, project: str | None, *, anonymous: bool) -> Any:
    """Return a client; finding credentials may take requests.

    Raises:
        google.auth.exceptions.DefaultCredentialsError: there are no credentials.

    """
    with warnings.catch_warnings():
        # Warnings about the Python version and about user credentials; neither helps our users.
        warnings.simplefilter("ignore")
        import google.auth
        from google.auth.credentials import AnonymousCredentials
        from google.cloud import storage  # type: ignore[import-untyped]  # it has no types

        more: dict[str, Any] = {"client_options": {"api_endpoint": endpoint}} if endpoint else {}
        if anonymous:
            more["credentials"] = AnonymousCredentials()  # type: ignore[no-untyped-call]  # as above
        if not project and not anonymous:
            # The project of the credentials, or the library's placeholder for an unknown one.
            project = google.auth.default()[1] or "<none>"
        client = storage.Client(project=project or None, **more)
        # This cache serves tracing, which we do not use; its threads would keep sending requests
        # after a timeout.  The only other way to disable it is an environment variable.
        client._bucket_metadata_cache = None  # noqa: SLF001  # see above
        return client


class Bucket:
    """Objects of a bucket: list, read, write and delete them."""

    def __init__(self, bucket: Any, timeout_s: float) -> None:
        from google.cloud.storage.retry import DEFAULT_RETRY  # type: ignore[import-untyped]  # it has no types

        self._bucket = bucket
        retry = DEFAULT_RETRY.with_timeout(timeout_s)
        self._call_options: dict[str, Any] = {"timeout": timeout_s, "retry": retry}

    def place(self, name: str) -> Place:
        """Return the address of the object `name`."""
        return Place(self._bucket.name, name)

    def listed(self, prefix: str, *, most: int = MAX_LISTED) -> list[Entry]:
        """Return the objects whose names begin with `prefix`, sorted by name.

        Raises:
            UsageError: the bucket does not exist or cannot be listed, or has too many objects.

        """
        shown = str(self.place(prefix))
        options = {"prefix": prefix or None, "max_results": most + 1, **self._call_options}
        with _translated_errors(shown, missing="no such bucket"):
            found = [self._entry(blob) for blob in self._bucket.list_blobs(**options)]
        if len(found) > most:
            message = f"holds more than {most} objects; use a narrower pattern"
            raise UsageError(message, file=shown)
        return found

    def require(self, prefix: str) -> None:
        """Check that the bucket can be used for objects that begin with `prefix`.

        Raises:
            UsageError: the bucket does not exist, or cannot be listed.

        """
        with _translated_errors(str(self.place(prefix)), missing="no such bucket"):
            list(self._bucket.list_blobs(prefix=prefix, max_results=1, **self._call_options))

    def find(self, name: str) -> Entry | None:
        """Return the metadata of the object `name`; `None` if it does not exist.

        Raises:
            UsageError: the request fails.

        """
        with _translated_errors(str(self.place(name))):
            blob = self._bucket.get_blob(name, **self._call_options)
        return self._entry(blob) if blob else None

    def copy(self, name: str) -> Copy:
        """Download the object `name`.

        Raises:
            UsageError: it does not exist, is too large, or cannot be read.

        """
        found = self.find(name)
        if found is None:
            raise UsageError("no such object", file=str(self.place(name)))
        return self.copied(found)

    def copied(self, entry: Entry) -> Copy:
        """Download an object that was found.

        Raises:
            UsageError: it is too large, has changed since, or cannot be read.

        """
        copy, shown = Copy(entry.place, entry.generation), str(entry.place)
        if entry.size > MAX_OBJECT:
            raise too_large(shown)
        with copy.path.open("wb") as file, _translated_errors(shown):
            self._bucket.blob(entry.place.name).download_to_file(
                Bounded(file, entry.encoding, shown),
                raw_download=True,
                if_generation_match=entry.generation,
                **self._call_options,
            )
        return copy

    def put(
        self, name: str, file: IO[bytes], *, instead_of: int, metadata: Mapping[str, str] = {}
    ) -> None:
        """Upload `file` as the object `name`.

        It replaces the generation `instead_of`; 0 means that the object does not exist yet.

        Raises:
            ChangedError: the object now has another generation; it is not overwritten.
            UsageError: it cannot be stored.

        """
        blob = self._bucket.blob(name)
        blob.metadata = dict(metadata)
        size = file.seek(0, os.SEEK_END)
        try:
            with _translated_errors(str(self.place(name)), missing="no such bucket"):
                blob.upload_from_file(
                    file,
                    rewind=True,
                    size=size,
                    content_type="application/json",
                    if_generation_match=instead_of,
                    **self._call_options,
                )
        except ChangedError:
            # An upload that was retried because its response was lost conflicts with itself.
            stored = self.find(name)
            if stored is None or stored.md5 != _md5(file):
                raise

    def delete(self, entry: Entry) -> bool:
        """Delete an object that was found; return False if it was already gone.

        Raises:
            ChangedError: it has changed since.
            UsageError: it cannot be deleted.

        """
        found = self.find(entry.place.name)
        if found is None:
            return False
        options = {"if_generation_match": entry.generation, **self._call_options}
        with _translated_errors(str(entry.place)):
            self._bucket.delete_blob(entry.place.name, **options)
        return True

    def _entry(self, blob: Any) -> Entry:
        return Entry(
            place=self.place(blob.name),
            generation=int(blob.generation or 0),
            size=int(blob.size or 0),
            created=blob.time_created.isoformat() if blob.time_created else "",
            encoding=blob.content_encoding or "",
            metadata={str(key): str(value) for key, value in (blob.metadata or {}).items()},
            md5=blob.md5_hash or "",
        )


def _md5(file: IO[bytes]) -> str:
    """Return the hash of `file` as Cloud Storage computes it."""
    file.seek(0)
    digest = hashlib.md5(usedforsecurity=False)
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    return base64.b64encode(digest.digest()).decode()


_LOGIN_HINT = (
    "in a workflow, use google-github-actions/auth; on your machine, run `gcloud auth "
    "application-default login`; for a public bucket, set `gcs: {anonymous: true}`"
)


@cache
def _import_quietly() -> None:
    """Import Google's packages without their warnings about old versions of Python.

    They warn once a version is no longer supported, and for months before.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import_module("google.cloud.storage")


@contextmanager
def _translated_errors(shown: str, *, missing: str = "no such object") -> Iterator[None]:
    """Turn exceptions of google-cloud-storage into a `UsageError` about `shown`."""
    _import_quietly()
    import requests
    from google.api_core import exceptions as api
    from google.auth import exceptions as auth
    from google.cloud.storage import exceptions as storage  # type: ignore[import-untyped]  # it has no types

    def error(message: str, hint: str = "") -> UsageError:
        return UsageError(message, file=shown, hint=hint)

    try:
        yield
    except auth.InvalidOperation as exc:
        raise error("is not public, and no credentials are sent", _LOGIN_HINT) from exc
    except auth.DefaultCredentialsError as exc:
        raise error(f"no usable Google Cloud credentials: {_detail(exc)}", _LOGIN_HINT) from exc
    except (requests.RequestException, auth.TransportError, api.RetryError) as exc:
        raise error(f"Cloud Storage cannot be reached: {_root_cause(exc)}") from exc
    except (auth.GoogleAuthError, api.Unauthorized) as exc:
        message = f"the Google Cloud credentials were rejected: {_detail(exc)}"
        raise error(message, _LOGIN_HINT) from exc
    except api.Forbidden as exc:
        raise error(f"the credentials lack a permission: {_detail(exc)}") from exc
    except api.NotFound as exc:
        raise error(missing) from exc
    except api.PreconditionFailed as exc:
        message = "was changed by another writer in the meantime; not overwritten"
        raise ChangedError(message, file=shown, hint="try again") from exc
    except (api.GoogleAPIError, storage.InvalidResponse, storage.DataCorruption) as exc:
        raise error(f"Cloud Storage rejected the request: {_detail(exc)}") from exc


def _detail(exc: Exception) -> str:
    """Return the message of an error, in one line."""
    return one_line(str(exc), _MAX_DETAIL)


def _root_cause(exc: BaseException) -> str:
    """Return the root cause of a failed request, in one line."""
    inner: BaseException | None = getattr(exc, "cause", None) or exc
    while inner:
        exc, inner = inner, inner.__cause__ or inner.__context__
    return one_line(getattr(exc, "strerror", None) or str(exc), _MAX_DETAIL)
