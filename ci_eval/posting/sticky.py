"""Keeps one comment for each suite, whoever writes at the same time."""

from typing import Literal, NamedTuple

from ci_eval.posting.options import Options
from ci_eval.posting.sections import Section, compose
from ci_eval.posting.thread import Thread
from ci_eval.reporters.markdown import marker

Status = Literal["created", "updated", "unchanged", "none", "deferred", "failed", "off"]


class Posted(NamedTuple):
    """What became of a comment."""

    status: Status
    url: str = ""


async def post(thread: Thread, section: Section, options: Options, *, wanted: bool) -> Posted:
    """Let the comment of the suite say what `section` says; `wanted` calls for a new one.

    Raises:
        PostingError: it was not written, or nobody knows.

    """
    del options
    there = await thread.own(marker(section.suite))
    body = compose(section)
    if not there:
        if not wanted:
            return Posted("none")
        return Posted("created", (await thread.add(body)).url)
    if there[0].body == body:
        return Posted("unchanged", there[0].url)
    await thread.edit(there[0], body)
    return Posted("updated", there[0].url)
