"""What is told where a workflow run left no report: never green, and never in silence."""

import re
from collections.abc import Iterable
from contextlib import aclosing
from dataclasses import replace
from urllib.parse import unquote

from ci_eval.github import GitHub
from ci_eval.posting import sticky
from ci_eval.posting.after_run import Place
from ci_eval.posting.options import Options
from ci_eval.posting.sections import Section, read
from ci_eval.posting.sticky import Posted
from ci_eval.posting.thread import Thread
from ci_eval.records import Stored
from ci_eval.reporters.markdown import marker

_MARKER = re.compile(r"<!-- ci-eval:v1 id=([^ ]{1,300}) -->")
_MAX_LISTED = 3000


class _Comment(Stored):
    body: str | None = None


def text(why: str, link: str) -> str:
    """Return the Markdown that says it; `why` is Markdown already."""
    return f"> [!WARNING]\n> **Not evaluated:** {why} ([its log]({link})).\n"


async def suites(github: GitHub, number: int) -> list[str]:
    """Return the suites that comments on a pull request are about.

    Anybody may have written them; which are ours is found out before any is touched.

    Raises:
        GitHubError: they cannot be read.

    """
    listing = github.listed(f"issues/{number}/comments", _Comment, needs="pull-requests: read")
    found: dict[str, None] = {}
    count = 0
    async with aclosing(listing) as comments:
        async for each in comments:
            name = _MARKER.match(each.body or "")
            # A name that was too long is not told by its comment.
            if name and marker(unquote(name[1])) == name[0]:
                found[unquote(name[1])] = None
            count += 1
            if count == _MAX_LISTED:
                break
    return list(found)


async def tell(
    place: Place, known: Iterable[str], workflow: str, said: str, options: Options
) -> Posted:
    """Say it of the jobs that our comments tell of, else in a comment of its own.

    Raises:
        PostingError: it was not written, or nobody knows.

    """
    notice = Section(_suite(workflow), "", "incomplete", said, *place[1:])
    posted = [
        await sticky.post(
            place.thread, replace(notice, suite=suite, job=job), options, wanted=False
        )
        for suite in known
        if suite != notice.suite
        for job in await _older(place, suite)
    ]
    return posted[0] if posted else await sticky.post(place.thread, notice, options, wanted=True)


async def _older(place: Place, suite: str) -> list[str]:
    """Return the jobs of earlier runs that our comment on a suite tells of."""
    comments = await place.thread.own(marker(suite))
    jobs = {
        each.job: None
        for comment in comments
        for each in read(suite, comment.body)
        if each.since < (place.run, place.attempt)
    }
    return list(jobs)


async def clear(thread: Thread, workflow: str) -> None:
    """Take the comment away which said that there was no report.

    Raises:
        PostingError: it could not be.

    """
    for each in await thread.own(marker(_suite(workflow))):
        await thread.remove(each)


def _suite(workflow: str) -> str:
    return f"not evaluated: {workflow}"
