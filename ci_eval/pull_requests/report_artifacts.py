"""Reports in the artifacts of workflow runs, which a fork's code may have written.

An archive is never unpacked: one member is read into memory, up to the maximum length of a report.
The report is validated like any untrusted file, and nothing in it is ever used as a path, a URL or
the number of a pull request.
"""

import io
import zipfile
from collections.abc import AsyncIterator, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from ci_eval.forge.github import BROKEN_ARCHIVE, GitHub
from ci_eval.pull_requests.comment_sections import MAX_SECTIONS
from ci_eval.records.cases import Stored
from ci_eval.records.errors import UsageError
from ci_eval.records.findings import Report
from ci_eval.reporters.markdown import Markdown
from ci_eval.run_files.file_names import REPORT_FILE
from ci_eval.run_files.report_file import Limits, read_report, report_in
from ci_eval.runtime.http import MAX_BODY

NEEDS = "actions: read"
LIMITS = Limits()
MAX_ARTIFACTS = MAX_SECTIONS
"""Maximum number of artifacts to read from one run, one per job."""
MAX_LISTED = 500
"""Maximum number of artifacts to list."""
MAX_MEMBERS = 1000
"""Maximum number of files in one archive."""
MAX_NAME = 100
"""Maximum length of a suite's name, as in a configuration."""
MAX_JOB = 200
MAX_STEP = 1_000
MAX_GROUPS = 2_000
"""Maximum number of groups (criterion, evalset and agent) in one report."""
MAX_WORST = 200
"""Maximum number of results with evidence in one report; twice as many as ours have."""
_ENTRY = b"PK\1\2"
"""The first bytes of an entry in the directory of an archive."""
_ENCRYPTED = 0x1
_CONTRADICTS = "is inconsistent and cannot be shown"


class Artifact(Stored):
    """An artifact in GitHub's listing."""

    id: int
    name: str
    size_in_bytes: int
    expired: bool = False
    created_at: str | None = None


async def listed(github: GitHub, run: int, pattern: str) -> list[Artifact]:
    """Return the artifacts of a workflow run whose names match, the newest of each name.

    Raises:
        HostError: they cannot be listed.

    """
    path = f"actions/runs/{run}/artifacts"
    listing = github.listed(path, Artifact, needs=NEEDS, member="artifacts", most=MAX_LISTED)
    found = [each async for each in listing if fnmatchcase(each.name, pattern)]
    # Each attempt uploads its own artifact; of equally new ones, the first counts.
    newest: dict[str, Artifact] = {}
    for each in sorted(found, key=lambda each: each.created_at or "", reverse=True):
        newest.setdefault(each.name, each)
    return [newest[name] for name in sorted(newest)]


async def reports(github: GitHub, artifacts: list[Artifact]) -> AsyncIterator[Report | UsageError]:
    """Yield the report in each artifact, or the error; holds only one in memory at a time.

    Raises:
        HostError: a request to GitHub failed.

    """
    for each in artifacts[:MAX_ARTIFACTS]:
        shown = f"artifact {each.name[:MAX_NAME]!r}"
        try:
            yield await _report(github, each, shown)
        except UsageError as exc:
            yield exc
    for each in artifacts[MAX_ARTIFACTS:]:
        message = f"was not read: the maximum is {MAX_ARTIFACTS} artifacts per run"
        yield UsageError(message, file=f"artifact {each.name[:MAX_NAME]!r}")


async def _report(github: GitHub, artifact: Artifact, shown: str) -> Report:
    if (size := artifact.size_in_bytes) > MAX_BODY:
        message = f"has {size:,} bytes; the maximum is {MAX_BODY:,}: upload only report.json"
        raise UsageError(message, file=shown)
    path = f"actions/artifacts/{artifact.id}/zip"
    archive = None if artifact.expired else await github.download(path, needs=NEEDS)
    if archive is None:
        raise UsageError("has expired and cannot be published", file=shown)
    return read(archive, shown)


