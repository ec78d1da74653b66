"""Mean of the scores in a judge's samples.

All samples are drawn at once.  An answer that cannot be parsed is left out of the mean.  A sample
without any answer could have had any score, so there is no mean without it.  For a jury, the mean
of the judges' means counts.
"""

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from statistics import mean
from typing import NamedTuple

from ci_eval.criteria._jury import draw, names_of, note_agreement, read_again
from ci_eval.plugins.points import Panel
from ci_eval.records.cases import Json
from ci_eval.records.questions import Question, Reading, Seat


class Sample(NamedTuple):
    """The content of one answer."""

    score: float | None
    """`None` if the sample does not count."""
    rationale: str = ""
    details: Mapping[str, Json] = {}
    """Further evidence."""
    fatal: str = ""
    """Why there can be no mean, whatever the other samples say."""


class Mean(NamedTuple):
    """The score of a judge or a jury."""

    value: float | None
    """`None` if there is no mean."""
    reason: str
    """Why there is no mean."""
    evidence: dict[str, Json]
    """The samples."""


async def mean_of(
    panel: Panel,
    question: Question,
    read: Callable[[str], Sample],
    *,
    passes: Callable[[float], bool],
    unread: Sample | None = None,
) -> Mean:
    """Return the mean of the panel's scores for `question`, parsed by `read`.

    A jury agrees if all of its judges' means pass, or none does.  `unread` replaces an answer that
    cannot be parsed; without it, such an answer does not count.
    """
    asking = (_by_one(seat, question, read, unread) for seat in panel.judges)
    by_judge = await asyncio.gather(*asking)
    if len(by_judge) == 1:
        return by_judge[0]
    note_agreement(panel, [None if each.value is None else passes(each.value) for each in by_judge])
    named = zip(names_of(panel), by_judge, strict=True)
    evidence = {"jury": {name: {"score": each.value, **each.evidence} for name, each in named}}
    return _mean([each.value for each in by_judge], [each.reason for each in by_judge], evidence)


async def _by_one(
    seat: Seat, question: Question, read: Callable[[str], Sample], unread: Sample | None
) -> Mean:
    """Return the mean of one judge."""
    drawn = await draw(seat, question, read, range(seat.samples))
    if all(each.value is None for each in drawn):
        await read_again(seat, question, read, drawn)
    return _mean_of_samples(drawn, seat.name, unread)


def _mean_of_samples(drawn: Sequence[Reading[Sample]], judge: str, unread: Sample | None) -> Mean:
    """Return the mean of the samples of one judge."""
    given = [each.value or (None if each.failed else unread) for each in drawn]
    counted = [each for each in given if each and each.score is not None]
    dropped = [each.rationale for each in given if each and each.score is None]
    lost = [each.reason for each, found in zip(drawn, given, strict=True) if found is None]
    evidence: dict[str, Json] = {"samples": [_shown(each) for each in counted]}
    if lost or dropped:
        evidence["unread"] = [*lost, *dropped]
    failed = [each.reason for each in drawn if each.failed]
    fatal = [each.fatal for each in counted if each.fatal]
    if failed or fatal or not counted:
        reason = (*failed, *fatal, *lost, *dropped)[0]
        return Mean(None, f"{judge}: {reason}", evidence)
    return _mean([each.score for each in counted], [], evidence)


def _mean(
    values: Sequence[float | None], reasons: Sequence[str], evidence: dict[str, Json]
) -> Mean:
    """Return the mean of `values`, rounded once; none if a value is missing."""
    known = [each for each in values if each is not None]
    if len(known) < len(values):
        return Mean(None, next(filter(None, reasons)), evidence)
    value = float(mean(known))
    if not math.isfinite(value):
        return Mean(None, "the mean of the scores is not a finite number", evidence)
    return Mean(value, "", evidence)


def _shown(sample: Sample) -> dict[str, Json]:
    """Return a sample as JSON, with non-finite scores as text."""
    score = sample.score
    is_number = score is None or math.isfinite(score)
    rationale = {"rationale": sample.rationale} if sample.rationale else {}
    return {"score": score if is_number else str(score), **rationale, **sample.details}
