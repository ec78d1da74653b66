"""Baselines in check runs, one on each commit: no branch, no retention limit, no races."""

import base64
import gzip
import hashlib
import re
import zlib
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path

from pydantic import AliasPath, Field

from ci_eval.baselines._baseline_document import (
    as_file,
    baseline_errors,
    fault,
    stored_runs,
    with_run,
)
from ci_eval.baselines._github_access import Commit, with_github
from ci_eval.forge.github import GitHub
from ci_eval.forge.lineage import Lineage
from ci_eval.forge.rest import HostError
from ci_eval.plugins.baseline_store import BaselineStore
from ci_eval.plugins.points import baseline
from ci_eval.records.cases import Json, Stored
from ci_eval.records.errors import UsageError
from ci_eval.records.results import Run
from ci_eval.run_files.run_summary import note_run
from ci_eval.run_files.score_table import Past
from ci_eval.runtime.context import RunContext
from ci_eval.text.templates import code, counted, score

MAX_TEXT = 65_535
"""Maximum length of a check run's text, as GitHub documents it; digests are ASCII."""
VERSION = 1
"""The version of the digest format."""
MAX_ROWS = 30
"""Maximum number of rows of the table for humans."""
_READ, _WRITE = "checks: read", "checks: write"
_UNKNOWN_COMMIT = 422
"""GitHub's status for a commit that it lacks, because the commit was not pushed."""
_BEGIN = "<!-- ci-eval baseline "
_DIGEST = re.compile(
    rf"{_BEGIN}v([0-9]{{1,4}}) ([0-9]{{1,8}}) ([0-9a-f]{{64}}) ([A-Za-z0-9+/]+={{0,2}}) -->"
)


@baseline("check_run")
class CheckRunStore(BaselineStore):
    """A check run on the evaluated commit, with a digest of the run.

    Reads the check runs of the ancestors, nearest first, else those of the newest commits of the
    base branch.  A check run holds at most a few thousand scores, because GitHub limits its text to
    65,535 bytes.  The digest is compressed, states its length and hash, and is a Markdown comment.
    Loading needs `checks: read`, and `contents: read` to read the base branch; saving needs
    `checks: write`.
    """

    name: str = Field(default="ci-eval baseline", min_length=1, max_length=255)
    """Name of the check run."""
    app: str = Field(default="github-actions", min_length=1)
    """Only use check runs of the app with this slug: the app whose token saves them."""

    def load(self, lineage: Lineage, suite: str, context: RunContext) -> Sequence[Past]:
        """Return the runs in the check runs of the ancestors, nearest first."""
        return with_github(lambda github: self._load(github, lineage, suite), context)

    def save(self, run: Run, context: RunContext) -> bool:
        """Create a check run on the commit of `run`."""
        if not run.meta.commit:
            raise UsageError("not stored: the run has no commit, and a check run needs one")
        body = self._check_run(run)
        return with_github(lambda github: self._save(github, run, body), context, writing=True)

    async def _load(self, github: GitHub, lineage: Lineage, suite: str) -> list[Past]:
        found: list[Past] = []
        for commit in lineage.ancestors[: self.search]:
            found += await self._of(github, commit, suite)
            if len(found) >= self.window:
                break
        if found or not lineage.base:
            return found[: self.window]
        looked_at = {*lineage.ancestors, lineage.own}
        newest = github.listed(
            "commits", _Commit, needs="contents: read", most=self.search, sha=lineage.base
        )
        async with aclosing(newest) as listed:
            async for each in listed:
                if each.sha not in looked_at:
                    found += await self._of(github, each.sha, suite)
                if len(found) >= self.window:
                    break
        return found[: self.window]

    async def _of(
        self, github: GitHub, commit: str, suite: str, *, needs: str = _READ
    ) -> list[Past]:
        """Return the runs of `suite` on a commit, newest first."""
        # A retry may have created a check run twice; its run counts once.
        found: dict[str, Past] = {}
        # Small pages, because each check run has two long texts.
        listing = github.listed(
            f"commits/{commit}/check-runs",
            _CheckRun,
            needs=needs,
            member="check_runs",
            check_name=self.name,
            filter="all",
            per_page=30,
        )
        try:
            async with aclosing(listing) as check_runs:
                async for each in check_runs:
                    past = _past(each, commit) if self._is_ours(each) else None
                    if past and past.meta.suite == suite:
                        found[past.meta.run_id] = past
        except HostError as exc:
            if exc.status != _UNKNOWN_COMMIT:
                raise
        return sorted(found.values(), key=lambda past: past.meta.created, reverse=True)

    def _is_ours(self, check_run: "_CheckRun") -> bool:
        """Return True if a check run holds a digest; jobs create check runs too."""
        known = (check_run.name, check_run.app) == (self.name, self.app)
        return known and (check_run.text or "").startswith(_BEGIN)

    async def _save(self, github: GitHub, run: Run, body: Json) -> bool:
        stored = await self._of(github, run.meta.commit or "", run.meta.suite, needs=_WRITE)
        if any(past.meta.run_id == run.meta.run_id for past in stored):
            return False
        await github.post("check-runs", body, Stored, needs=_WRITE, repeatable=True)
        return True

    def _check_run(self, run: Run) -> Json:
        """Return the request body that creates the check run.

        Raises:
            UsageError: the digest of the run is too long.

        """
        text = _digest("".join(with_run(run, (), Path(), "", window=1)).encode())
        if len(text) > MAX_TEXT:
            raise UsageError(
                f"not stored: the run has {len(text):,} bytes when compressed, and a check run "
                f"holds at most {MAX_TEXT:,}",
                hint="use the store `branch`, `git`, `artifact`, `gcs` or `file`",
            )
        return {
            "name": self.name,
            "head_sha": run.meta.commit,
            "status": "completed",
            "conclusion": "neutral",
            "external_id": run.meta.run_id,
            "output": _output(run, text),
        }


