"""The notice on a pull request that a run left no report: never green, never silent."""

import re
from dataclasses import replace
from urllib.parse import unquote

from ci_eval.pull_requests import sticky_comment
from ci_eval.pull_requests.comment_options import Options
from ci_eval.pull_requests.comment_sections import Key, Section, in_line, read
from ci_eval.pull_requests.comment_thread import Comment, Thread
from ci_eval.pull_requests.run_posting import Place, notice, post_as
from ci_eval.pull_requests.sticky_comment import Posted
from ci_eval.reporters.markdown import marker
from ci_eval.runtime.context import RunContext

_NAMED = re.compile(r"<!-- ci-eval:v1 id=(.*) -->")


def post(suite: str, said: str, options: Options, context: RunContext, *, wanted: bool) -> Posted:
    """Post the notice as this step's section of the comment; report failures as warnings.

    Creates a comment only if `wanted`.  If the `suite` is unknown, hence empty, an earlier section
    of the step says which it was.
    """

    async def say(place: Place) -> Posted:
        section, posted = notice(suite, said, place, context), Posted("none")
        if suite:
            return await sticky_comment.post(place.thread, [section], options, wanted=wanted)
        for each, keys in _older(await place.thread.own(), place).items():
            if in_line(section).key in keys:
                sections = [replace(section, suite=each)]
                posted = await sticky_comment.post(place.thread, sections, options, wanted=False)
        return posted

    return post_as(say, options, context)


async def post_notice(place: Place, workflow: str, said: str, options: Options) -> Posted:
    """Post the notice in the sections of earlier runs, else in a separate comment.

    Raises:
        PostingError: the comment was not written, or may not have been.

    """
    told = Section(_suite(workflow), "", "incomplete", said, *place[1:])
    posted = []
    for suite, keys in _older(await place.thread.own(), place).items():
        sections = [replace(told, suite=suite, job=job, step=step) for job, step in keys]
        posted.append(await sticky_comment.post(place.thread, sections, options, wanted=False))
    if posted:
        return posted[0]
    return await sticky_comment.post(place.thread, [told], options, wanted=True)


def _older(comments: list[Comment], place: Place) -> dict[str, dict[Key, None]]:
    """Return the keys of the sections of earlier runs in comments, by suite."""
    found: dict[str, dict[Key, None]] = {}
    for comment in comments:
        named = _NAMED.fullmatch(comment.first_line)
        # Hidden comments are not updated.
        if named is None or comment.hidden:
            continue
        # For a very long name this is its digest, which yields the same first line.
        suite = unquote(named[1])
        for each in read(suite, comment.body):
            if each.since < (place.run, place.attempt):
                found.setdefault(suite, {})[each.key] = None
    return found


def first_line(workflow: str) -> str:
    """Return the first line of the separate comment with the notice."""
    return marker(_suite(workflow))


async def clear(thread: Thread, workflow: str) -> None:
    """Delete the separate comment with the notice.

    Raises:
        PostingError: it could not be deleted.

    """
    for each in await thread.own():
        if each.first_line == first_line(workflow):
            await thread.remove(each)


def _suite(workflow: str) -> str:
    return f"not evaluated: {workflow}"
