"""Stopping early never changes a verdict, and no sample is drawn in vain: all votes there are."""

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest

from ci_eval.criteria._majority_of_samples import Verdict, Vote, majority
from ci_eval.records.questions import Question, Reading

YES, NO = Vote(yes=True), Vote(yes=False)
BAD = Reading[Any](None, "it holds no verdict")
FAILED = Reading[Any](None, "the judge is down", failed=True)
OUTCOMES = ("yes", "no", "bad", "failed")
QUESTION = Question("ci/c", "Judge.", "What of this?", {})


@dataclass
class Seat:
    """A judge whose samples are known before they are drawn."""

    readings: Sequence[Reading[Any]]
    name: str = "m"
    anew: Reading[Any] | None = None
    drawn: int = 0
    afresh: list[int] = field(default_factory=list)

    @property
    def samples(self) -> int:
        return len(self.readings)

    async def ask(self, question: Question, read: Any, *, fresh: bool = False) -> Reading[Any]:
        if fresh:
            self.afresh.append(question.sample)
            assert self.anew
            return self.anew
        self.drawn += 1
        return self.readings[question.sample]


@dataclass
class Panel:
    judges: Sequence[Seat]
    agreements: list[float] = field(default_factory=list)

    def note_agreement(self, share: float) -> None:
        self.agreements.append(share)


def reading(**votes: Vote) -> Reading[Any]:
    return Reading(votes)


ONE = {"yes": reading(a=YES), "no": reading(a=NO), "bad": BAD, "failed": FAILED}


async def verdicts(panel: Panel, *labels: str) -> dict[str, Verdict]:
    return await majority(panel, QUESTION, labels, lambda text: {})  # type: ignore[arg-type]  # never called


def judged(panel: Panel, *labels: str) -> dict[str, Verdict]:
    return asyncio.run(verdicts(panel, *labels))


# --- The rule, told anew ----------------------------------------------------------------------


def with_all(outcomes: Sequence[str]) -> bool | None:
    """Return the majority of all samples: what a failed one would have said must not matter."""
    possible = {
        None if not yes + no else yes > no
        for lost in itertools.product(("yes", "no"), repeat=outcomes.count("failed"))
        for yes in (outcomes.count("yes") + lost.count("yes"),)
        for no in (outcomes.count("no") + lost.count("no"),)
    }
    answered = outcomes.count("yes") + outcomes.count("no")
    return possible.pop() if len(possible) == 1 and answered else None


@cache
def possible(outcomes: tuple[str, ...], left: int) -> frozenset[bool | None]:
    """Return every verdict that can still come, with so many samples to draw."""
    if not left:
        return frozenset({with_all(outcomes)})
    ends = (possible(tuple(sorted((*outcomes, each))), left - 1) for each in OUTCOMES)
    return frozenset().union(*ends)


def least(outcomes: tuple[str, ...]) -> int:
    """Return after how many samples, drawn one by one, the verdict is certain."""
    return next(
        drawn
        for drawn in range(len(outcomes) + 1)
        if len(possible(tuple(sorted(outcomes[:drawn])), len(outcomes) - drawn)) == 1
    )


# --- One label, two labels --------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("samples", range(1, 7))
def test_the_verdict_is_that_of_all_samples_and_no_draw_is_in_vain(samples: int):
    async def work() -> list[Any]:
        wrong = []
        for outcomes in itertools.product(OUTCOMES, repeat=samples):
            seat = Seat([ONE[each] for each in outcomes])
            found = (await verdicts(Panel([seat]), "a"))["a"]
            sound = seat.drawn == least(outcomes) or (
                # Several are drawn at once, and one that fails may make the others useless.
                found.yes is None and "failed" in outcomes and seat.drawn > least(outcomes)
            )
            if found.yes is not with_all(outcomes) or not sound:
                wrong.append((outcomes, found, seat.drawn))
        return wrong

    assert asyncio.run(work()) == []


VOTES = {"yes": YES, "no": NO}
TWO = [
    (of_a, of_b, Reading({n: VOTES[o] for n, o in (("a", of_a), ("b", of_b)) if o in VOTES}))
    for of_a, of_b in itertools.product(("yes", "no", "bad"), repeat=2)
]
TWO += [("bad", "bad", BAD), ("failed", "failed", FAILED)]


