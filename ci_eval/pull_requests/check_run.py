"""The check run of a suite on a commit, in addition to the job's own.

Limits, see https://docs.github.com/en/rest/checks/runs: 50 annotations per request, 65,535 bytes
of summary.
"""

import re
from itertools import islice

from ci_eval.forge.github import GitHub
from ci_eval.records.cases import Json, Stored
from ci_eval.records.findings import Report
from ci_eval.reporters.annotations import Note, notes
from ci_eval.reporters.markdown import Markdown
from ci_eval.run_files import report_phrases
from ci_eval.text.templates import terminal

NEEDS = "checks: write"
MAX_BATCH = 50
"""Maximum number of annotations in one request; GitHub rejects requests with more."""
MAX_ANNOTATIONS = 150
MAX_SUMMARY_BYTES = 65_535
_MAX_NAME, _MAX_TITLE, _MAX_MESSAGE = 100, 200, 2_000
_CONCLUSIONS = {"passed": "success", "failed": "failure", "incomplete": "failure"}
"""An incomplete run is a failure, because GitHub's `neutral` would allow the merge."""
_LEVELS = {"error": "failure", "warning": "warning"}


class _Made(Stored):
    id: int


async def make(github: GitHub, report: Report, commit: str, run_url: str) -> None:
    """Create the check run of a report on a commit; it links to the page of the report or the run.

    Raises:
        HostError: the check run was not created.

    """
    placed = (each for each in notes(report, report.worst) if each.file)
    found = [_annotation(each) for each in islice(placed, MAX_ANNOTATIONS)]
    first, *others = [found[at : at + MAX_BATCH] for at in range(0, max(len(found), 1), MAX_BATCH)]
    body = {
        "name": _name(report),
        "head_sha": commit,
        "status": "completed",
        "conclusion": "neutral"
        if report.verdict.undecided
        else _CONCLUSIONS[report.verdict.outcome],
        "external_id": report.meta.run_id,
        "output": {**_output(report), "annotations": first},
        **({"details_url": address} if (address := report.meta.page_url or run_url) else {}),
    }
    made = await github.post("check-runs", body, _Made, needs=NEEDS, repeatable=True)
    for batch in others:
        change: Json = {"output": {**_output(report), "annotations": batch}}
        # Each request adds to the existing annotations.
        await github.patch(f"check-runs/{made.id}", change, needs=NEEDS)


def _name(report: Report) -> str:
    job = f" · {report.meta.job}" if report.meta.job else ""
    return terminal(f"ci-eval: {report.meta.suite}{job}", _MAX_NAME)


def _output(report: Report) -> dict[str, Json]:
    verdict = report.verdict
    first = verdict.reasons[0].message if verdict.reasons else "no blocking findings"
    passed = "not decided" if verdict.undecided else "passed"
    decided = {"failed": "failed", "passed": passed}.get(verdict.outcome, "no verdict")
    return {
        "title": terminal(f"{decided}{report_phrases.part(report.meta)}: {first}", _MAX_TITLE),
        "summary": Markdown().body(report, lambda text: len(text.encode()) <= MAX_SUMMARY_BYTES),
    }


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
    """Return `text` on one line, without characters beyond U+FFFF, which annotations garble."""
    line = terminal(text, limit)
    return re.sub("[^\0-\uffff]", lambda found: f"U+{ord(found[0]):X}", line)
