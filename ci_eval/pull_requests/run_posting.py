"""Posting a run to its pull request; never changes the verdict."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple, Self

from ci_eval.forge.ci_job import run_link
from ci_eval.forge.github import GitHub, connected
from ci_eval.forge.lineage import event_of, from_fork
from ci_eval.forge.rest import HostError
from ci_eval.pull_requests import check_run, gitlab_thread, pull_request, sticky_comment
from ci_eval.pull_requests.comment_options import Options, calls_for
from ci_eval.pull_requests.comment_sections import Outcome, Section, with_distinct_names
from ci_eval.pull_requests.comment_thread import PostingError, Thread, posting_errors
from ci_eval.pull_requests.github_runner import annotate
from ci_eval.pull_requests.github_thread import GitHubThread
from ci_eval.pull_requests.pull_request import PullRequest
from ci_eval.pull_requests.sticky_comment import Posted
from ci_eval.records.errors import Problem
from ci_eval.records.findings import Reason, Report
from ci_eval.reporters.markdown import Markdown
from ci_eval.runtime.context import RunContext, in_gitlab

PATIENCE_S = 300.0
"""Timeout for all posting of a job."""
MAX_TEXT = 60_000
"""Maximum length of the section of one job: GitHub accepts 65,536 characters in total."""
_READS = "pull requests from forks and from Dependabot get a read-only token"
_UNREAD = "another report could not be read; see the log of ci-eval publish"
_DEFERRED = f"{_READS}; post their reports with `ci-eval publish` (guide: forks)"


class Place(NamedTuple):
    """Where to post a report."""

    thread: Thread
    commit: str
    """The head commit of the pull request."""
    run: int
    """The number of the workflow run or pipeline that ran the evaluation."""
    attempt: int
    """The number of its attempt, or of the job; it increases."""

    @classmethod
    def of(cls, thread: Thread, commit: str, env: Mapping[str, str]) -> Self:
        """Return the place for this CI run; numbers that CI does not set are 0."""
        names = "GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT"
        if in_gitlab(env):
            names = "CI_PIPELINE_ID", "CI_JOB_ID"
        given = (env.get(name, "") for name in names)
        run, attempt = (int(each) if re.fullmatch("[0-9]{1,18}", each) else 0 for each in given)
        return cls(thread, commit, run, attempt)


Write = Callable[[Place], Awaitable[Posted]]
"""Function that posts to a place."""


def post(
    reports: Sequence[Report],
    options: Options,
    context: RunContext,
    document: Markdown | None = None,
) -> Posted:
    """Post the reports of one suite, rendered by `document`; report failures as warnings.

    The comment is written once, for any number of jobs.
    """
    trusted = [_with_own_links(each, context.env, options.report_url) for each in reports]

    async def write(place: Place) -> Posted:
        writes = document or Markdown()
        sections = with_distinct_names(section(each, place, writes) for each in trusted)
        wanted = any(calls_for(each, options.when) for each in trusted)
        return await sticky_comment.post(place.thread, sections, options, wanted=wanted)

    return post_as(write, options, context, trusted)


def _with_own_links(report: Report, env: Mapping[str, str], page_url: str) -> Report:
    """Return the report with links to the job's server only, and to `page_url` if given.

    Needed because an agent that runs under the same account can write to the report folder.
    """
    server = env.get("GITHUB_SERVER_URL") or env.get("CI_SERVER_URL") or ""

    def own(link: str) -> str:
        return link if server and link.startswith(f"{server.rstrip('/')}/") else ""

    known = {"url": own(report.meta.url), "page_url": page_url or own(report.meta.page_url)}
    return report.model_copy(update={"meta": report.meta.model_copy(update=known)})


def post_as(
    write: Write, options: Options, context: RunContext, reports: Sequence[Report] = ()
) -> Posted:
    """Call `write` with the thread of the pull request; report failures as warnings.

    Also creates a check run for each of the `reports`, if configured.
    """

    async def work() -> Posted:
        async with patience():
            if in_gitlab(context.env):
                return await _on_gitlab(write, options, context)
            return await _on_github(write, options, context, reports)

    try:
        return asyncio.run(work())
    except PostingError as exc:
        return _not_posted(exc, context)


@asynccontextmanager
async def patience() -> AsyncIterator[None]:
    """Limit the time of all posting.

    Raises:
        PostingError: it takes too long.

    """
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield
    except TimeoutError as exc:
        message = f"it may or may not have been written: timed out after {PATIENCE_S:g} s"
        raise PostingError(message) from exc


def _not_posted(exc: PostingError, context: RunContext) -> Posted:
    """Report the failure; a fork's read-only token is expected and causes no warning."""
    if exc.is_refusal and from_fork(context.env):
        context.say(f"no comment yet: {exc}; {_DEFERRED}")
        return Posted("deferred")
    warn(f"no comment: {exc}", exc.hint, context)
    return Posted("failed")


