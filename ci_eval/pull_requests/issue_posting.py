"""The issue about scheduled runs of a suite; never changes the verdict.

An issue has a section for each job, like the comment on a pull request, and is written in the same
way, so the jobs of a matrix share one issue.  It is closed when all its sections have passed.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager

from ci_eval.forge.ci_job import run_link
from ci_eval.forge.github import connected
from ci_eval.forge.lineage import event_of
from ci_eval.pull_requests import gitlab_thread, sticky_comment
from ci_eval.pull_requests.comment_options import Options
from ci_eval.pull_requests.comment_sections import Section, read
from ci_eval.pull_requests.comment_thread import IssueThread, NewIssue, PostingError, posting_errors
from ci_eval.pull_requests.github_thread import GitHubIssues
from ci_eval.pull_requests.run_posting import Place, notice, patience, section, warn
from ci_eval.records.findings import Report
from ci_eval.reporters.issue import Issue
from ci_eval.runtime.context import RunContext, in_gitlab
from ci_eval.text.templates import markdown, terminal

_MAX_TITLE = 200


def post(report: Report, options: Issue, context: RunContext) -> None:
    """Open, update or close the issue about the suite of `report`; report failures as warnings.

    Does nothing for events that `options` does not name.
    """

    def written(place: Place) -> Section:
        return section(report, place, options, note=_origin(context.env))

    is_wanted = report.verdict.outcome != "passed"
    _post(written, report.meta.suite, options, context, wanted=is_wanted)


def post_notice(
    suite: str, said: str, options: Issue, context: RunContext, *, wanted: bool
) -> None:
    """Write the notice that a run left no report into the issue; open one only if `wanted`."""

    def written(place: Place) -> Section:
        text = f"{said.strip()}\n\n{_origin(context.env)}"
        return notice(suite, text, place, context)

    _post(written, suite, options, context, wanted=wanted)


def _post(
    written: Callable[[Place], Section],
    suite: str,
    options: Issue,
    context: RunContext,
    *,
    wanted: bool,
) -> None:
    if event_of(context.env) not in options.events:
        return
    new = NewIssue(
        terminal(f"ci-eval: {suite} did not pass", _MAX_TITLE), options.labels, options.assignees
    )

    async def work() -> Iterable[str]:
        async with patience(), _opened(new, context) as thread:
            found = written(Place.of(thread, _commit(context.env), context.env))
            options = Options(mode="update")
            posted = await sticky_comment.post(thread, [found], options, wanted=wanted)
            is_better = posted.url and found.outcome == "passed"
            is_closed = is_better and await _closed(thread, suite, context.env)
            status = "closed" if is_closed else posted.status
            return filter(None, (posted.url and f"issue {status}: {posted.url}", posted.note))

    try:
        for line in asyncio.run(work()):
            context.say(line)
    except PostingError as exc:
        warn(f"no issue: {exc}", exc.hint, context)


@asynccontextmanager
async def _opened(new: NewIssue, context: RunContext) -> AsyncIterator[IssueThread]:
    if in_gitlab(context.env):
        async with gitlab_thread.opened_issues(context, new) as thread:
            yield thread
        return
    with posting_errors():
        async with connected(context) as github:
            yield GitHubIssues(github, new)


def _commit(env: Mapping[str, str]) -> str:
    return env.get("CI_COMMIT_SHA" if in_gitlab(env) else "GITHUB_SHA", "")


async def _closed(thread: IssueThread, suite: str, env: Mapping[str, str]) -> bool:
    """Close the issue if all its sections have passed; return True if it was closed."""
    for issue in await thread.own():
        sections = read(suite, issue.body)
        if sections and all(each.outcome == "passed" for each in sections):
            await thread.close(issue, f"{markdown(suite)} passed again. {_origin(env)}")
            return True
    return False


def _origin(env: Mapping[str, str]) -> str:
    """Return the event and the run of this job, as a Markdown sentence."""
    link, event = run_link(env), event_of(env)
    return f"From [a run on `{event}`]({link})." if link else f"From a run on `{event}`."
