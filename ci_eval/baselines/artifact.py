"""A baseline in the artifacts of workflow runs: no branch, no rights to write."""

import io
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import aclosing, contextmanager
from pathlib import Path

from pydantic import Field

from ci_eval.baselines._document import stored_runs, with_run
from ci_eval.baselines._on_github import Commit, loaded
from ci_eval.forge.github import GitHub
from ci_eval.forge.lineage import Lineage, Origin
from ci_eval.plugins.baseline_store import BaselineStore
from ci_eval.plugins.points import baseline
from ci_eval.records.errors import BaselineError, Problem, UsageError
from ci_eval.records.model import Status, Stored
from ci_eval.records.results import Run
from ci_eval.run_files.names import RUN_FILE
from ci_eval.run_files.run_file import read_run, replacing
from ci_eval.run_files.score_table import Columns, Past
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.paths import PathText, contained
from ci_eval.text.templates import counted

DOCUMENT = "baseline.json"
"""What `save` writes."""
MAX_LISTED = 1000
"""How many artifacts are looked at, the newest first."""
MAX_UNPACKED = 256 * 1024 * 1024
"""The longest document, in bytes: a hundred thousand trials with four scores take half of it."""
_NEEDS = "actions: read"
_EXPIRED = "expired"
_CHUNK = 1 << 20


