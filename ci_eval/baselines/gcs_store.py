"""Baselines in a Google Cloud Storage bucket: one object per run."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple
from urllib.parse import quote, unquote

from pydantic import Field, field_validator

from ci_eval.baselines._baseline_document import baseline_errors, fault, stored_runs, with_run
from ci_eval.forge.lineage import Lineage, Origin
from ci_eval.plugins.baseline_store import BaselineStore
from ci_eval.plugins.points import baseline
from ci_eval.records.errors import UsageError
from ci_eval.records.findings import Noted
from ci_eval.records.results import Run, RunMeta
from ci_eval.run_files.run_summary import note
from ci_eval.run_files.score_table import Past
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.storage.gcs import Bucket, ChangedError, Entry, GcsOptions, Storage
from ci_eval.runtime.storage.gs_uri import Place

_NO_COMMIT = "none"
_HISTORY = 20
"""Maximum number of runs in the history."""
_LONGEST = 200
"""Maximum length of a part of an object's name, in bytes; a longer part ends in a digest."""


@baseline("gcs")
class GcsStore(BaselineStore):
    """A bucket of Google Cloud Storage, with one object per run.

    An object is named `PREFIX/suites/SUITE/runs/COMMIT/RUN_ID.json`; runs never share one, so any
    number of jobs can store theirs at the same time.  The branch and the time are in the object's
    metadata, and only the runs to compare with are downloaded.

    Needs the package google-cloud-storage (`pip install 'ci-eval[gcs]'`) and a role on the bucket,
    such as Storage Object User; to compare without storing, Storage Object Viewer is enough.
    """

    uri: str = Field(examples=["gs://bucket/baselines"])
    """The bucket, with a prefix unless it is only for baselines: `gs://bucket/prefix`."""
    gcs: GcsOptions = GcsOptions()
    """Connection settings; default: `gcs` of the configuration."""

    @field_validator("uri")
    @classmethod
    def _is_place(cls, uri: str) -> str:
        try:
            Place.parse(uri)
        except UsageError as exc:
            raise ValueError(exc.problems[0].message) from exc
        return uri

    def load(self, lineage: Lineage, suite: str, context: RunContext) -> Sequence[Past]:
        """Return the stored runs that match `lineage`; only these are downloaded."""
        with baseline_errors():
            bucket = self._bucket(context)
            stored = self._stored(bucket, suite)
            chosen = lineage.choose(stored, lambda each: each.origin, self.window)
            return [self._read(bucket, each.entry) for each in chosen]

    def place(self, context: RunContext) -> str:
        """Return the address of the folder."""
        del context
        return self.uri

    def history(self, suite: str, context: RunContext) -> Sequence[Noted]:
        """Return the summaries of the newest runs; limited, because each run must be downloaded."""
        with baseline_errors():
            bucket = self._bucket(context)
            newest = self._newest(bucket, suite)[:_HISTORY]
            return [note(self._read(bucket, each.entry)) for each in newest]

    def save(self, run: Run, context: RunContext) -> bool:
        """Store `run` as a new object."""
        bucket, name = self._bucket(context), self._object(run.meta)
        stored = bucket.find(name)
        if stored:
            with baseline_errors():
                self._read(bucket, stored)
            return False
        with TemporaryFile() as file:
            for piece in with_run(run, (), Path(), str(bucket.place(name)), window=1):
                file.write(piece.encode())
            try:
                bucket.put(name, file, instead_of=0, metadata=_noted(run.meta))
            except ChangedError:
                return False
        return True

    def prune(self, suite: str, keep: int, context: RunContext) -> int:
        """Remove the objects of all runs of `suite` but `keep`."""
        bucket = self._bucket(context)
        runs = self.as_kept(self._stored(bucket, suite), lambda each: each.origin, context)
        return sum(bucket.delete(each.entry) for each in runs[keep:])

    def _bucket(self, context: RunContext) -> Bucket:
        return Storage(self.gcs, context.env).bucket(Place.parse(self.uri).bucket)

    def _folder(self, suite: str) -> str:
        prefix = Place.parse(self.uri).name.strip("/")
        return f"{prefix}/suites/{_part(suite)}/runs/".removeprefix("/")

    def _object(self, meta: RunMeta) -> str:
        """Return the object name of a run."""
        commit = _part(meta.commit or _NO_COMMIT)
        return f"{self._folder(meta.suite)}{commit}/{_part(meta.run_id)}.json"

    def _read(self, bucket: Bucket, entry: Entry) -> Past:
        """Return the run in an object.

        Raises:
            BaselineError: the object holds a different run, or none.

        """
        copy, shown = bucket.copied(entry), str(entry.place)
        runs = stored_runs(copy.path, shown)
        if len(runs) != 1 or self._object(runs[0].meta) != entry.place.name:
            message = "does not hold the run that its name implies"
            raise fault(message, shown, hint="remove the object")
        return runs[0]

    def _newest(self, bucket: Bucket, suite: str) -> list["_StoredRun"]:
        """Return every run of `suite`, newest first."""
        stored = self._stored(bucket, suite)
        return sorted(stored, key=lambda each: each.origin.created, reverse=True)

    def _stored(self, bucket: Bucket, suite: str) -> list["_StoredRun"]:
        """Return every run of `suite`, ignoring objects with other names."""
        folder = self._folder(suite)
        found = []
        for entry in bucket.listed(folder):
            commit, slash, file = entry.place.name.removeprefix(folder).partition("/")
            if slash and "/" not in file and file.endswith(".json"):
                commit, noted = unquote(commit), entry.metadata
                known = None if commit == _NO_COMMIT else commit
                created = noted.get("created") or entry.created
                found.append(_StoredRun(entry, Origin(known, noted.get("branch"), created)))
        return found


class _StoredRun(NamedTuple):
    """A listed object with a run."""

    entry: Entry
    origin: Origin
    """From the name and the metadata of the object."""


def _noted(meta: RunMeta) -> dict[str, str]:
    """Return the object's metadata, so that the run need not be downloaded to select it."""
    branch = {"branch": meta.branch} if meta.branch else {}
    return {"created": meta.created, "version": meta.version, **branch}


def _part(text: str) -> str:
    """Return `text` quoted, as one part of an object's name."""
    quoted = quote(text, safe="").replace(".", "%2E")
    if len(quoted) <= _LONGEST:
        return quoted
    return f"{quoted[: _LONGEST - 20]}~{hashlib.sha256(text.encode()).hexdigest()[:16]}"