@pytest.mark.parametrize("samples", [1, 2, 3, pytest.param(4, marks=pytest.mark.slow)])
def test_of_two_labels_each_has_its_verdict_and_the_slower_one_decides_when_to_stop(samples: int):
    async def work() -> list[Any]:
        wrong = []
        for outcomes in itertools.product(TWO, repeat=samples):
            seat = Seat([each[2] for each in outcomes])
            found = await verdicts(Panel([seat]), "a", "b")
            by_label = [tuple(each[label] for each in outcomes) for label in (0, 1)]
            expected = [with_all(each) for each in by_label]
            draws = max(map(least, by_label))
            sound = seat.drawn == draws or (None in expected and seat.drawn > draws)
            if [found["a"].yes, found["b"].yes] != expected or not sound:
                wrong.append((outcomes, found, seat.drawn))
        return wrong

    assert asyncio.run(work()) == []


def test_five_samples_of_a_judge_that_agrees_nine_times_in_ten_take_three_and_a_third():
    """0.9³ and 0.1³ end after 3; of the others those with one way 3 : 1 after 4, ties after 5."""

    async def work() -> float:
        expected = 0.0
        for outcomes in itertools.product(("yes", "no"), repeat=5):
            seat = Seat([ONE[each] for each in outcomes])
            await verdicts(Panel([seat]), "a")
            weight = 0.9 ** outcomes.count("yes") * 0.1 ** outcomes.count("no")
            expected += weight * seat.drawn
        return expected

    three = 0.9**3 + 0.1**3
    four = 3 * 0.9**3 * 0.1 + 3 * 0.1**3 * 0.9
    assert asyncio.run(work()) == pytest.approx(3 * three + 4 * four + 5 * (1 - three - four))
    assert asyncio.run(work()) == pytest.approx(3.3186)


# --- What is told -----------------------------------------------------------------------------


def test_the_rationale_is_the_first_one_of_the_winning_side():
    said = [
        reading(a=Vote(yes=False, rationale="no!")),
        reading(a=Vote(yes=True, rationale="first")),
        reading(a=Vote(yes=True, rationale="second")),
    ]
    found = judged(Panel([Seat(said)]), "a")["a"]

    assert (found.yes, found.rationale) == (True, "first")
    assert found.evidence == {"votes": {"yes": 2, "no": 1}, "drawn": 3}


def test_without_a_verdict_the_first_reason_is_told():
    found = judged(Panel([Seat([BAD, FAILED])]), "a")["a"]

    assert (found.yes, found.reason) == (None, "m: it holds no verdict")
    assert found.evidence["unread"] == ["it holds no verdict", "the judge is down"]


def test_kept_answers_that_nobody_could_read_are_asked_for_anew_where_they_are_needed():
    kept = BAD._replace(cached=True)
    needed = Seat([kept], anew=reading(a=YES))
    spare = Seat([reading(a=YES), kept, reading(a=YES), reading(a=YES)], anew=reading(a=NO))

    assert judged(Panel([needed]), "a")["a"].yes is True
    assert judged(Panel([spare]), "a")["a"].yes is True
    assert (needed.afresh, spare.afresh) == ([0], [])


# --- A jury -----------------------------------------------------------------------------------


def jury(*said: str, samples: int = 1) -> Panel:
    return Panel([Seat([ONE[each]] * samples, name=f"m{n}") for n, each in enumerate(said)])


@pytest.mark.parametrize("said", list(itertools.product(OUTCOMES, repeat=3)))
def test_of_a_jury_the_judges_verdicts_are_the_votes(said: tuple[str, ...]):
    """A judge without a verdict, for whatever reason, might have voted either way."""
    as_votes = tuple("failed" if each == "bad" else each for each in said)

    assert judged(jury(*said), "a")["a"].yes is with_all(as_votes)


def test_the_agreement_of_a_jury_is_the_share_of_its_pairs():
    panel = jury("yes", "yes", "no")
    judged(panel, "a")
    assert panel.agreements == [pytest.approx(1 / 3)]

    alone = jury("yes", "bad", "failed")
    judged(alone, "a")
    assert alone.agreements == []


def test_a_model_that_judges_twice_is_told_apart_in_the_evidence():
    panel = Panel([Seat([ONE["yes"]]), Seat([ONE["no"]])])

    assert list(judged(panel, "a")["a"].evidence["jury"]) == ["m #1", "m #2"]
