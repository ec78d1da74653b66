"""Baselines in artifacts of workflow runs: no data branch, no write permission."""

import io
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pydantic import Field

from ci_eval.baselines._baseline_document import baseline_errors, fault, stored_runs, written
from ci_eval.baselines._github_access import Commit, with_github
from ci_eval.forge.github import BROKEN_ARCHIVE, GitHub
from ci_eval.forge.lineage import Lineage, Origin
from ci_eval.plugins.baseline_store import BaselineStore
from ci_eval.plugins.points import baseline
from ci_eval.records.cases import Stored
from ci_eval.records.results import Run
from ci_eval.run_files.file_names import RUN_FILE
from ci_eval.run_files.run_file import read_run
from ci_eval.run_files.score_table import Columns, Past
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.path_checks import PathText, contained
from ci_eval.text.templates import counted

DOCUMENT = "baseline.json"
"""The file that `save` writes."""
MAX_LISTED = 1000
"""Maximum number of artifacts to list, newest first."""
MAX_UNPACKED = 256 * 1024 * 1024
"""Maximum size of a document in bytes: 100,000 trials with four scores need half of it."""
_NEEDS = "actions: read"
_EXPIRED = "expired"
_CHUNK = 1 << 20


@baseline("artifact")
class ArtifactStore(BaselineStore):
    """Artifacts of the repository's workflow runs, which GitHub keeps for 90 days.

    The artifact of the nearest ancestor is used, else the newest one of the base branch.  Artifacts
    of forks are never used, whatever their branches are called; expired artifacts are skipped.  An
    artifact holds the `baseline.json` that `ci-eval baseline save` writes, or the `run.json` of a
    complete run.  The workflow need not have passed: a complete run with failures is a baseline,
    too.  The token needs `actions: read`.

    Saving only writes the file; upload it in a later step with `actions/upload-artifact`.
    """

    name: str = Field(default="ci-eval-baseline", min_length=1, max_length=255)
    """Name of the artifact; each suite of a repository needs its own."""
    workflow: str | None = Field(default=None, min_length=1)
    """Only use artifacts of this workflow, by file name, such as `evaluate.yml`; default: all."""
    path: PathText = ".ci-eval/artifact"
    """Directory for `baseline.json`, relative to the folder of the configuration."""

    def load(self, lineage: Lineage, suite: str, context: RunContext) -> Sequence[Past]:
        """Return the runs in the artifacts, nearest first; report the artifacts skipped."""
        return with_github(lambda github: self._load(github, lineage, suite, context), context)

    def place(self, context: RunContext) -> str:
        """Return the folder, and the name of the artifact to upload."""
        return f"{context.shown(self.path)}; upload it as the artifact {self.name!r}"

    def save(self, run: Run, context: RunContext) -> bool:
        """Write the document for a later step to upload."""
        path = contained(context.root, self.path) / DOCUMENT
        shown = context.shown(self.path)
        written(run, (), path, shown, window=1)
        context.say(
            f"written to {shown}; upload it with actions/upload-artifact: `name: {self.name}`, "
            f"`path: {shown}`, `include-hidden-files: true`"
        )
        return True

    async def _load(
        self, github: GitHub, lineage: Lineage, suite: str, context: RunContext
    ) -> list[Past]:
        left, skipped = await self._own(github), Counter[str]()
        found: list[Past] = []
        while not found and (chosen := lineage.choose(left, _origin, len(left))):
            for each in chosen[: self.search]:
                try:
                    found.append(await self._past(github, each, suite))
                except _SkippedError as exc:
                    skipped[str(exc)] += 1
                if len(found) == self.window:
                    break
            # If all artifacts of ancestors are gone, fall back to others of the base branch.
            left = [each for each in left if each not in chosen]
        if skipped:
            why = ", ".join(f"{count} {reason}" for reason, count in skipped.items())
            artifacts = counted(skipped.total(), "artifact")
            context.say(f"{artifacts} {self.name!r} skipped: {why}")
        return found

    async def _own(self, github: GitHub) -> list["_Artifact"]:
        """Return the artifacts of this name from runs on the repository's own commits."""
        listing = github.listed(
            "actions/artifacts",
            _Artifact,
            needs=_NEEDS,
            member="artifacts",
            most=MAX_LISTED,
            name=self.name,
        )
        return [each async for each in listing if each.name == self.name and each.source.is_own]

    async def _past(self, github: GitHub, artifact: "_Artifact", suite: str) -> Past:
        """Return the run in an artifact.

        Raises:
            _SkippedError: the artifact does not qualify, which is not an error for the user.

        """
        if artifact.expired:
            raise _SkippedError(_EXPIRED)
        if self.workflow and not await _is_of(self.workflow, artifact.source.id, github):
            raise _SkippedError("of another workflow")
        archive = await github.download(f"actions/artifacts/{artifact.id}/zip", needs=_NEEDS)
        if archive is None:
            raise _SkippedError(_EXPIRED)
        past = _read(archive, f"artifact {artifact.id}")
        if past.meta.suite != suite:
            raise _SkippedError("of another suite")
        if past.meta.commit not in (None, artifact.source.head_sha):
            raise _SkippedError("of a commit other than its workflow's")
        return past


