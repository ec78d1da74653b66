"""A judge without a model, for tests and examples."""

import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pydantic import Field

from ci_eval.plugins.points import Judge, JudgeClient, judge
from ci_eval.records.cases import Json, Record
from ci_eval.records.errors import JudgeError
from ci_eval.records.questions import Answer, Question
from ci_eval.runtime.context import RunContext


class Line(Record):
    """An answer to some questions."""

    criterion: str | None = None
    """Only for questions of this criterion, such as `adk/hallucinations_v1`."""
    contains: str | tuple[str, ...] = ()
    """Only for questions that contain this text, or all texts of this list."""
    answer: Json
    """The answer: text, or a value that is sent as JSON. If it is a list, repetitions of a question
    get its elements in turn, starting over after the last."""

    def fits(self, question: Question) -> bool:
        """Return True if it answers `question`."""
        wanted = (self.contains,) if isinstance(self.contains, str) else self.contains
        return self.criterion in (None, question.about) and all(
            each in question.prompt for each in wanted
        )


@judge("scripted")
class Scripted(Judge):
    """Fixed answers from the configuration, for tests and examples without a key or a network.

    The first matching entry of `answers` is used; without a match, there is no answer.
    """

    free = True

    answers: tuple[Line, ...] = Field(min_length=1)
    """The answers, each with the questions that it is for."""

    def serves(self, model: str) -> bool:
        """Return True: it answers for every model."""
        del model
        return True

    def script(self) -> Json:
        """Return the answers."""
        return [each.model_dump(mode="json") for each in self.answers]

    @asynccontextmanager
    async def start(self, context: RunContext) -> AsyncIterator[JudgeClient]:
        """Start; nothing to connect."""
        del context
        yield _Reader(self.answers, self.model or "scripted")


@dataclass(frozen=True)
class _Reader:
    lines: Sequence[Line]
    model: str

    async def answer(self, question: Question) -> Answer:
        """Return the first matching answer."""
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
