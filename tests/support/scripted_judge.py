"""A judge whose answers a test writes, and an asker over it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

from ci_eval.llm.judge_settings import JudgeOptions, Judging
from ci_eval.llm.model_client import Asker, asking
from ci_eval.plugins.points import Judge, JudgeClient
from ci_eval.records.questions import Answer, Question
from ci_eval.records.results import JudgeUsage
from ci_eval.runtime.context import RunContext

Say = Callable[[Question], Any]
"""Gives the text of an answer, or an `Answer`, or raises."""


class Told(Judge):
    """Answers what a function of the test says, and notes what it was asked."""

    tag: int = 0
    """Tells where it is reached from where others are."""
    say: ClassVar[Say]
    asked: ClassVar[list[Question]]
    delay_s: ClassVar[float] = 0.0
    most_at_once: ClassVar[int] = 0
    opened: ClassVar[int] = 0

    @asynccontextmanager
    async def start(self, context: RunContext) -> AsyncIterator[JudgeClient]:
        type(self).opened += 1
        yield _Client(type(self))


class _Client:
    def __init__(self, judge: type[Told]) -> None:
        self._judge = judge
        self._now = 0

    async def answer(self, question: Question) -> Answer:
        judge = self._judge
        judge.asked.append(question)
        self._now += 1
        judge.most_at_once = max(judge.most_at_once, self._now)
        try:
            await asyncio.sleep(judge.delay_s)
            said = judge.say(question)
        finally:
            self._now -= 1
        if isinstance(said, Answer):
            return said
        return Answer(text=said, input_tokens=100, output_tokens=10)


def judge(say: Say, *, delay_s: float = 0.0, model: str = "m", **more: Any) -> Told:
    """Return a judge that says what `say` gives."""

    class One(Told):
        pass

    One.say, One.asked, One.delay_s = staticmethod(say), [], delay_s
    One.type_name = "told"
    return One(model=model, **{"tag": id(One), **more})


def context(folder: Path, **env: str) -> RunContext:
    return RunContext(env=env, root=folder, now=lambda: 0.0)


@asynccontextmanager
async def asker(
    folder: Path, *judges: Told, spent: JudgeUsage | None = None, **options: Any
) -> AsyncIterator[Asker]:
    """Yield an asker whose default judge is the one that is given; several are a jury."""
    block = JudgeOptions.model_validate(options)
    judging = Judging(block, judges[0] if len(judges) == 1 else None, judges[1:] and judges)
    async with asking(judging, context(folder), spent or JudgeUsage()) as found:
        yield found
