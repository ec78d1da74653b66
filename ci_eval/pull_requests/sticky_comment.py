"""One sticky comment per suite, even with concurrent writers.

Comments have no versions for conditional writes, so two jobs that read the same comment can
overwrite each other.  Therefore a writer checks after each write, including earlier texts of the
comment: what it may have overwritten is merged with the current text and written again.  The
newest section of each job wins, whatever the order of merging, so all writers converge.  A section
can still get lost in two cases: if another job overwrites it and is killed before its check; and,
on hosts without earlier texts, if a job that read the old comment writes after the last check.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ci_eval.pull_requests.comment_layout import compose
from ci_eval.pull_requests.comment_options import Options
from ci_eval.pull_requests.comment_sections import (
    Key,
    Section,
    as_stored,
    joining,
    merged,
    newest_commit,
    read,
)
from ci_eval.pull_requests.comment_thread import LIMIT, Comment, PostingError, Thread
from ci_eval.reporters.markdown import marker
from ci_eval.runtime.retry import Backoff

Status = Literal["created", "updated", "unchanged", "none", "deferred", "failed", "off"]
Pause = Callable[[float], Awaitable[None]]

MAX_WRITES = 10
"""Maximum number of attempts to write the comment."""
BACKOFF = Backoff(first_s=2.0, longest_s=20.0, jitter=0.5)
"""Pauses after the writes."""


class Posted(NamedTuple):
    """The result of posting a comment."""

    status: Status
    url: str = ""
    note: str = ""
    """A failure after the comment was written."""


async def post(
    thread: Thread,
    sections: Sequence[Section],
    options: Options,
    *,
    wanted: bool,
    pause: Pause = asyncio.sleep,
) -> Posted:
    """Write `sections` into the comment of their suite; create it only if `wanted`.

    The comment is written once, for any number of jobs.

    Raises:
        PostingError: the comment was not written, or may not have been.

    """
    return await _Writer(thread, tuple(sections), options, wanted, pause).post()


@dataclass(frozen=True)
class _View:
    """The existing comments, and their target state."""

    main: Comment | None
    """The comment to keep; `None` to create a new one."""
    duplicates: tuple[Comment, ...]
    """Other comments on the same commit, created by jobs that had each found none."""
    outdated: tuple[Comment, ...]
    """Comments on earlier commits, which `main` replaces."""
    sections: tuple[Section, ...]
    """The sections that `main` should have."""
    is_done: bool
    """Whether `main` has these sections."""


@dataclass
class _Writer:
    """Writes until the comment is in its target state."""

    thread: Thread
    said: tuple[Section, ...]
    """The sections to post, of one suite."""
    options: Options
    wanted: bool
    pause: Pause
    seen: tuple[Section, ...] = ()
    """The target sections at the last check."""
    made: Comment | None = None
    """The comment that we created, which listings may not contain yet."""
    has_edited: bool = False
    status: Status = "unchanged"
    url: str = ""
    doubt: PostingError | None = None
    """Why the outcome of the last write is unknown."""

    @property
    def suite(self) -> str:
        """The suite of the comment."""
        return self.said[0].suite

    async def post(self) -> Posted:
        """Check, write what is missing, and check again."""
        seed = f"{self.suite}/{self.said[0].key}/{self.said[0].since}"
        for pause_s in BACKOFF.pauses(MAX_WRITES, seed=seed):
            try:
                view = await self._look()
            except PostingError as exc:
                if self.doubt or self.status == "unchanged":
                    raise
                return Posted(self.status, self.url, str(exc))
            if view.main is None and not self.wanted:
                return Posted("none")
            if view.main and view.is_done:
                return Posted(self.status, view.main.url, await self._tidied(view))
            await self._write(view)
            await self.pause(pause_s)
        if self.doubt:
            raise self.doubt
        raise PostingError(
            f"other jobs keep overwriting the comment on {self.suite!r}",
            hint="post all reports from one final job with `ci-eval publish`",
        )

    async def _look(self) -> _View:
        line = marker(self.suite)
        own = await self.thread.own()
        there = [each for each in own if each.first_line == line and not each.hidden]
        if not there and self.made:
            there = [self.made]
        found = {each.id: read(self.suite, each.body) for each in there}
        already = [each for some in found.values() for each in some]
        if self.status == "unchanged" and not self.doubt:
            self.said = tuple(joining(each, already) for each in self.said)
        newest = newest_commit([*already, *self.said])
        fresh = [each for each in there if any(one.commit == newest for one in found[each.id])]
        main = self._main(there, fresh)
        others = [each for each in there if each != main]
        sections = merged(
            [
                *await self._overwritten(main),
                *self.seen,
                *(one for each in others for one in found[each.id]),
                *(found[main.id] if main else ()),
                *self.said,
            ]
        )
        self.seen = sections
        is_update = self.options.mode == "update"
        return _View(
            main,
            tuple(each for each in others if is_update or each in fresh),
            tuple(each for each in others if not (is_update or each in fresh)),
            sections,
            main is not None and self._says(main, found[main.id], sections),
        )

    def _main(self, there: Sequence[Comment], fresh: Sequence[Comment]) -> Comment | None:
        """Return the comment to keep: the oldest or, in some modes, that of the newest commit."""
        if self.options.mode == "update":
            return there[0] if there else None
        if fresh:
            return fresh[0]
        return None if self.wanted or not there else there[-1]

    async def _overwritten(self, main: Comment | None) -> list[Section]:
        """Return the sections that our edits may have overwritten."""
        if main is None or not self.has_edited:
            return []
        bodies = await self.thread.earlier(main)
        return [each for body in reversed(bodies) for each in read(self.suite, body)]

    def _says(self, main: Comment, found: Sequence[Section], wanted: tuple[Section, ...]) -> bool:
        """Return True if a comment has all sections; before the first write, also the same text."""
        if self.status == "unchanged":
            return as_stored(main.body) == compose(wanted, LIMIT)
        # Writers may shorten texts differently.
        return {_key(each) for each in found} == {_key(each) for each in wanted}

    async def _write(self, view: _View) -> None:
        """Write the comment; if the outcome is unknown, the next check finds out."""
        body = compose(view.sections, LIMIT)
        self.doubt = None
        try:
            if view.main is None:
                self.status = "created"
                self.made = await self.thread.add(body)
                self.url = self.made.url
                return
            if self.status == "unchanged":
                self.status = "updated"
            self.url, self.has_edited = view.main.url, True
            await self.thread.edit(view.main, body)
        except PostingError as exc:
            if not exc.is_unsure:
                raise
            self.doubt = exc

    async def _tidied(self, view: _View) -> str:
        """Retire the comments that `main` replaces; return the error message if that fails."""
        try:
            for each in view.duplicates:
                await self.thread.retire(each, "DUPLICATE")
            for each in view.outdated:
                if self.options.mode == "recreate":
                    await self.thread.remove(each)
                else:
                    await self.thread.retire(each, "OUTDATED")
        except PostingError as exc:
            return str(exc)
        return ""


def _key(section: Section) -> tuple[Key, tuple[int, int], str]:
    return section.key, section.since, section.outcome
