"""The check run of a suite on a commit, in addition to the job's own.

GitHub shows the newest check run of a name, and branch protection may count only that one.  So one
that passes, while another step with the same name failed on the commit, fails and says so.

Limits, see https://docs.github.com/en/rest/checks/runs: 50 annotations per request, 65,535 bytes
of summary.
"""

import re
from hashlib import sha256
from itertools import islice

from pydantic import AliasPath, Field

from ci_eval.forge.github import GitHub
from ci_eval.records.cases import Json, Stored
from ci_eval.records.findings import Report
from ci_eval.reporters.annotations import Note, notes
from ci_eval.reporters.markdown import Markdown
from ci_eval.run_files import report_phrases
from ci_eval.text.templates import link, terminal

NEEDS = "checks: write"
MAX_BATCH = 50
"""Maximum number of annotations in one request; GitHub rejects requests with more."""
MAX_ANNOTATIONS = 150
MAX_SUMMARY_BYTES = 65_535
_MAX_NAME, _MAX_TITLE, _MAX_MESSAGE = 100, 200, 2_000
_CONCLUSIONS = {"passed": "success", "failed": "failure", "incomplete": "failure"}
"""An incomplete run is a failure, because GitHub's `neutral` would allow the merge."""
_LEVELS = {"error": "failure", "warning": "warning"}
_STEP = re.compile(r"\S+ (success|neutral|failure) ([0-9a-f]{16})")
"""Our `external_id`: the run, its own conclusion and a digest of the step."""


class _Made(Stored):
    id: int
    external_id: str | None = None
    html_url: str | None = None
    title: str | None = Field(default=None, validation_alias=AliasPath("output", "title"))


async def make(github: GitHub, report: Report, commit: str, run_url: str) -> None:
    """Create the check run of a report on a commit; it links to the page of the report or the run.

    Raises:
        HostError: the check run was not created.

    """
    placed = (each for each in notes(report, report.worst) if each.file)
    found = [_annotation(each) for each in islice(placed, MAX_ANNOTATIONS)]
    first, *others = [found[at : at + MAX_BATCH] for at in range(0, max(len(found), 1), MAX_BATCH)]
    before = await _failed_elsewhere(github, report, commit)
    body = {
        "name": _name(report),
        "head_sha": commit,
        "status": "completed",
        "conclusion": "failure" if before else _conclusion(report),
        "external_id": f"{report.meta.run_id} {_conclusion(report)} {_step(report)}",
        "output": {**_output(report, before), "annotations": first},
        **({"details_url": address} if (address := report.meta.page_url or run_url) else {}),
    }
    made = await github.post("check-runs", body, _Made, needs=NEEDS, repeatable=True)
    for batch in others:
        change: Json = {"output": {**_output(report, before), "annotations": batch}}
        # Each request adds to the existing annotations.
        await github.patch(f"check-runs/{made.id}", change, needs=NEEDS)
    # Another step may have ended at the same moment.
    if not before and (after := await _failed_elsewhere(github, report, commit)):
        change = {"conclusion": "failure", "output": _output(report, after)}
        await github.patch(f"check-runs/{made.id}", change, needs=NEEDS)


async def _failed_elsewhere(github: GitHub, report: Report, commit: str) -> _Made | None:
    """Return a failed check run of another step that the one of `report` would hide, if any."""
    if _conclusion(report) == "failure":
        return None
    listing = github.listed(
        f"commits/{commit}/check-runs",
        _Made,
        needs=NEEDS,
        member="check_runs",
        check_name=_name(report),
        filter="all",
    )
    newest: dict[str, tuple[str, _Made]] = {}
    for each in sorted([each async for each in listing], key=lambda each: each.id):
        if ours := _STEP.fullmatch(each.external_id or ""):
            newest[ours[2]] = ours[1], each
    newest.pop(_step(report), None)
    return next((each for own, each in newest.values() if own == "failure"), None)


def _conclusion(report: Report) -> str:
    return "neutral" if report.verdict.undecided else _CONCLUSIONS[report.verdict.outcome]


def _step(report: Report) -> str:
    """Return a digest of the step, which is the same when it runs again."""
    return sha256(report.meta.step.encode(errors="replace")).hexdigest()[:16]


def _name(report: Report) -> str:
    job = f" · {report.meta.job}" if report.meta.job else ""
    return terminal(f"ci-eval: {report.meta.suite}{job}", _MAX_NAME)


def _output(report: Report, failed: _Made | None) -> dict[str, Json]:
    """Return the title and the summary, which begin with the failure of another step, if any."""
    title, note = _title(report), ""
    if failed:
        title = f"another step with this name: {failed.title}"
        other = link(failed.html_url or "", "another step")
        note = (
            f"> [!CAUTION]\n> This step did not fail, but {other} did, and its check run has the "
            "same name. Give each its own `section`.\n\n"
        )
    room = MAX_SUMMARY_BYTES - len(note.encode())
    return {
        "title": terminal(title, _MAX_TITLE),
        "summary": note + Markdown().body(report, lambda text: len(text.encode()) <= room),
    }


def _title(report: Report) -> str:
    verdict = report.verdict
    first = verdict.reasons[0].message if verdict.reasons else "no blocking findings"
    passed = "not decided" if verdict.undecided else "passed"
    decided = {"failed": "failed", "passed": passed}.get(verdict.outcome, "no verdict")
    return f"{decided}{report_phrases.part(report.meta)}: {first}"


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
