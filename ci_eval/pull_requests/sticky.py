"""Keeps one comment for each suite, whoever writes at the same time.

Comments have no versions that a write could ask for, so two jobs that read the same comment can
overwrite each other.  Therefore a writer looks again after each write, also at what the comment
said before: what it may have overwritten is joined with what is there now, and written again.  The
newest section of each job wins, in whatever order they are joined, so all writers arrive at the
same comment.  What is lost all the same: the section of a job of which another overwrites the
comment and is killed before it looks again; and, where nobody keeps what a comment said before,
that of a job that has looked for the last time when another, which read before, writes.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ci_eval.pull_requests.layout import compose
from ci_eval.pull_requests.options import Options
from ci_eval.pull_requests.sections import Section, as_stored, joining, merged, newest_commit, read
from ci_eval.pull_requests.thread import Comment, PostingError, Thread
from ci_eval.reporters.markdown import marker
from ci_eval.runtime.retry import Backoff

Status = Literal["created", "updated", "unchanged", "none", "deferred", "failed", "off"]
Pause = Callable[[float], Awaitable[None]]

MAX_WRITES = 10
"""How often is written until the comment is as it should be."""
BACKOFF = Backoff(first_s=2.0, longest_s=20.0, jitter=0.5)
"""Pauses after the writes."""


class Posted(NamedTuple):
    """What became of a comment."""

    status: Status
    url: str = ""
    note: str = ""
    """What did not go as it should, though the comment stands."""


async def post(
    thread: Thread,
    sections: Sequence[Section],
    options: Options,
    *,
    wanted: bool,
    pause: Pause = asyncio.sleep,
) -> Posted:
    """Let the comment of a suite say what `sections` say; `wanted` calls for a new one.

    It is written once, for however many jobs.

    Raises:
        PostingError: it was not written, or nobody knows.

    """
    return await _Writer(thread, tuple(sections), options, wanted, pause).post()


@dataclass(frozen=True)
class _View:
    """The comments that are there, and what they should be."""

    main: Comment | None
    """The one that is kept; `None` where a new one is to be written."""
    duplicates: tuple[Comment, ...]
    """Others of the same commit as `main`: two jobs had each found none."""
    outdated: tuple[Comment, ...]
    """Others of commits before, which `main` follows."""
    sections: tuple[Section, ...]
    """What `main` is to say."""
    is_done: bool
    """Whether it says so."""


@dataclass
class _Writer:
    """Writes until there is nothing left to do."""

    thread: Thread
    said: tuple[Section, ...]
    """What is to be said, of one suite."""
    options: Options
    wanted: bool
    pause: Pause
    seen: tuple[Section, ...] = ()
    """What was to be in the comment when we last looked."""
    made: Comment | None = None
    """The comment that we began, which lists may not have yet."""
    has_edited: bool = False
    status: Status = "unchanged"
    url: str = ""
    doubt: PostingError | None = None
    """Why nobody knows whether the last write was made."""

    @property
    def suite(self) -> str:
        """What the comment is about."""
        return self.said[0].suite

    async def post(self) -> Posted:
        """Look, write what is missing, and look again."""
        seed = f"{self.suite}/{self.said[0].job}/{self.said[0].since}"
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
            f"other jobs overwrite the comment on {self.suite!r} again and again",
            hint="let one job post for all of them when they are done, with `ci-eval publish`",
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
        """Return the comment to keep: the oldest, or in some modes that of the newest commit."""
        if self.options.mode == "update":
            return there[0] if there else None
        if fresh:
            return fresh[0]
        return None if self.wanted or not there else there[-1]

    async def _overwritten(self, main: Comment | None) -> list[Section]:
        """Return what our edits may have overwritten."""
        if main is None or not self.has_edited:
            return []
        bodies = await self.thread.earlier(main)
        return [each for body in reversed(bodies) for each in read(self.suite, body)]

    def _says(self, main: Comment, found: Sequence[Section], wanted: tuple[Section, ...]) -> bool:
        """Say whether a comment has all sections; before we write, whether it is the same."""
        if self.status == "unchanged":
            return as_stored(main.body) == compose(wanted, self.thread.limit)
        # How much of a text there was room for may differ from one writer to the next.
        return {_key(each) for each in found} == {_key(each) for each in wanted}

    async def _write(self, view: _View) -> None:
        """Write the comment; where nobody knows whether that was done, the next look tells."""
        body = compose(view.sections, self.thread.limit)
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
        """Put away what `main` stands for now; return why that did not work."""
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


def _key(section: Section) -> tuple[str, tuple[int, int], str]:
    return section.job, section.since, section.outcome