class _SkippedError(Exception):
    """An artifact is not used, for the reason in the message."""


class _Source(Stored):
    """The workflow run that uploaded an artifact, as GitHub reports it."""

    id: int | None = None
    repository_id: int | None = None
    head_repository_id: int | None = None
    """The repository of the commit; for a pull request from a fork, the fork."""
    head_branch: str | None = None
    head_sha: Commit | None = None

    @property
    def is_own(self) -> bool:
        """True if it ran for a commit of the repository itself, not of a fork."""
        ids = self.repository_id, self.head_repository_id
        return self.head_sha is not None and ids[0] is not None and ids[0] == ids[1]


class _Artifact(Stored):
    id: int
    name: str
    expired: bool
    created_at: str
    workflow_run: _Source | None = None

    @property
    def source(self) -> _Source:
        return self.workflow_run or _Source()


class _WorkflowRun(Stored):
    path: str
    """The workflow file, sometimes followed by `@` and a branch."""


def _origin(artifact: _Artifact) -> Origin:
    source = artifact.source
    return Origin(source.head_sha, source.head_branch, artifact.created_at)


async def _is_of(workflow: str, run: int | None, github: GitHub) -> bool:
    found = await github.one(f"actions/runs/{run}", _WorkflowRun, needs=_NEEDS)
    return f"/{found.path.partition('@')[0]}".endswith(f"/{workflow}")


# --- The archive ------------------------------------------------------------------------------


def _read(archive: bytes, shown: str) -> Past:
    """Return the run in an archive."""
    hint = f"delete {shown}, or store the baseline under another `name`"
    with baseline_errors(hint), _unpacked(archive, shown) as path:
        name = f"{shown}/{path.name}"
        if path.name == RUN_FILE:
            return _complete(read_run(path, shown=name))
        runs = stored_runs(path, name)
        if not runs:
            raise fault("holds no run", name)
        return runs[0]


def _complete(run: Run) -> Past:
    columns = Columns.of(run.compared_trials())
    meta = run.meta
    ended = columns.ended(meta.criteria)
    is_part = meta.filtered or meta.shard or meta.missing_shards
    if is_part or ended.errors or not (ended.passed or ended.failed):
        raise _SkippedError("incomplete")
    return Past(run.meta, columns)


@contextmanager
def _unpacked(archive: bytes, shown: str) -> Iterator[Path]:
    """Extract the only document of an archive to a temporary file, and yield its path."""
    with tempfile.TemporaryDirectory(prefix="ci-eval-") as folder:
        try:
            path = _unpack(archive, Path(folder), shown)
        except BROKEN_ARCHIVE as exc:
            raise fault("is not a readable ZIP archive", shown) from exc
        yield path


def _unpack(archive: bytes, folder: Path, shown: str) -> Path:
    """Extract the only document of an archive to `folder`, up to the size limit."""
    with zipfile.ZipFile(io.BytesIO(archive)) as zipped:
        members = [each for each in zipped.infolist() if each.filename in (DOCUMENT, RUN_FILE)]
        if len(members) != 1:
            raise fault(f"expected one {DOCUMENT} or {RUN_FILE}, found {len(members)}", shown)
        (member,) = members
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise fault("is not a readable ZIP archive", shown)
        path, size = folder / member.filename, 0
        with zipped.open(member) as packed, path.open("wb") as file:
            while chunk := packed.read(_CHUNK):
                size += len(chunk)
                if size > MAX_UNPACKED:
                    message = f"unpacks to more than {MAX_UNPACKED >> 20} MiB"
                    raise fault(message, f"{shown}/{path.name}")
                file.write(chunk)
    return path
