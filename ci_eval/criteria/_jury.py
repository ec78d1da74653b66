"""Judges: the samples drawn from one, and the agreement of several."""

import asyncio
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TypeVar

from ci_eval.plugins.points import Panel
from ci_eval.records.questions import Question, Reading, Seat

T = TypeVar("T")


def names_of(panel: Panel) -> list[str]:
    """Return the names of the judges, numbered if a name occurs twice."""
    names = [seat.name for seat in panel.judges]
    if len(set(names)) == len(names):
        return names
    return [f"{name} #{number}" for number, name in enumerate(names, 1)]


def note_agreement(panel: Panel, said: Sequence[Hashable | None]) -> None:
    """Record the share of pairs of judges that agree; `None` stands for no verdict."""
    pairs = list(combinations((each for each in said if each is not None), 2))
    if pairs:
        panel.note_agreement(sum(one == other for one, other in pairs) / len(pairs))


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
