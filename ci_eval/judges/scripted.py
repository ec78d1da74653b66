"""A judge without a model, for tests and examples."""

import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import ClassVar

from pydantic import Field

from ci_eval.plugins.points import Judge, JudgeClient, judge
from ci_eval.records.errors import JudgeError
from ci_eval.records.model import Json, Record
from ci_eval.records.questions import Answer, Question
from ci_eval.runtime.context import RunContext


class Line(Record):
    """What is answered to some questions."""

    criterion: str | None = None
    """Only where this criterion asks, such as `adk/hallucinations_v1`."""
    contains: str | tuple[str, ...] = ()
    """Only where the question holds this text, or all of these."""
    answer: Json
    """The answer: a text, or what is then written as JSON. Of a list, each time the same is
    asked, the next one; from the start again after the last."""

    def fits(self, question: Question) -> bool:
        """Say whether it answers `question`."""
        wanted = (self.contains,) if isinstance(self.contains, str) else self.contains
        return self.criterion in (None, question.about) and all(
            each in question.prompt for each in wanted
        )


@judge("scripted")
class Scripted(Judge):
    """Answers what the configuration says: for tests and examples, without a key or a network.

    The first of `answers` that fits a question is given; where none does, there is no answer.
    """

    free: ClassVar[bool] = True

    answers: tuple[Line, ...] = Field(min_length=1)
    """What is answered to which questions."""

    def serves(self, model: str) -> bool:
        """Say that it speaks for every model."""
        del model
        return True

    def script(self) -> Json:
        """Return the answers."""
        return [each.model_dump(mode="json") for each in self.answers]

    @asynccontextmanager
    async def start(self, context: RunContext) -> AsyncIterator[JudgeClient]:
        """Begin."""
        del context
        yield _Reader(self.answers, self.model or "scripted")


@dataclass(frozen=True)
class _Reader:
    lines: Sequence[Line]
    model: str

    async def answer(self, question: Question) -> Answer:
        """Return what the first line that fits says."""
        found = next((each for each in self.lines if each.fits(question)), None)
        if found is None:
            raise JudgeError("the scripted judge has no answer to this question")
        said = found.answer
        if isinstance(said, list) and said:
            said = said[question.sample % len(said)]
        text = said if isinstance(said, str) else json.dumps(said)
        return Answer(
            text=text,
            input_tokens=_words(question.instructions + question.prompt),
            output_tokens=_words(text),
            model=self.model,
        )


def _words(text: str) -> int:
    return len(re.findall(r"\S+", text))