@baseline("artifact")
class ArtifactStore(BaselineStore):
    """The artifacts that workflow runs of the repository left, which GitHub keeps for 90 days.

    The artifact of the nearest ancestor is taken, else the newest of the base branch; those of
    forks never, whatever their branches are called, and those that have expired are passed over.
    An artifact holds `baseline.json`, as `ci-eval baseline save` writes it, or the `run.json` of
    a run in which everything was measured.  Whether the workflow passed makes no difference: a
    complete run with failures is a baseline too.  The token needs `actions: read`.

    Saving only writes the file; a later step with `actions/upload-artifact` uploads it.
    """

    name: str = Field(default="ci-eval-baseline", min_length=1, max_length=255)
    """What the artifact is called; each suite of a repository needs a name of its own."""
    workflow: str | None = Field(default=None, min_length=1)
    """Only artifacts of this workflow, by its file, such as `evaluate.yml`; left out, of all."""
    path: PathText = ".ci-eval/artifact"
    """The folder that `baseline.json` is written to, from the folder of the configuration."""

    def load(self, lineage: Lineage, suite: str, context: RunContext) -> Sequence[Past]:
        """Return the runs in the artifacts, nearest first; say what was passed over."""
        return loaded(lambda github: self._load(github, lineage, suite, context), context)

    def save(self, run: Run, context: RunContext) -> bool:
        """Write the document for the step that uploads it."""
        path = contained(context.root, self.path) / DOCUMENT
        shown = context.shown(self.path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as file:
                file.writelines(with_run(run, (), path, shown, window=1))
        except OSError as exc:
            problem = Problem(f"cannot be written: {exc.strerror or exc}", shown)
            raise UsageError(problems=[problem]) from exc
        context.say(
            f"written to {shown}, for a step with actions/upload-artifact: `name: {self.name}`, "
            f"`path: {shown}`, `include-hidden-files: true`"
        )
        return True

    async def _load(
        self, github: GitHub, lineage: Lineage, suite: str, context: RunContext
    ) -> list[Past]:
        left, passed_over = await self._own(github), Counter[str]()
        found: list[Past] = []
        while not found and (chosen := lineage.choose(left, _origin, len(left))):
            for each in chosen[: self.search]:
                try:
                    found.append(await self._past(github, each, suite))
                except _PassedOverError as exc:
                    passed_over[str(exc)] += 1
                if len(found) == self.window:
                    break
            # Where all ancestors' have gone, others of the base branch are better than none.
            left = [each for each in left if each not in chosen]
        if passed_over:
            why = ", ".join(f"{count} {reason}" for reason, count in passed_over.items())
            artifacts = counted(passed_over.total(), "artifact")
            context.say(f"{artifacts} {self.name!r} passed over: {why}")
        return found

    async def _own(self, github: GitHub) -> list["_Artifact"]:
        """Return the artifacts of this name that runs on the repository's own commits left."""
        listing = github.listed(
            "actions/artifacts", _Artifact, needs=_NEEDS, member="artifacts", name=self.name
        )
        found, count = [], 0
        async with aclosing(listing) as artifacts:
            async for each in artifacts:
                if each.name == self.name and each.source.is_own:
                    found.append(each)
                count += 1
                if count == MAX_LISTED:
                    break
        return found

    async def _past(self, github: GitHub, artifact: "_Artifact", suite: str) -> Past:
        """Return the run in an artifact.

        Raises:
            _PassedOverError: it cannot be used, which is nobody's fault.

        """
        if artifact.expired:
            raise _PassedOverError(_EXPIRED)
        if self.workflow and not await _is_of(self.workflow, artifact.source.id, github):
            raise _PassedOverError("of another workflow")
        archive = await github.download(f"actions/artifacts/{artifact.id}/zip", needs=_NEEDS)
        if archive is None:
            raise _PassedOverError(_EXPIRED)
        past = _read(archive, f"artifact {artifact.id}")
        if past.meta.suite != suite:
            raise _PassedOverError("of another suite")
        if past.meta.commit not in (None, artifact.source.head_sha):
            raise _PassedOverError("of a commit that its workflow was not run for")
        return past


class _PassedOverError(Exception):
    """An artifact is not used, as the message says."""


class _Source(Stored):
    """The workflow run that made an artifact, as GitHub knows it."""

    id: int | None = None
    repository_id: int | None = None
    head_repository_id: int | None = None
    """The repository that the commit comes from: a fork, for its pull requests."""
    head_branch: str | None = None
    head_sha: Commit | None = None

    @property
    def is_own(self) -> bool:
        """Whether it was run for a commit of the repository itself."""
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
    """The file of the workflow, and sometimes `@` and a branch."""


def _origin(artifact: _Artifact) -> Origin:
    source = artifact.source
    return Origin(source.head_sha, source.head_branch, artifact.created_at)


async def _is_of(workflow: str, run: int | None, github: GitHub) -> bool:
    found = await github.one(f"actions/runs/{run}", _WorkflowRun, needs=_NEEDS)
    return f"/{found.path.partition('@')[0]}".endswith(f"/{workflow}")


# --- The archive ------------------------------------------------------------------------------


def _read(archive: bytes, shown: str) -> Past:
    """Return the run in an archive."""
    try:
        with _unpacked(archive, shown) as path:
            name = f"{shown}/{path.name}"
            if path.name == RUN_FILE:
                return _complete(read_run(path, shown=name, error=BaselineError))
            runs = stored_runs(path, name)
            if not runs:
                raise _error("holds no run", name)
            return runs[0]
    except BaselineError as exc:
        hint = f"delete {shown}, or store the baseline under another `name`"
        raise BaselineError(problems=exc.problems, hint=hint) from exc


def _complete(run: Run) -> Past:
    columns = Columns.of(run.results())
    statuses = [status for _, status in columns.cases(run.meta.criteria)]
    measured = Status.PASSED in statuses or Status.FAILED in statuses
    if run.meta.filtered or Status.ERROR in statuses or not measured:
        raise _PassedOverError("incomplete")
    return Past(run.meta, columns)


@contextmanager
def _unpacked(archive: bytes, shown: str) -> Iterator[Path]:
    """Give the one document in an archive a file of our own naming for as long as it is read."""
    with tempfile.TemporaryDirectory(prefix="ci-eval-") as folder:
        with _opened(archive, shown) as zipped:
            members = [each for each in zipped.infolist() if each.filename in (DOCUMENT, RUN_FILE)]
            if len(members) != 1:
                message = f"expected one {DOCUMENT} or {RUN_FILE} in it, found {len(members)}"
                raise _error(message, shown)
            path = Path(folder) / (DOCUMENT if members[0].filename == DOCUMENT else RUN_FILE)
            _unpack(zipped, members[0], path, shown)
        yield path


@contextmanager
def _opened(archive: bytes, shown: str) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as zipped:
            yield zipped
    # All that a broken archive was seen to raise.
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        OverflowError,
        RuntimeError,
        ValueError,
    ) as exc:
        raise _error("is no ZIP archive that can be read", shown) from exc


def _unpack(zipped: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path, shown: str) -> None:
    """Write a member to `path`, as much of it as there may be."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise _error("is no ZIP archive that can be read", shown)
    size = 0
    with zipped.open(member) as packed, path.open("wb") as file:
        while chunk := packed.read(_CHUNK):
            size += len(chunk)
            if size > MAX_UNPACKED:
                message = f"unfolds to more than {MAX_UNPACKED >> 20} MiB"
                raise _error(message, f"{shown}/{path.name}")
            file.write(chunk)


def _error(message: str, shown: str) -> BaselineError:
    return BaselineError(problems=[Problem(message, shown)])
