"""Objects of Google Cloud Storage: the one module that talks to it.

Needs the extra `gcs`.  Whatever goes wrong there is a `UsageError` that names the `gs://` address;
what comes from there is bounded in size, and never unpacked beyond that.
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

from ci_eval.records.errors import Problem, UsageError
from ci_eval.records.model import Record
from ci_eval.storage.downloads import MAX_OBJECT, Bounded, Copy, too_large
from ci_eval.storage.gs_uri import SCHEME, Place
from ci_eval.text.sanitize import one_line

MAX_LISTED = 100_000
"""How many objects are looked through at most."""
_CHUNK = 1 << 20
_SAID = 300
"""How much of what the service says is shown, in characters."""


class GcsOptions(Record):
    """How Google Cloud Storage is reached.

    Where nothing is said it is Google's, with Application Default Credentials; or the emulator
    that the environment variable `STORAGE_EMULATOR_HOST` names, without any.
    """

    project: str | None = Field(default=None, min_length=1)
    """The project that calls are made for; left out, `GOOGLE_CLOUD_PROJECT`, or that of the
    credentials."""
    endpoint: str | None = None
    """Another address of the service, such as that of a private endpoint. One that is not below
    `googleapis.com` needs `anonymous: true`, so that no credentials go there."""
    anonymous: bool = False
    """Whether no credentials are sent; public buckets can be read so."""
    timeout_s: float = Field(default=60.0, gt=0, le=3600)
    """Seconds until a request, tried again where that may help, is given up."""

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
    """An object is not, or no longer, as it was when it was read."""


class Entry(NamedTuple):
    """What is known of an object without reading it."""

    place: Place
    generation: int
    """Changes with each content."""
    size: int
    """Bytes, as it is stored."""
    created: str
    """When it was stored, in UTC, ISO 8601."""
    encoding: str
    """`gzip`, or empty."""
    metadata: Mapping[str, str]
    """What was noted beside it."""
    md5: str
    """Of the content, in base64; empty where it is not known."""


@dataclass(frozen=True)
class Storage:
    """Google Cloud Storage, as the configuration and the environment say to reach it."""

    options: GcsOptions
    env: Mapping[str, str]

    def bucket(self, name: str) -> "Bucket":
        """Return the bucket `name`, which nobody asked for yet.

        Raises:
            UsageError: the extra is not installed, or there are no credentials.

        """
        client = self._client(f"{SCHEME}{name}")
        return Bucket(client.bucket(name), self.options.timeout_s)

    def copy(self, place: Place) -> Copy:
        """Return a copy of the object at `place`.

        Raises:
            UsageError: it is not there, too large, or cannot be read.

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
            with _explained(shown):
                return _client(endpoint, project, anonymous=bool(anonymous))
        except ImportError as exc:
            message = "needs the package google-cloud-storage: pip install 'ci-eval[gcs]'"
            raise UsageError(problems=[Problem(message, shown)]) from exc


@cache
def _client(endpoint: str, project: str | None, *, anonymous: bool) -> Any:
    """Return a client; looking for credentials may take requests of its own."""
    with warnings.catch_warnings():
        # Of the version of Python, and of credentials of a person; neither is for our users.
        warnings.simplefilter("ignore")
        from google.auth.credentials import AnonymousCredentials
        from google.cloud import storage  # type: ignore[import-untyped]  # it has none

        more: dict[str, Any] = {"client_options": {"api_endpoint": endpoint}} if endpoint else {}
        if anonymous:
            more["credentials"] = AnonymousCredentials()  # type: ignore[no-untyped-call]  # as above
        client = storage.Client(project=project or (None if anonymous else _project()), **more)
        # For the spans of a tracer, which we have none of, its threads would go on asking in the
        # background after we have given up.  Only the environment has a switch for it.
        client._bucket_metadata_cache = None  # noqa: SLF001  # as said
        return client


def _project() -> str:
    """Return the project of the credentials; of one that is known in no way, what stands for it.

    Raises:
        google.auth.exceptions.DefaultCredentialsError: there are no credentials.

    """
    import google.auth

    return google.auth.default()[1] or "<none>"


