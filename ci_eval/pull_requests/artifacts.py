"""The reports in the artifacts of one workflow run, which a fork's code may have written.

An archive is never unpacked: one member is read from it, in memory, as far as a report may be
long.  What is in the report is checked like any other file of strangers, and nothing of it is
ever a path, an address or a number of a pull request.
"""

import io
import zipfile
import zlib
from collections.abc import AsyncIterator
from contextlib import aclosing
from fnmatch import fnmatchcase
from typing import NamedTuple

from ci_eval.forge.github import GitHub
from ci_eval.pull_requests.sections import MAX_SECTIONS
from ci_eval.records.errors import CiEvalError, Problem, UsageError
from ci_eval.records.findings import Report
from ci_eval.records.model import Stored
from ci_eval.reporters.markdown import Markdown
from ci_eval.run_files.names import REPORT_FILE
from ci_eval.run_files.report_file import Limits, report_in
from ci_eval.runtime.http import MAX_BODY

NEEDS = "actions: read"
LIMITS = Limits()
MAX_ARTIFACTS = MAX_SECTIONS
"""How many artifacts of one run are read: one of each job."""
MAX_LISTED = 500
"""How many are looked at."""
MAX_MEMBERS = 1000
"""Files in one archive."""
MAX_NAME = 100
"""Characters of the name of a suite, as in a configuration."""
MAX_JOB = 200
MAX_GROUPS = 2_000
"""Criteria on evalsets with agents in one report."""
MAX_WORST = 200
"""Results with their evidence in one report; ours carry half of it."""
_ENTRY = b"PK\1\2"
"""What each file begins with in the directory of an archive."""
_ENCRYPTED = 0x1
_CONTRADICTS = "contradicts itself, and cannot be shown"


class Left(NamedTuple):
    """What a run left in one artifact."""

    name: str
    report: Report | None
    error: CiEvalError | None = None
    """Why there is no report."""


class Artifact(Stored):
    """An artifact, as GitHub tells of it."""

    id: int
    name: str
    size_in_bytes: int
    expired: bool = False
    created_at: str | None = None


async def listed(github: GitHub, run: int, pattern: str) -> list[Artifact]:
    """Return the artifacts of a workflow run whose names fit, the newest of each name.

    Raises:
        GitHubError: they cannot be listed.

    """
    listing = github.listed(
        f"actions/runs/{run}/artifacts", Artifact, needs=NEEDS, member="artifacts"
    )
    found: dict[str, Artifact] = {}
    count = 0
    async with aclosing(listing) as artifacts:
        async for each in artifacts:
            if fnmatchcase(each.name, pattern):
                # Each attempt leaves its own.
                known = found.get(each.name)
                if known is None or (each.created_at or "") > (known.created_at or ""):
                    found[each.name] = each
            count += 1
            if count == MAX_LISTED:
                break
    return [found[name] for name in sorted(found)]


async def reports(github: GitHub, artifacts: list[Artifact]) -> AsyncIterator[Left]:
    """Yield what is in each artifact, one after the other, so that only one is held at a time.

    Raises:
        GitHubError: GitHub cannot be asked.

    """
    for each in artifacts[:MAX_ARTIFACTS]:
        shown = f"artifact {each.name[:MAX_NAME]!r}"
        try:
            yield Left(each.name, await _report(github, each, shown))
        except UsageError as exc:
            yield Left(each.name, None, exc)
    for each in artifacts[MAX_ARTIFACTS:]:
        message = f"was not read: {MAX_ARTIFACTS} artifacts of a run are the most"
        yield Left(each.name, None, _error(message, f"artifact {each.name[:MAX_NAME]!r}"))


async def _report(github: GitHub, artifact: Artifact, shown: str) -> Report:
    if artifact.size_in_bytes > MAX_BODY:
        message = (
            f"has {artifact.size_in_bytes:,} bytes, and {MAX_BODY:,} is the most: upload "
            "report.json alone"
        )
        raise _error(message, shown)
    archive = None
    if not artifact.expired:
        archive = await github.download(f"actions/artifacts/{artifact.id}/zip", needs=NEEDS)
    if archive is None:
        raise _error("has expired, so it cannot be published any more", shown)
    return read(archive, shown)


def read(archive: bytes, shown: str) -> Report:
    """Return the one report in an archive.

    Raises:
        UsageError: there is none, or not one alone, or it is no report that can be shown.

    """
    inside = f"{shown}/{REPORT_FILE}"
    try:
        text = _member(archive, shown).decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise _error(f"byte {exc.object[exc.start]:#04x} is not UTF-8", inside) from exc
    # All that a broken archive was seen to raise.
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        OSError,
        OverflowError,
        RuntimeError,
        ValueError,
    ) as exc:
        raise _error("is no ZIP archive that can be read", shown) from exc
    return checked(report_in(text, shown=inside, limits=LIMITS), inside)


def _member(archive: bytes, shown: str) -> bytes:
    if archive.count(_ENTRY) > MAX_MEMBERS:
        raise _error(f"holds more than {MAX_MEMBERS:,} files", shown)
    with zipfile.ZipFile(io.BytesIO(archive)) as zipped:
        # Others are left alone, whatever they are called.
        members = [each for each in zipped.infolist() if each.filename == REPORT_FILE]
        if len(members) != 1:
            message = f"expected one {REPORT_FILE} at the top of it, found {len(members)}"
            raise _error(message, shown)
        (member,) = members
        methods = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED
        if member.flag_bits & _ENCRYPTED or member.compress_type not in methods:
            raise _error("is packed in a way that GitHub never does", shown)
        with zipped.open(member) as packed:
            found = packed.read(LIMITS.text + 1)
    # What the archive says of the size need not be so.
    if max(member.file_size, len(found)) > LIMITS.text:
        raise _error(f"is longer than {LIMITS.text >> 20} MiB", f"{shown}/{REPORT_FILE}")
    return found


def checked(report: Report, shown: str) -> Report:
    """Return a report that says no more than there is room for, and that can be shown.

    Raises:
        UsageError: it is too much, or contradicts itself.

    """
    from jinja2 import TemplateError

    meta = report.meta
    if not 0 < len(meta.suite) <= MAX_NAME:
        message = f"a suite has a name of at most {MAX_NAME} characters, found {len(meta.suite):,}"
        raise _error(message, shown, "meta.suite")
    for where, found, most in (
        ("meta.job", len(meta.job), MAX_JOB),
        ("groups", len(report.groups), MAX_GROUPS),
        ("worst", len(report.worst), MAX_WORST),
    ):
        if found > most:
            raise _error(f"is longer than {most:,}", shown, where)
    if not _fits_together(report):
        raise _error(_CONTRADICTS, shown)
    try:
        Markdown().body(report, lambda _: False)
    # What is said of a run that never was may fit together in no way.
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        TemplateError,
        TypeError,
        ValueError,
    ) as exc:
        raise _error(_CONTRADICTS, shown) from exc
    return report


def _fits_together(report: Report) -> bool:
    """Say whether a gate comes to such numbers, and with them to such a verdict."""
    totals, verdict = report.totals, report.verdict
    ended = totals.passed, totals.failed, totals.errors, totals.skipped
    if sum(ended) != totals.cases:
        return False
    judged = totals.passed + totals.failed + totals.accepted
    blocks = any(each.severity in ("blocks", "incomplete") for each in verdict.reasons)
    return verdict.outcome != "passed" or (judged > 0 and not blocks)


def _error(message: str, shown: str, where: str = "") -> UsageError:
    return UsageError(problems=[Problem(message, shown, where=where)])