class _CheckRun(Stored):
    id: int
    name: str
    app: str | None = Field(default=None, validation_alias=AliasPath("app", "slug"))
    text: str | None = Field(default=None, validation_alias=AliasPath("output", "text"))


class _Commit(Stored):
    sha: Commit


def _output(run: Run, text: str) -> Json:
    """Return the text for humans, and the digest."""
    noted = note_run(run)
    counts = noted.cases
    cases = counts.passed + counts.failed + counts.errors + counts.skipped
    rows = [
        f"| {code(each.group.agent)} | {code(each.group.evalset)} | {code(each.group.criterion)} "
        f"| {score(each.value)} |"
        for each in noted.groups
    ]
    if len(rows) > MAX_ROWS:
        rows[MAX_ROWS:] = [f"| … and {len(rows) - MAX_ROWS} more | | | |"]
    note = (
        f"Scores of {code(run.meta.suite)} on this commit, the baseline for later changes. "
        "This check neither passes nor fails."
    )
    heads = ["| agent | evalset | criterion | mean |", "| --- | --- | --- | --- |"]
    return {
        "title": f"Baseline of {counted(cases, 'case')}",
        "summary": "\n".join([note, "", *heads, *rows]),
        "text": text,
    }


# --- The digest -------------------------------------------------------------------------------


def _digest(document: bytes) -> str:
    """Return `document` as a Markdown comment, which is not displayed."""
    packed = base64.b64encode(gzip.compress(document, mtime=0)).decode()
    hashed = hashlib.sha256(document).hexdigest()
    return f"{_BEGIN}v{VERSION} {len(document)} {hashed} {packed} -->"


def _past(check_run: _CheckRun, commit: str) -> Past:
    """Return the run in a check run.

    Raises:
        BaselineError: it cannot be read.

    """
    shown = f"check run {check_run.id}"
    hint = f"it is on commit {commit}; start a new baseline under another `name`"
    with baseline_errors(hint):
        with as_file(_document(check_run.text or "", shown)) as path:
            runs = stored_runs(path, shown)
        if [past.meta.commit for past in runs] != [commit]:
            raise fault(f"expected one run of commit {commit}", shown)
    return runs[0]


def _document(text: str, shown: str) -> bytes:
    """Return the document of a digest, having verified its length and hash."""
    found = _DIGEST.fullmatch(text.strip())
    if not found:
        raise fault("is not a digest of a run", shown)
    version, length, hashed, packed = found.groups()
    if int(version) != VERSION:
        message = f"has a digest of version {version}; this version of ci-eval reads {VERSION}"
        raise fault(message, shown)
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        document = unpacker.decompress(base64.b64decode(packed), int(length) + 1)
    except (ValueError, zlib.error) as exc:
        raise fault("is not a digest of a run", shown) from exc
    if len(document) != int(length) or hashlib.sha256(document).hexdigest() != hashed:
        raise fault("was changed since it was stored: its length or its hash differs", shown)
    return document