def read(archive: bytes, shown: str) -> Report:
    """Return the only report in an archive.

    Raises:
        UsageError: there is not exactly one report, or it cannot be shown.

    """
    inside = f"{shown}/{REPORT_FILE}"
    try:
        text = _member(archive, shown).decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise UsageError(f"byte {exc.object[exc.start]:#04x} is not UTF-8", file=inside) from exc
    except (*BROKEN_ARCHIVE, OSError) as exc:
        raise UsageError("is not a readable ZIP archive", file=shown) from exc
    return checked(report_in(text, shown=inside, limits=LIMITS), inside)


def _member(archive: bytes, shown: str) -> bytes:
    if archive.count(_ENTRY) > MAX_MEMBERS:
        raise UsageError(f"contains more than {MAX_MEMBERS:,} files", file=shown)
    with zipfile.ZipFile(io.BytesIO(archive)) as zipped:
        # All other files are ignored.
        members = [each for each in zipped.infolist() if each.filename == REPORT_FILE]
        if len(members) != 1:
            message = f"expected one {REPORT_FILE} at its top level, found {len(members)}"
            raise UsageError(message, file=shown)
        (member,) = members
        methods = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED
        if member.flag_bits & _ENCRYPTED or member.compress_type not in methods:
            raise UsageError("uses a compression or encryption that GitHub never uses", file=shown)
        with zipped.open(member) as packed:
            found = packed.read(LIMITS.text + 1)
    # The size stated in the archive may be wrong.
    if max(member.file_size, len(found)) > LIMITS.text:
        raise UsageError(f"is larger than {LIMITS.text >> 20} MiB", file=f"{shown}/{REPORT_FILE}")
    return found


def reports_in(given: Sequence[str]) -> Iterator[Report | UsageError]:
    """Yield each report named on the command line, such as a downloaded artifact, or the error.

    The limits for untrusted reports apply, because artifacts may come from a fork.
    """
    for each in given:
        paths = _paths(Path(each))
        if len(paths) > MAX_ARTIFACTS:
            message = f"contains {len(paths):,} reports; the maximum is {MAX_ARTIFACTS}"
            yield UsageError(message, file=each)
            continue
        for path in paths:
            try:
                found = read_report(path, shown=str(path), limits=LIMITS)
                yield checked(found, str(path))
            except UsageError as exc:
                yield exc


def _paths(given: Path) -> list[Path]:
    """Return the reports in a folder or its subfolders, the layout of downloaded artifacts."""
    if not given.is_dir():
        return [given]
    own = given / REPORT_FILE
    return [own] if own.exists() else sorted(given.glob(f"*/{REPORT_FILE}")) or [own]


def checked(report: Report, shown: str) -> Report:
    """Return the report if it is small enough and can be shown.

    Raises:
        UsageError: the report is too large or inconsistent.

    """
    from jinja2 import TemplateError

    meta = report.meta
    if not 0 < len(meta.suite) <= MAX_NAME:
        message = f"expected 1 to {MAX_NAME} characters, found {len(meta.suite):,}"
        raise UsageError(message, file=shown, where="meta.suite")
    for where, found, most in (
        ("meta.job", len(meta.job), MAX_JOB),
        ("meta.step", len(meta.step), MAX_STEP),
        ("groups", len(report.groups), MAX_GROUPS),
        ("worst", len(report.worst), MAX_WORST),
    ):
        if found > most:
            raise UsageError(f"is longer than {most:,}", file=shown, where=where)
    if not _fits_together(report):
        raise UsageError(_CONTRADICTS, file=shown)
    # A forged report may be inconsistent in any way.
    errors = (ArithmeticError, AttributeError, LookupError, TemplateError, TypeError, ValueError)
    try:
        Markdown().body(report, lambda _: False)
    except errors as exc:
        raise UsageError(_CONTRADICTS, file=shown) from exc
    return report


def _fits_together(report: Report) -> bool:
    """Return True if the counts are consistent with each other and with the verdict."""
    totals, verdict = report.totals, report.verdict
    ended = totals.passed, totals.failed, totals.errors, totals.skipped
    if sum(ended) != totals.cases:
        return False
    judged = totals.passed + totals.failed + totals.accepted
    blocks = any(each.severity in ("blocks", "incomplete") for each in verdict.reasons)
    return verdict.outcome != "passed" or (judged > 0 and not blocks)