class Bucket:
    """A bucket whose objects are listed, read and written."""

    def __init__(self, bucket: Any, timeout_s: float) -> None:
        from google.cloud.storage.retry import (  # type: ignore[import-untyped]  # it has none
            DEFAULT_RETRY,
        )

        self._bucket = bucket
        self._how: dict[str, Any] = {
            "timeout": timeout_s,
            "retry": DEFAULT_RETRY.with_timeout(timeout_s),
        }

    def place(self, name: str) -> Place:
        """Return where the object `name` is."""
        return Place(self._bucket.name, name)

    def listed(self, prefix: str, *, most: int = MAX_LISTED) -> list[Entry]:
        """Return what begins with `prefix`, in the order of the names.

        Raises:
            UsageError: there is no such bucket, it may not be listed, or there is too much.

        """
        shown = str(self.place(prefix))
        with _explained(shown, missing="no such bucket"):
            blobs = self._bucket.list_blobs(
                prefix=prefix or None, max_results=most + 1, **self._how
            )
            found = [self._entry(blob) for blob in blobs]
        if len(found) > most:
            message = f"more than {most} objects are there; name fewer of them"
            raise UsageError(problems=[Problem(message, shown)])
        return found

    def require(self, prefix: str) -> None:
        """Look whether the bucket can be used for what begins with `prefix`.

        Raises:
            UsageError: there is no such bucket, or it may not be listed.

        """
        with _explained(str(self.place(prefix)), missing="no such bucket"):
            list(self._bucket.list_blobs(prefix=prefix, max_results=1, **self._how))

    def find(self, name: str) -> Entry | None:
        """Return what is known of the object `name`; `None` where there is none.

        Raises:
            UsageError: nobody can say.

        """
        with _explained(str(self.place(name))):
            blob = self._bucket.get_blob(name, **self._how)
        return self._entry(blob) if blob else None

    def copy(self, name: str) -> Copy:
        """Return a copy of the object `name`.

        Raises:
            UsageError: it is not there, too large, or cannot be read.

        """
        found = self.find(name)
        if found is None:
            raise UsageError(problems=[Problem("no such object", str(self.place(name)))])
        return self.copied(found)

    def copied(self, entry: Entry) -> Copy:
        """Return a copy of an object that was found.

        Raises:
            UsageError: it is too large, was changed since, or cannot be read.

        """
        copy, shown = Copy(entry.place, entry.generation), str(entry.place)
        if entry.size > MAX_OBJECT:
            raise too_large(shown)
        with copy.path.open("wb") as file, _explained(shown):
            self._bucket.blob(entry.place.name).download_to_file(
                Bounded(file, entry.encoding, shown),
                raw_download=True,
                if_generation_match=entry.generation,
                **self._how,
            )
        return copy

    def put(
        self, name: str, file: IO[bytes], *, instead_of: int, metadata: Mapping[str, str] = {}
    ) -> None:
        """Store what is in `file` as the object `name`.

        It takes the place of the generation `instead_of`; 0 means that there is none yet.

        Raises:
            ChangedError: the object is another one meanwhile; it is left as it is.
            UsageError: it cannot be stored.

        """
        blob = self._bucket.blob(name)
        blob.metadata = dict(metadata)
        size = file.seek(0, os.SEEK_END)
        try:
            with _explained(str(self.place(name)), missing="no such bucket"):
                blob.upload_from_file(
                    file,
                    rewind=True,
                    size=size,
                    content_type="application/json",
                    if_generation_match=instead_of,
                    **self._how,
                )
        except ChangedError:
            # What was sent twice, because its answer was lost, was changed by nobody else.
            there = self.find(name)
            if there is None or there.md5 != _md5(file):
                raise

    def delete(self, entry: Entry) -> bool:
        """Remove an object that was found; say `False` where it was gone already.

        Raises:
            ChangedError: it was changed since.
            UsageError: it cannot be removed.

        """
        found = self.find(entry.place.name)
        if found is None:
            return False
        with _explained(str(entry.place)):
            self._bucket.delete_blob(
                entry.place.name, if_generation_match=entry.generation, **self._how
            )
        return True

    def _entry(self, blob: Any) -> Entry:
        return Entry(
            place=self.place(blob.name),
            generation=int(blob.generation or 0),
            size=int(blob.size or 0),
            created=blob.time_created.isoformat() if blob.time_created else "",
            encoding=blob.content_encoding or "",
            metadata={str(key): str(said) for key, said in (blob.metadata or {}).items()},
            md5=blob.md5_hash or "",
        )


def _md5(file: IO[bytes]) -> str:
    """Return what Cloud Storage would note of the content of `file`."""
    file.seek(0)
    digest = hashlib.md5(usedforsecurity=False)
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    return base64.b64encode(digest.digest()).decode()


_LOG_IN = (
    "in a workflow google-github-actions/auth provides them, here `gcloud auth "
    "application-default login`; a public bucket needs `gcs: {anonymous: true}`"
)


@cache
def _import_quietly() -> None:
    """Import Google's packages without what they say of old versions of Python.

    They do so from the day on which one is no longer supported, and months before.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import_module("google.cloud.storage")


@contextmanager
def _explained(shown: str, *, missing: str = "no such object") -> Iterator[None]:
    """Turn what google-cloud-storage raises into an error of ours about `shown`."""
    _import_quietly()
    import requests
    from google.api_core import exceptions as api
    from google.auth import exceptions as auth
    from google.cloud.storage import (  # type: ignore[import-untyped]  # it has none
        exceptions as storage,
    )

    def error(message: str, hint: str = "") -> UsageError:
        return UsageError(problems=[Problem(message, shown)], hint=hint)

    try:
        yield
    except auth.InvalidOperation as exc:
        raise error("is not open to everybody, and no credentials are sent", _LOG_IN) from exc
    except auth.DefaultCredentialsError as exc:
        raise error(f"no credentials of Google Cloud can be used: {_said(exc)}", _LOG_IN) from exc
    except (requests.RequestException, auth.TransportError, api.RetryError) as exc:
        raise error(f"Cloud Storage cannot be reached: {_cause(exc)}") from exc
    except (auth.GoogleAuthError, api.Unauthorized) as exc:
        raise error(f"the credentials of Google Cloud are refused: {_said(exc)}", _LOG_IN) from exc
    except api.Forbidden as exc:
        raise error(f"these credentials are not enough: {_said(exc)}") from exc
    except api.NotFound as exc:
        raise error(missing) from exc
    except api.PreconditionFailed as exc:
        message = "was changed by somebody else meanwhile, and was left as it is"
        raise ChangedError(problems=[Problem(message, shown)], hint="try again") from exc
    except (api.GoogleAPIError, storage.InvalidResponse, storage.DataCorruption) as exc:
        raise error(f"Cloud Storage refuses: {_said(exc)}") from exc


def _said(exc: Exception) -> str:
    """Return what an error says, in one line."""
    return one_line(str(exc), _SAID)


def _cause(exc: BaseException) -> str:
    """Return what is at the bottom of a failed request, in one line."""
    inner: BaseException | None = getattr(exc, "cause", None) or exc
    while inner:
        exc, inner = inner, inner.__cause__ or inner.__context__
    return one_line(getattr(exc, "strerror", None) or str(exc), _SAID)
