"""Yes or no by majority of a judge's samples, with as few samples as possible.

A sample can vote on several labels at once.  A label is yes if more samples say yes than no, so a
tie is no; an answer that cannot be parsed does not vote.  A sample without any answer could have
voted either way, so there is a verdict only if the other votes decide regardless of it.

The first batch is the smallest that can decide; as soon as the remaining samples cannot change any
label, they are not drawn.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ci_eval.criteria._invocation_turns import Turn
from ci_eval.criteria._jury import draw, names_of, note_agreement, read_again
from ci_eval.plugins.points import Panel
from ci_eval.records.cases import Json
from ci_eval.records.questions import Question, Reading, Seat


class Vote(NamedTuple):
    """The vote of one sample on one label."""

    yes: bool
    rationale: str = ""


Votes = Mapping[str, Vote]
"""The votes of one sample; a label it omits gets no vote."""


class Verdict(NamedTuple):
    """The verdict of a panel on one label."""

    yes: bool | None
    """`None` if the votes cannot decide."""
    reason: str
    """Why the votes cannot decide."""
    rationale: str
    """Rationale of the first sample on the winning side."""
    evidence: dict[str, Json]
    """The distribution of the votes."""


@dataclass(frozen=True)
class Tally:
    """The votes on one label, including the open ones."""

    yes: int
    no: int
    open: int
    """Samples whose vote is unknown: not drawn yet, or without an answer."""

    @property
    def decided(self) -> bool | None:
        """The majority, whatever the open samples say; `None` if it depends on them."""
        if self.yes > self.no + self.open:
            return True
        if self.no and self.no >= self.yes + self.open:
            return False
        return None

    def after(self, *, yes: int = 0, no: int = 0) -> "Tally":
        """Return the tally after some of the open samples vote `yes` or `no`."""
        return Tally(self.yes + yes, self.no + no, self.open - yes - no)


async def judge_validity(panel: Panel, question: Question, read: Callable[[str], Votes]) -> Turn:
    """Return 1 if the votes that `read` parses say that a turn is `valid`, else 0."""
    verdict = (await majority(panel, question, ["valid"], read))["valid"]
    value = None if verdict.yes is None else float(verdict.yes)
    return Turn(value, {"rationale": verdict.rationale, **verdict.evidence}, verdict.reason)


async def majority(
    panel: Panel, question: Question, labels: Sequence[str], read: Callable[[str], Votes]
) -> dict[str, Verdict]:
    """Return the verdict on each label; `read` parses the votes in an answer.

    In a jury, each judge's verdict is one vote.
    """
    asking = (_by_one(seat, question, labels, read) for seat in panel.judges)
    by_judge = await asyncio.gather(*asking)
    if len(panel.judges) == 1:
        return by_judge[0]
    return {label: _by_jury(panel, [each[label] for each in by_judge]) for label in labels}


async def _by_one(
    seat: Seat, question: Question, labels: Sequence[str], read: Callable[[str], Votes]
) -> dict[str, Verdict]:
    """Return the verdicts of one judge."""
    drawn: list[Reading[Votes]] = []
    while more := _needed(drawn, labels, left=seat.samples - len(drawn)):
        drawn += await draw(seat, question, read, range(len(drawn), len(drawn) + more))
    if any(tally(drawn, label).decided is None for label in labels):
        await read_again(seat, question, read, drawn)
    return {label: _verdict(drawn, label, seat) for label in labels}


def _needed(drawn: Sequence[Reading[Votes]], labels: Sequence[str], *, left: int) -> int:
    """Return the minimum number of further samples after which every label could be decided."""
    return max((_votes_needed(tally(drawn, label, left=left), left) for label in labels), default=0)


def _votes_needed(now: Tally, left: int) -> int:
    """Return the minimum number of further votes that could decide `now`; 0 if none can."""
    if now.decided is not None:
        return 0
    for more in range(1, left + 1):
        if now.after(yes=more).decided is not None or now.after(no=more).decided is not None:
            return more
    return 0


def tally(drawn: Sequence[Reading[Votes]], label: str, *, left: int = 0) -> Tally:
    """Count the votes on `label`, with `left` samples not drawn."""
    votes = [each.value[label].yes for each in drawn if each.value and label in each.value]
    lost = sum(each.failed for each in drawn)
    return Tally(votes.count(True), votes.count(False), lost + left)


def _verdict(drawn: Sequence[Reading[Votes]], label: str, seat: Seat) -> Verdict:
    found = tally(drawn, label, left=seat.samples - len(drawn))
    given = [each.value[label] for each in drawn if each.value and label in each.value]
    lost: list[Json] = [each.reason for each in drawn if each.value is None]
    reason = lost[0] if lost else "no answer mentions it"
    unread = {"unread": lost} if lost else {}
    return _decision(found, given, f"{seat.name}: {reason}", {"drawn": len(drawn), **unread})


def _by_jury(panel: Panel, verdicts: Sequence[Verdict]) -> Verdict:
    """Return the verdict of a jury, and record its agreement."""
    said = [each.yes for each in verdicts]
    found = Tally(said.count(True), said.count(False), said.count(None))
    note_agreement(panel, said)
    jury = {
        name: {"yes": each.yes, "rationale": each.rationale, **each.evidence}
        for name, each in zip(names_of(panel), verdicts, strict=True)
    }
    reason = next((each.reason for each in verdicts if each.reason), "the jury is divided")
    return _decision(found, verdicts, reason, {"jury": jury})


def _decision(
    found: Tally, votes: Sequence[Vote | Verdict], reason: str, evidence: dict[str, Json]
) -> Verdict:
    """Return the majority of `votes`; `reason` is used if they cannot decide."""
    evidence = {"votes": {"yes": found.yes, "no": found.no}, **evidence}
    if found.decided is None:
        return Verdict(None, reason, "", evidence)
    rationale = next(each.rationale for each in votes if each.yes is found.decided)
    return Verdict(found.decided, "", rationale, evidence)
