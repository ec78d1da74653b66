"""Samples: repeated answers to the same question."""

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
    """Draw the samples with these numbers concurrently, and parse them with `read`."""
    asked = (replace(question, sample=sample) for sample in samples)
    return await asyncio.gather(*(seat.ask(each, read, fresh=fresh) for each in asked))


async def read_again(
    seat: Seat, question: Question, read: Callable[[str], T], drawn: list[Reading[T]]
) -> None:
    """Replace the samples in `drawn` that came from the cache and cannot be parsed.

    Unreadable answers are cached too, but requested again if the verdict depends on them.
    """
    unread = [n for n, each in enumerate(drawn) if each.cached and each.value is None]
    anew = await draw(seat, question, read, unread, fresh=True)
    for sample, reading in zip(unread, anew, strict=True):
        drawn[sample] = reading
