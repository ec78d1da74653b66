"""Posting the reports of another workflow run to its pull request.

Pull requests from forks are evaluated without secrets and with a read-only token.  A second
workflow of the repository, triggered by `workflow_run`, has a write token and runs no code of the
fork.  The pull request, the commit and the conclusion of the run come from GitHub; the report in
the artifact is untrusted.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

from pydantic import AliasPath, Field

from ci_eval.forge.github import GitHub, connected
from ci_eval.forge.lineage import event
from ci_eval.forge.rest import HostError
from ci_eval.pull_requests import (
    check_run,
    pull_request,
    report_artifacts,
    sticky_comment,
    unevaluated_comment,
)
from ci_eval.pull_requests.comment_options import Options, calls_for
from ci_eval.pull_requests.comment_sections import Key, Section, in_line, read, with_distinct_names
from ci_eval.pull_requests.comment_thread import Comment, PostingError
from ci_eval.pull_requests.github_runner import not_evaluated
from ci_eval.pull_requests.github_thread import GitHubThread
from ci_eval.pull_requests.pull_request import PullRequest
from ci_eval.pull_requests.run_posting import Place, beside_unreadable, section
from ci_eval.pull_requests.sticky_comment import Posted
from ci_eval.records.cases import Stored
from ci_eval.records.errors import CiEvalError, UsageError
from ci_eval.records.findings import Report
from ci_eval.reporters.markdown import Markdown, marker
from ci_eval.runtime.context import RunContext
from ci_eval.text.templates import code

MAX_SUITES = 20
"""Maximum number of our comments on a pull request, because a fork can invent suite names."""
_EVENTS = ("pull_request", "pull_request_target")
_MEASURED = "Measured by the fork's own workflow run: the code under test could have forged it"
_OUTSIDE = "name the reports to post, or run this in a `workflow_run` workflow (guide: forks)"


class Told(NamedTuple):
    """The result of posting one report, without the report itself, which may be long."""

    suite: str
    job: str
    verdict: Literal["passed", "failed", "incomplete"]
    posted: Posted


@dataclass
class Relayed:
    """The result of posting all reports of a workflow run."""

    told: list[Told] = field(default_factory=list)
    errors: list[CiEvalError] = field(default_factory=list)
    """Why other reports were not posted."""
    notice: Posted | None = None
    """The result of posting the notice that there is no report."""


class WorkflowRun(Stored):
    """A workflow run, with data from GitHub."""

    id: int
    head_sha: str
    head_branch: str | None = None
    source: str = Field(default="", validation_alias=AliasPath("head_repository", "full_name"))
    """The repository of the commit; empty if the fork has been deleted."""
    repository: str = Field(validation_alias=AliasPath("repository", "full_name"))
    event: str
    status: str | None = None
    conclusion: str | None = None
    run_attempt: int = 1
    name: str | None = None


def relay(options: Options, pattern: str, context: RunContext) -> Relayed:
    """Post the reports in the artifacts of the workflow run that triggered this one.

    Raises:
        UsageError: no workflow run triggered this one.
        PostingError: a request to GitHub failed.

    """
    number, sha = _started_by(context.env)
    try:
        return asyncio.run(_relay(number, sha, options, pattern, context))
    except HostError as exc:
        raise posting_error(exc) from exc


def posting_error(error: PostingError | HostError) -> PostingError:
    """Return the error to show to the user."""
    if isinstance(error, PostingError):
        return error
    return PostingError(f"not published: {error}", hint=error.hint)


def _started_by(env: Mapping[str, str]) -> tuple[int, str]:
    """Return the number and the commit of the run in the event."""
    name = env.get("GITHUB_EVENT_NAME", "")
    if name != "workflow_run":
        found = f"the event is {name!r}" if name else "not running in a workflow"
        raise UsageError(f"there is no report to publish: {found}", hint=_OUTSIDE)
    match event(env):
        case {"workflow_run": {"id": int(number), "head_sha": str(sha)}}:
            return number, sha
    raise UsageError("GITHUB_EVENT_PATH contains no workflow run", hint=_OUTSIDE)


async def _relay(
    number: int, sha: str, options: Options, pattern: str, context: RunContext
) -> Relayed:
    async with connected(context) as github:
        run = await github.one(f"actions/runs/{number}", WorkflowRun, needs=report_artifacts.NEEDS)
        here = context.env["GITHUB_REPOSITORY"]
        if (run.id, run.head_sha) != (number, sha) or run.repository != here:
            raise PostingError(f"the event does not match workflow run {number} of {here}")
        if (why := _nothing_to_do(run)) is not None:
            context.say(f"nothing to publish: {why}")
            return Relayed()
        pulls = await pull_request.of_branch(github, run.source, run.head_branch or "", sha)
        if options.pull_request:
            pulls = [each for each in pulls if each.number == options.pull_request]
        if not pulls:
            context.say(
                f"nothing to publish: no open pull request has the head commit {sha[:10]}; a newer "
                "commit has its own run"
            )
            return Relayed()
        return await _Relay(github, run, pulls, options, context).all(pattern)


def _nothing_to_do(run: WorkflowRun) -> str | None:
    if run.event not in _EVENTS:
        return f"the workflow run was triggered by {run.event!r}, not by a pull request"
    if run.status != "completed":
        return "the workflow run has not finished; publish on `types: [completed]`"
    return None


@dataclass
class _Suite:
    """The sections of one suite, from all jobs of a run."""

    pull: PullRequest
    name: str
    sections: list[Section] = field(default_factory=list)
    doubted: list[Section] = field(default_factory=list)
    """The same sections, to be posted if another report cannot be read."""
    is_wanted: bool = False
    """Whether any of them calls for a comment."""


@dataclass
class _Relay:
    """Posts the reports of one run."""

    github: GitHub
    run: WorkflowRun
    pulls: list[PullRequest]
    options: Options
    context: RunContext
    relayed: Relayed = field(default_factory=Relayed)
    own: dict[int, list[Comment]] = field(default_factory=dict)
    """Our earlier comments, by pull request number."""
    known: dict[int, set[str]] = field(default_factory=dict)
    """The first lines of our comments, by pull request number."""
    suites: dict[tuple[int, str], _Suite] = field(default_factory=dict)
    """What to post, by pull request number and suite."""
    checks: list[tuple[Report, PullRequest]] = field(default_factory=list)
    """Reports of the repository's own branches that get a check run."""
    is_whole: bool = True
    """Whether all reports could be read."""
    can_check: bool = True
    """Whether no check run has failed yet; the others would fail, too."""

    @cached_property
    def _threads(self) -> dict[int, GitHubThread]:
        return {each.number: GitHubThread(self.github, each.number) for each in self.pulls}

    async def all(self, pattern: str) -> Relayed:
        relayed = self.relayed
        found = await report_artifacts.listed(self.github, self.run.id, pattern)
        is_readable = await self._take(found)
        self.is_whole = not relayed.errors
        for report, pull in self.checks:
            await self._check(report if self.is_whole else beside_unreadable(report), pull)
        for each in self.suites.values():
            try:
                relayed.told += await self._post_suite(each)
            except (PostingError, HostError) as exc:
                relayed.errors.append(posting_error(exc))
                if isinstance(exc, HostError) or exc.is_refusal:
                    break  # the others would fail, too
        if is_readable or self.options.mode == "off":
            return relayed
        if len(self.pulls) == 1:
            relayed.notice = await self._post_notice(pattern, has_artifact=bool(found))
        else:
            self._report_ambiguity()
        return relayed

    async def _take(self, found: list[report_artifacts.Artifact]) -> bool:
        """Collect the reports from artifacts; return True if any could be read."""
        is_readable = False
        try:
            async for each in report_artifacts.reports(self.github, found):
                if isinstance(each, UsageError):
                    self.relayed.errors.append(each)
                    continue
                is_readable = True
                await self._take_one(each)
        except HostError as exc:
            if not is_readable:
                raise
            # The reports read so far are still posted.
            self.relayed.errors.append(posting_error(exc))
        return is_readable

    async def _take_one(self, report: Report) -> None:
        pull = self._meant(report)
        if pull is None:
            self._report_ambiguity()
            return
        note = _note(report, pull, self.run, self._link)
        # The commit and the link shown come from GitHub, not from the report.
        meta = report.meta.model_copy(update={"commit": pull.head_sha, "url": self._link})
        report = report.model_copy(update={"meta": meta})
        self._note_check(report, pull)
        name = report.meta.suite
        suite = self.suites.setdefault((pull.number, name), _Suite(pull, name))
        # Rendered with our template: a template of the repository must not see untrusted reports.
        for kept, each in (suite.sections, report), (suite.doubted, beside_unreadable(report)):
            kept.append(section(each, self._place(pull), Markdown(), note=note))
        suite.is_wanted |= calls_for(report, self.options.when)

    async def _post_suite(self, suite: "_Suite") -> list[Told]:
        posted, number = Posted("off"), suite.pull.number
        if self.options.mode != "off":
            await self._limit_suites(suite)
            posted = await self._post(suite)
            if unevaluated_comment.first_line(self._name) in self.known[number]:
                await unevaluated_comment.clear(self._threads[number], self._name)
        shown = suite.sections if self.is_whole else suite.doubted
        return [Told(suite.name, each.job, each.verdict, posted) for each in shown]

    async def _post(self, suite: "_Suite") -> Posted:
        """Post the sections that are not posted yet.

        Jobs of the repository itself can post, with its own template; their sections are left
        unchanged.
        """
        sections = with_distinct_names(suite.sections)
        posted = dict[tuple[Key, int, str], str]()
        for each in () if suite.pull.is_fork else self.own[suite.pull.number]:
            found = () if each.hidden else read(suite.name, each.body)
            posted |= {(one.key, one.run, one.outcome): each.url for one in found}
        keys = [(in_line(each).key, each.run, each.outcome) for each in sections]
        shown = sections if self.is_whole else with_distinct_names(suite.doubted)
        left = [each for each, key in zip(shown, keys, strict=True) if key not in posted]
        if not left:
            return Posted("unchanged", posted[keys[0]])
        thread = self._threads[suite.pull.number]
        is_wanted = suite.is_wanted or not self.is_whole
        return await sticky_comment.post(thread, left, self.options, wanted=is_wanted)

    def _note_check(self, report: Report, pull: PullRequest) -> None:
        """Note that the report gets a check run, which depends on whether others can be read."""
        if not self.options.check_run:
            return
        if pull.is_fork:
            # A fork could forge a passing check run.
            self.context.say("no check run: measurements of a fork are not trusted")
        else:
            self.checks.append((report, pull))

    async def _check(self, report: Report, pull: PullRequest) -> None:
        """Create the check run; a failure does not affect the comment."""
        if not self.can_check:
            return
        try:
            await check_run.make(self.github, report, pull.head_sha, self._link)
        except HostError as exc:
            self.relayed.errors.append(PostingError(f"no check run: {exc}", hint=exc.hint))
            self.can_check = False

    def _meant(self, report: Report) -> PullRequest | None:
        """Return the pull request of a report, even if its branch has several.

        The report's commit, the test merge commit that a workflow checks out, selects one of them.
        The report is untrusted, but all these pull requests belong to the same author.
        """
        if len(self.pulls) == 1:
            return self.pulls[0]
        merged = [each for each in self.pulls if each.merge_sha == report.meta.commit]
        return merged[0] if len(merged) == 1 else None

    async def _limit_suites(self, suite: "_Suite") -> None:
        number, name = suite.pull.number, suite.name
        if number not in self.known:
            self.own[number] = await self._threads[number].own()
            self.known[number] = {each.first_line for each in self.own[number]}
        known = self.known[number]
        if marker(name) not in known and len(known) >= MAX_SUITES:
            message = f"no comment for suite {name!r}: the maximum is {MAX_SUITES} suites"
            raise PostingError(message)
        known |= {marker(name)}

    def _report_ambiguity(self) -> None:
        numbers = pull_request.listed(self.pulls)
        self.context.say(f"not published: the run may belong to any of the pull requests {numbers}")

    async def _post_notice(self, pattern: str, *, has_artifact: bool) -> Posted:
        left = "readable report" if has_artifact else f"artifact {code(pattern)} with a report"
        ended = code(self.run.conclusion or "unknown")
        why = f"the workflow run ended with {ended} and left no {left}"
        text = not_evaluated(why, link=self._link)
        place = self._place(self.pulls[0])
        return await unevaluated_comment.post_notice(place, self._name, text, self.options)

    def _place(self, pull: PullRequest) -> Place:
        thread = self._threads[pull.number]
        return Place(thread, pull.head_sha, self.run.id, self.run.run_attempt)

    @property
    def _name(self) -> str:
        """The name of the workflow."""
        return self.run.name or ""

    @property
    def _link(self) -> str:
        env = self.context.env
        server = env.get("GITHUB_SERVER_URL") or "https://github.com"
        return f"{server}/{env['GITHUB_REPOSITORY']}/actions/runs/{self.run.id}"


def _note(report: Report, pull: PullRequest, run: WorkflowRun, link: str) -> str:
    """Return the note above a report, in Markdown."""
    notes = [f"{_MEASURED} ([workflow run]({link}))."] if pull.is_fork else []
    if report.verdict.outcome == "passed" and run.conclusion != "success":
        notes.append(
            f"The workflow run itself ended with {code(run.conclusion or 'unknown')}, so the "
            "report of another job may be missing."
        )
    commit = report.meta.commit
    if commit not in (None, pull.head_sha, pull.merge_sha):
        notes.append(
            f"The report names commit {code(str(commit)[:10])}, which is neither the head of this "
            "pull request nor its merge commit."
        )
    return f"<sub>{' '.join(notes)}</sub>\n\n" if notes else ""
