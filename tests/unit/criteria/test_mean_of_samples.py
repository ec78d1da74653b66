"""The mean of a judge's samples, and of a jury's means."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_eval.criteria._mean_of_samples import Mean, Sample, mean_of
from ci_eval.records.questions import Question, Reading, UnreadableError

T = TypeVar("T")
SILENCE = None
"""An answer that never came."""
QUESTION = Question("agentflow/llm_judge", "", "?", {})


@dataclass
class Seat:
    """A judge that gives these answers, the same ones again where it is asked afresh or not."""

    answers: tuple[str | None, ...]
    name: str = "m"
    kept: bool = False
    afresh: tuple[str, ...] = ()
    asked: list[tuple[int, bool]] = field(default_factory=list)

    @property
    def samples(self) -> int:
        return len(self.answers)

    async def ask(
        self, question: Question, read: Callable[[str], T], *, fresh: bool = False
    ) -> Reading[T]:
        self.asked.append((question.sample, fresh))
        said = (self.afresh if fresh else self.answers)[question.sample]
        await asyncio.sleep(0)
        if said is None:
            return Reading(None, "the judge is down", failed=True)
        try:
            return Reading(read(said), cached=self.kept and not fresh)
        except UnreadableError as exc:
            return Reading(None, str(exc), cached=self.kept and not fresh)


@dataclass
class Panel:
    judges: tuple[Seat, ...]
    agreed: list[float] = field(default_factory=list)

    def question(self, prompt: str, schema: Any, **data: Any) -> Question:
        raise NotImplementedError

    def note_agreement(self, share: float) -> None:
        self.agreed.append(share)


def number(text: str) -> Sample:
    if text == "dropped":
        return Sample(None, "it does not count")
    if text == "fatal":
        return Sample(1.0, fatal="it spoils everything")
    try:
        return Sample(float(text), f"because of {text}", {"more": [text]})
    except ValueError:
        raise UnreadableError("it holds no number") from None


def mean(*seats: Seat, unread: Sample | None = None) -> Mean:
    panel = Panel(seats)
    return asyncio.run(
        mean_of(panel, QUESTION, number, passes=lambda value: value >= 0.5, unread=unread)
    )


def test_every_sample_is_drawn_and_the_mean_is_theirs() -> None:
    seat = Seat(("1", "1", "0.4"))
    found = mean(seat)

    assert found.value == pytest.approx(0.8)
    assert seat.asked == [(0, False), (1, False), (2, False)]
    assert found.evidence["samples"][2] == {
        "score": 0.4,
        "rationale": "because of 0.4",
        "more": ["0.4"],
    }


def test_samples_are_drawn_at_once() -> None:
    inside, most = 0, 0

    class Counting(Seat):
        async def ask(self, *args: Any, **more: Any) -> Any:
            nonlocal inside, most
            inside += 1
            most = max(most, inside)
            found = await super().ask(*args, **more)
            inside -= 1
            return found

    mean(Counting(("1",) * 7))

    assert most == 7


def test_what_cannot_be_read_does_not_count() -> None:
    found = mean(Seat(("0.2", "well", "0.4")))

    assert found.value == pytest.approx(0.3)
    assert found.evidence["unread"] == ["it holds no number"]


def test_without_one_good_answer_there_is_no_mean() -> None:
    found = mean(Seat(("well", "hm")))

    assert found.value is None
    assert found.reason == "m: it holds no number"


def test_without_one_answer_nobody_knows_the_mean() -> None:
    found = mean(Seat(("1", SILENCE, "1")))

    assert found.value is None
    assert found.reason == "m: the judge is down"


def test_an_answer_that_was_never_given_is_no_unread_one() -> None:
    found = mean(Seat(("1", SILENCE)), unread=Sample(0.5))

    assert found.value is None


def test_what_stands_for_an_unread_answer_counts() -> None:
    assert mean(Seat(("1", "well")), unread=Sample(0.5)).value == 0.75


def test_a_sample_may_count_for_nothing_or_spoil_all() -> None:
    left_out = mean(Seat(("0.4", "dropped")))

    assert (left_out.value, left_out.evidence["unread"]) == (0.4, ["it does not count"])
    assert mean(Seat(("0.4", "fatal"))).reason == "m: it spoils everything"
    assert mean(Seat(("dropped",))).reason == "m: it does not count"


def test_unread_answers_that_were_kept_are_asked_for_afresh_where_no_other_is_good() -> None:
    helped = Seat(("well", "hm"), kept=True, afresh=("1", "0.5"))
    not_needed = Seat(("well", "0.5"), kept=True, afresh=("1", "1"))

    assert mean(helped).value == 0.75
    assert helped.asked[2:] == [(0, True), (1, True)]
    assert mean(not_needed).value == 0.5
    assert len(not_needed.asked) == 2


@pytest.mark.parametrize("score", ["nan", "inf"])
def test_a_mean_that_is_no_number_is_none(score: str) -> None:
    found = mean(Seat((score, "1")))

    assert found.value is None
    assert found.evidence["samples"][0]["score"] == score


def test_of_a_jury_the_mean_of_the_means_counts() -> None:
    found = mean(Seat(("1", "1", "0.4"), "a"), Seat(("0.2",), "b"))

    assert found.value == pytest.approx(0.5)
    assert {name: each["score"] for name, each in found.evidence["jury"].items()} == {
        "a": pytest.approx(0.8),
        "b": 0.2,
    }


def test_two_judges_of_one_name_are_told_apart() -> None:
    found = mean(Seat(("1",), "a"), Seat(("0",), "a"))

    assert list(found.evidence["jury"]) == ["a #1", "a #2"]


def test_a_jury_without_one_of_its_means_has_none() -> None:
    found = mean(Seat(("1",), "a"), Seat((SILENCE,), "b"))

    assert (found.value, found.reason) == (None, "b: the judge is down")


@pytest.mark.parametrize(
    ("scores", "agreed"),
    [
        (("0.9", "0.6"), [1.0]),
        (("0.5", "0.4"), [0.0]),
        (("0.9", "0.6", "0.1"), [1 / 3]),
        (("0.9", None, "0.1"), [0.0]),
        (("0.9", None), []),
    ],
)
def test_a_jury_agrees_where_its_means_all_pass_or_all_do_not(
    scores: tuple[str | None, ...], agreed: list[float]
) -> None:
    panel = Panel(tuple(Seat((score,)) for score in scores))
    asyncio.run(mean_of(panel, QUESTION, number, passes=lambda value: value >= 0.5))

    assert panel.agreed == pytest.approx(agreed)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_a_mean_lies_between_its_samples(scores: list[float]) -> None:
    value = mean(Seat(tuple(map(repr, scores)))).value

    assert value is not None
    assert min(scores) <= value <= max(scores)
    assert value == pytest.approx(fmean(scores))


@given(st.floats(0, 1), st.integers(1, 9), st.integers(1, 3))
def test_where_all_say_the_same_that_is_the_mean(score: float, samples: int, judges: int) -> None:
    assert mean(*(Seat((repr(score),) * samples) for _ in range(judges))).value == score
