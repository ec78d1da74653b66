"""The check run of a suite on a commit, beside the job's own.

https://docs.github.com/en/rest/checks/runs has the limits: 50 annotations a request, 65,535
bytes of summary.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from ci_eval.forge.github import GitHub
from ci_eval.records.findings import Report
from ci_eval.records.model import Json, Stored
from ci_eval.reporters.annotations import Note, notes
from ci_eval.reporters.markdown import Markdown
from ci_eval.text.templates import terminal

NEEDS = "checks: write"
MAX_BATCH = 50
"""Annotations of one request; of more GitHub takes none."""
MAX_ANNOTATIONS = 150
MAX_SUMMARY_BYTES = 65_535
_MAX_NAME, _MAX_TITLE, _MAX_MESSAGE = 100, 200, 2_000
_CONCLUSIONS = {"passed": "success", "failed": "failure", "incomplete": "failure"}
"""What was not measured is no success; what GitHub calls neutral would let a merge through."""
_LEVELS = {"error": "failure", "warning": "warning"}


class _Made(Stored):
    id: int


async def make(github: GitHub, report: Report, commit: str, details_url: str) -> None:
    """Make the check run of a report on a commit.

    Raises:
        GitHubError: it was not made.

    """
    found = [_annotation(each) for each in islice(_placed(report), MAX_ANNOTATIONS)]
    first, *others = _batches(found)
    body: Json = {
        "name": _name(report),
        "head_sha": commit,
        "status": "completed",
        "conclusion": _CONCLUSIONS[report.verdict.outcome],
        "external_id": report.meta.run_id,
        "output": {**_output(report), "annotations": first},
    }
    if details_url and isinstance(body, dict):
        body["details_url"] = details_url
    made = await github.post("check-runs", body, _Made, needs=NEEDS, repeatable=True)
    for batch in others:
        change: Json = {"output": {**_output(report), "annotations": batch}}
        # Each request adds its annotations to those that are there.
        await github.patch(f"check-runs/{made.id}", change, needs=NEEDS, repeatable=False)


def _name(report: Report) -> str:
    job = f" · {report.meta.job}" if report.meta.job else ""
    return terminal(f"ci-eval: {report.meta.suite}{job}", _MAX_NAME)


def _output(report: Report) -> dict[str, Json]:
    verdict = report.verdict
    first = verdict.reasons[0].message if verdict.reasons else "nothing blocks"
    decided = "no verdict" if verdict.outcome == "incomplete" else verdict.outcome
    return {
        "title": terminal(f"{decided}: {first}", _MAX_TITLE),
        "summary": Markdown().body(report, _fits),
    }


def _fits(summary: str) -> bool:
    return len(summary.encode()) <= MAX_SUMMARY_BYTES


def _placed(report: Report) -> Iterator[Note]:
    """Yield the annotations that have a place; the others are in the summary."""
    return (each for each in notes(report, report.worst) if each.file)


def _annotation(note: Note) -> Json:
    line = note.line or 1
    return {
        "path": note.file,
        "start_line": line,
        "end_line": line,
        "annotation_level": _LEVELS[note.level],
        "title": _plain(note.title, _MAX_TITLE),
        "message": _plain(note.message, _MAX_MESSAGE),
    }


def _plain(text: str, limit: int) -> str:
    """Return one line without what is outside of the basic plane, which annotations garble."""
    line = terminal(text, limit)
    return re.sub("[^\0-\uffff]", lambda found: f"U+{ord(found[0]):X}", line)


def _batches(found: Sequence[Json]) -> list[list[Json]]:
    return [list(found[at : at + MAX_BATCH]) for at in range(0, len(found), MAX_BATCH)] or [[]]
