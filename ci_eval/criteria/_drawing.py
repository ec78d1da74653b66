"""Samples: the same question, asked several times."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from ci_eval.records.questions import Question, Reading, Seat

T = TypeVar("T")


async def draw(
    seat: Seat,
    question: Question,
    read: Callable[[str], T],
    samples: Iterable[int],
    *,
    fresh: bool = False,
) -> list[Reading[T]]:
    """Return what `read` makes of the samples of these numbers, all drawn at once."""
    asked = (replace(question, sample=sample) for sample in samples)
    return await asyncio.gather(*(seat.ask(each, read, fresh=fresh) for each in asked))


async def read_again(
    seat: Seat, question: Question, read: Callable[[str], T], drawn: list[Reading[T]]
) -> None:
    """Draw anew, in `drawn`, the samples whose answers were kept and cannot be read.

    Such answers are kept too, but not for good where nothing else decides.
    """
    unread = [n for n, each in enumerate(drawn) if each.cached and each.value is None]
    anew = await draw(seat, question, read, unread, fresh=True)
    for sample, reading in zip(unread, anew, strict=True):
        drawn[sample] = reading
