"""A conversation in memory, whose writers take turns as a test wants."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ci_eval.pull_requests.comment_thread import Comment, PostingError, Thread, is_marked

MAX_TURNS = 2000


@dataclass
class Line:
    """A comment, and what it said before."""

    id: str
    bodies: list[str]
    folded: str = ""

    @property
    def comment(self) -> Comment:
        url = f"https://example.com/{self.id}"
        return Comment(self.id, self.bodies[-1], url, hidden=bool(self.folded))


@dataclass
class Talk:
    """What all writers share."""

    lines: list[Line] = field(default_factory=list)
    keeps_history: bool = True
    log: list[str] = field(default_factory=list)
    made: int = 0

    def shown(self) -> list[str]:
        return [each.bodies[-1] for each in self.lines if not each.folded]

    def begin(self, body: str) -> Line:
        self.made += 1
        self.lines.append(Line(str(self.made), [body]))
        return self.lines[-1]


async def at_once(_: str) -> str:
    return ""


@dataclass
class Voice(Thread):
    """One writer's way to it; `turn` says when, and what goes wrong: `lost` or `cut`."""

    talk: Talk
    turn: Callable[[str], Awaitable[str]] = at_once

    async def own(self) -> list[Comment]:
        await self._turn("own")
        return [each.comment for each in self.talk.lines if is_marked(each.bodies[-1])]

    async def add(self, body: str) -> Comment:
        fault = await self._turn("add")
        if fault != "lost":
            made = self.talk.begin(body).comment
        self._fail(fault)
        return made

    async def edit(self, comment: Comment, body: str) -> None:
        fault = await self._turn("edit")
        if fault != "lost":
            self._line(comment).bodies.append(body)
        self._fail(fault)

    async def earlier(self, comment: Comment) -> list[str]:
        await self._turn("earlier")
        return self._line(comment).bodies[:-21:-1] if self.talk.keeps_history else []

    async def retire(self, comment: Comment, reason: Literal["OUTDATED", "DUPLICATE"]) -> None:
        await self._turn("retire")
        self._line(comment).folded = reason

    async def remove(self, comment: Comment) -> None:
        await self._turn("remove")
        self.talk.lines = [each for each in self.talk.lines if each.id != comment.id]

    async def pause(self, _: float) -> None:
        await self.turn("pause")

    async def _turn(self, what: str) -> str:
        fault = await self.turn(what)
        self.talk.log.append(what)
        return fault

    def _line(self, comment: Comment) -> Line:
        found = next((each for each in self.talk.lines if each.id == comment.id), None)
        if found is None:
            raise PostingError("it is gone", is_unsure=True)
        return found

    def _fail(self, fault: str) -> None:
        if fault:
            raise PostingError("the connection broke off", is_unsure=True)


class Turns:
    """Lets writers go on one at a time, in the order of `choices`."""

    def __init__(
        self, choose: Callable[[Sequence[tuple[int, str]]], int], faults: str = ""
    ) -> None:
        self._choose = choose
        self._faults = iter(faults)
        self._waiting: dict[int, tuple[str, asyncio.Future[str]]] = {}

    def of(self, writer: int) -> Callable[[str], Awaitable[str]]:
        async def turn(what: str) -> str:
            future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            self._waiting[writer] = (what, future)
            return await future

        return turn

    async def run(self, writers: Sequence[Awaitable[Any]]) -> list[Any]:
        """Return the outcome of each."""
        tasks = [asyncio.ensure_future(each) for each in writers]
        for _ in range(MAX_TURNS):
            for _ in range(2):
                await asyncio.sleep(0)
            if all(each.done() for each in tasks):
                return await asyncio.gather(*tasks, return_exceptions=True)
            ready = sorted((at, what) for at, (what, _) in self._waiting.items())
            at = ready[self._choose(ready) % len(ready)][0]
            what, future = self._waiting.pop(at)
            fault = next(self._faults, "") if what in ("add", "edit") else ""
            future.set_result({"l": "lost", "c": "cut"}.get(fault, ""))
        raise AssertionError("they never come to an end")