async def _on_github(
    write: Write, options: Options, context: RunContext, reports: Sequence[Report]
) -> Posted:
    env = context.env
    with posting_errors():
        async with connected(context) as github:
            found = await _found(github, options, context)
            if found:
                for commit in filter(None, {each.meta.commit for each in reports}):
                    await pull_request.refuse_other(github, found, commit, env)
            for each in reports if options.check_run else ():
                # A merge queue waits for the checks of its own commit.
                is_queued = event_of(env) == "merge_group"
                commit = found.head_sha if found and not is_queued else env.get("GITHUB_SHA", "")
                await _check_run(github, each, commit, context)
            if options.mode == "off":
                return Posted("off")
            if found is None:
                return Posted("none")
            thread = GitHubThread(github, found.number)
            return await write(Place.of(thread, found.head_sha, env))


async def _found(github: GitHub, options: Options, context: RunContext) -> PullRequest | None:
    """Return the pull request; if there is none, print why.

    Events other than `pull_request` need a lookup, for which the token of a push may lack
    permission; that is not an error of the workflow.
    """
    try:
        found = await pull_request.find(github, context.env, options.pull_request)
    except HostError as exc:
        if options.pull_request or exc.status not in (403, 404):
            raise
        context.say(f"no comment: {exc}; to comment on its pull request, {exc.hint}")
        return None
    if found is None and options.mode != "off":
        context.say("no comment: this commit has no open pull request")
    return found


async def _on_gitlab(write: Write, options: Options, context: RunContext) -> Posted:
    if options.check_run:
        warn("no check run: only GitHub has them", "remove `--check-run`", context)
    if options.mode == "off":
        return Posted("off")
    async with gitlab_thread.opened(context, options.pull_request) as found:
        if found is None:
            context.say("no comment: this commit has no open merge request")
            return Posted("none")
        thread, merge_request = found
        return await write(Place.of(thread, merge_request.commit, context.env))


async def _check_run(github: GitHub, report: Report, commit: str, context: RunContext) -> None:
    """Create the check run; a failure does not affect the comment."""
    try:
        await check_run.make(github, report, commit, run_link(context.env))
    except HostError as exc:
        if exc.status in (403, 404) and from_fork(context.env):
            context.say(f"no check run: {exc}; {_READS}")
        else:
            warn(f"no check run: {exc}", exc.hint, context)


def warn(message: str, hint: str, context: RunContext) -> None:
    """Print a warning, and annotate the run with it."""
    context.say(message)
    if hint:
        context.say(hint)
    annotate([Problem(f"{message}; {hint}" if hint else message, severity="warning")], context.env)


def section(report: Report, place: Place, writes: Markdown, *, note: str = "") -> Section:
    """Return the section of `report` in the comment, with a `note` below the verdict."""
    room = MAX_TEXT - len(note) - 2
    text = writes.body(report, lambda found: len(found) <= room)
    if note:
        decision, _, rest = text.partition("\n\n")
        text = f"{decision}\n\n{note.strip()}\n\n{rest}"
    outcome: Outcome = "undecided" if report.verdict.undecided else report.verdict.outcome
    meta = report.meta
    return Section(meta.suite, meta.job, outcome, text, *place[1:], step=meta.step)


def notice(suite: str, text: str, place: Place, context: RunContext) -> Section:
    """Return the section of a step that left no report."""
    return Section(suite, context.job, "incomplete", text, *place[1:], step=context.step)


def beside_unreadable(report: Report) -> Report:
    """Return `report` without a passing verdict, because another report could not be read.

    The other one may belong to the same suite, and may have failed.
    """
    if report.verdict.outcome != "passed":
        return report
    reasons = (Reason(severity="incomplete", message=_UNREAD), *report.verdict.reasons)
    change = {"outcome": "incomplete", "undecided": "", "reasons": reasons}
    return report.model_copy(update={"verdict": report.verdict.model_copy(update=change)})
