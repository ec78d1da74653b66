"""What is told where a run left no report: never green, and never in silence."""

import re
from dataclasses import replace
from urllib.parse import unquote

from ci_eval.pull_requests import sticky
from ci_eval.pull_requests.after_run import Place, post_as
from ci_eval.pull_requests.options import Options
from ci_eval.pull_requests.sections import Section, read
from ci_eval.pull_requests.sticky import Posted
from ci_eval.pull_requests.thread import Comment, Thread
from ci_eval.reporters.markdown import marker
from ci_eval.runtime.context import RunContext

_NAMED = re.compile(r"<!-- ci-eval:v1 id=(.*) -->")


def post(suite: str, said: str, options: Options, context: RunContext, *, wanted: bool) -> Posted:
    """Let this job say it in the comment of its suite, or say why it is not told.

    `wanted` calls for a comment where there is none yet.
    """

    async def say(place: Place) -> Posted:
        section = Section(suite, context.job, "incomplete", said, *place[1:])
        return await sticky.post(place.thread, [section], options, wanted=wanted)

    return post_as(say, options, context)


async def tell(place: Place, workflow: str, said: str, options: Options) -> Posted:
    """Say it of the jobs that our comments tell of, else in a comment of its own.

    Raises:
        PostingError: it was not written, or nobody knows.

    """
    notice = Section(_suite(workflow), "", "incomplete", said, *place[1:])
    posted = []
    for suite, jobs in _older(await place.thread.own(), place).items():
        sections = [replace(notice, suite=suite, job=job) for job in jobs]
        posted.append(await sticky.post(place.thread, sections, options, wanted=False))
    if posted:
        return posted[0]
    return await sticky.post(place.thread, [notice], options, wanted=True)


def _older(comments: list[Comment], place: Place) -> dict[str, list[str]]:
    """Return the jobs of earlier runs that comments tell of, by suite."""
    found: dict[str, dict[str, None]] = {}
    for comment in comments:
        named = _NAMED.fullmatch(comment.first_line)
        # What was put out of sight is kept up by nobody.
        if named is None or comment.hidden:
            continue
        # Of a name that was too long it is the digest, which is found by the same line.
        suite = unquote(named[1])
        for each in read(suite, comment.body):
            if each.since < (place.run, place.attempt):
                found.setdefault(suite, {})[each.job] = None
    return {suite: list(jobs) for suite, jobs in found.items()}


def first_line(workflow: str) -> str:
    """Return what the comment begins with which says that a workflow left no report."""
    return marker(_suite(workflow))


async def clear(thread: Thread, workflow: str) -> None:
    """Take that comment away.

    Raises:
        PostingError: it could not be.

    """
    for each in await thread.own():
        if each.first_line == first_line(workflow):
            await thread.remove(each)


def _suite(workflow: str) -> str:
    return f"not evaluated: {workflow}"
