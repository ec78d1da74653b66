"""One comment for each suite, whoever writes at the same time and whatever goes wrong."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.concurrent_writers import Talk, Turns, Voice

from ci_eval.pull_requests import sticky_comment as sticky
from ci_eval.pull_requests.comment_layout import compose
from ci_eval.pull_requests.comment_options import Mode, Options
from ci_eval.pull_requests.comment_sections import Section, read
from ci_eval.pull_requests.comment_thread import Comment, PostingError
from ci_eval.pull_requests.sticky_comment import Posted

OLD, NEW = "a" * 40, "b" * 40


def section(job: str = "evaluate", run: int = 1, commit: str = NEW, **more: Any) -> Section:
    return Section("shop", job, "passed", f"{job} in run {run}", commit, run, **more)


def posted(
    talk: Talk, *sections: Section, mode: Mode = "update", wanted: bool = True
) -> list[Posted]:
    """Post one after the other."""

    async def main() -> list[Posted]:
        voice = Voice(talk)
        return [
            await sticky.post(voice, [each], Options(mode=mode), wanted=wanted, pause=voice.pause)
            for each in sections
        ]

    return asyncio.run(main())


def jobs(body: str) -> dict[str, int]:
    """Return the jobs of a body and their runs."""
    return {each.job: each.run for each in read("shop", body)}


def statuses(found: Sequence[Posted]) -> list[str]:
    return [each.status for each in found]


# --- One writer ---------------------------------------------------------------------------------


def test_the_first_run_begins_a_comment_and_the_next_edits_it() -> None:
    talk = Talk()
    found = posted(talk, section(run=1), section(run=2))
    assert statuses(found) == ["created", "updated"]
    assert [jobs(each) for each in talk.shown()] == [{"evaluate": 2}]
    assert {each.url for each in found} == {"https://example.com/1"}


def test_the_same_body_is_not_sent_again() -> None:
    talk = Talk()
    posted(talk, section())
    talk.log.clear()
    assert statuses(posted(talk, section())) == ["unchanged"]
    assert talk.log == ["own"]


def test_the_same_body_with_other_ends_of_lines_is_not_sent_again() -> None:
    talk = Talk()
    posted(talk, section())
    talk.lines[0].bodies.append(talk.lines[0].bodies[-1].replace("\n", "\r\n") + "\r\n")
    assert statuses(posted(talk, section())) == ["unchanged"]


def test_no_comment_is_begun_where_none_is_wanted_but_one_that_is_there_is_kept_up() -> None:
    talk = Talk()
    assert statuses(posted(talk, section(), wanted=False)) == ["none"]
    assert talk.shown() == []
    posted(talk, section(run=1))
    assert statuses(posted(talk, section(run=2), wanted=False)) == ["updated"]


@pytest.mark.parametrize("mode", ["recreate", "minimize"])
def test_in_no_mode_a_new_comment_is_begun_that_is_not_wanted(mode: Mode) -> None:
    talk = Talk()
    posted(talk, section(run=1, commit=OLD))
    posted(talk, section(run=2), mode=mode, wanted=False)
    assert [each.id for each in talk.lines] == ["1"]
    assert jobs(*talk.shown()) == {"evaluate": 2}


@pytest.mark.parametrize("mode", ["recreate", "minimize"])
def test_where_none_is_wanted_it_is_the_last_that_is_kept_up(mode: Mode) -> None:
    talk = Talk()
    for job in ("a", "b"):
        talk.begin(compose([section(job, 1, OLD)], 65_536))
    (found,) = posted(talk, section("c", 2), mode=mode, wanted=False)
    assert found.url == "https://example.com/2"
    assert jobs(*talk.shown()) == {"a": 1, "b": 1, "c": 2}


def test_what_finishes_late_overwrites_nothing_newer() -> None:
    talk = Talk()
    found = posted(
        talk,
        section(run=2, attempt=2),
        section(run=1, commit=OLD, attempt=7),
        section(run=2, attempt=1),
    )
    assert statuses(found) == ["created", "unchanged", "unchanged"]


def test_a_run_by_hand_which_has_no_number_is_the_newest() -> None:
    talk = Talk()
    posted(talk, section(run=7, commit=OLD), section(run=0))
    (found,) = read("shop", talk.shown()[0])
    assert (found.commit, found.run) == (NEW, 7)


def test_a_comment_that_was_edited_by_hand_is_written_anew() -> None:
    talk = Talk()
    posted(talk, section("a"), section("b"))
    talk.lines[0].bodies.append(talk.shown()[0].replace("a in run 1", "a in run one"))
    posted(talk, section("c"))
    assert jobs(*talk.shown()) == {"a": 1, "b": 1, "c": 1}  # from what it said before


@pytest.mark.parametrize(("mode", "kept"), [("recreate", []), ("minimize", ["OUTDATED"])])
def test_the_first_job_of_a_new_commit_begins_a_comment_and_the_others_edit_it(
    mode: Mode, kept: list[str]
) -> None:
    talk = Talk()
    posted(talk, section("a", 1, OLD), section("b", 1, OLD), mode=mode)
    talk.log.clear()
    found = posted(talk, section("a", 2), section("b", 2), mode=mode)
    assert statuses(found) == ["created", "updated"]
    assert [each.folded for each in talk.lines if each.folded] == kept
    assert [jobs(each) for each in talk.shown()] == [{"a": 2, "b": 2}]
    writes = [each for each in talk.log if each not in ("own", "earlier")]
    assert writes == ["add", "retire" if kept else "remove", "edit"]


@pytest.mark.parametrize("mode", ["recreate", "minimize"])
def test_a_new_comment_tells_what_is_not_evaluated_yet(mode: Mode) -> None:
    talk = Talk()
    posted(talk, section("a", 1, OLD), section("b", 1, OLD), section("a", 2), mode=mode)
    assert jobs(*talk.shown()) == {"a": 2, "b": 1}
    assert "<code>b</code> is not evaluated yet at <code>bbbbbbb</code>" in talk.shown()[0]


def test_of_several_comments_the_oldest_is_kept_with_what_the_others_say() -> None:
    talk = Talk()
    for job in ("a", "b", "c"):
        talk.begin(compose([section(job)], 65_536))
    found = posted(talk, section("d"))
    assert jobs(*talk.shown()) == {"a": 1, "b": 1, "c": 1, "d": 1}
    assert [each.folded for each in talk.lines] == ["", "DUPLICATE", "DUPLICATE"]
    assert found[0].url == "https://example.com/1"


@pytest.mark.parametrize("mode", ["recreate", "minimize"])
def test_of_several_comments_on_the_newest_commit_the_oldest_is_kept_in_every_mode(
    mode: Mode,
) -> None:
    talk = Talk()
    for job in ("a", "b"):
        talk.begin(compose([section(job)], 65_536))
    posted(talk, section("c"), mode=mode)
    assert [each.folded for each in talk.lines] == ["", "DUPLICATE"]
    assert jobs(*talk.shown()) == {"a": 1, "b": 1, "c": 1}


def test_the_comment_of_another_suite_is_left_alone() -> None:
    talk = Talk()
    other = compose([replace(section("a"), suite="shop 2")], 65_536)
    talk.begin(other)
    posted(talk, section("b"), section("b", 2))
    assert talk.lines[0].bodies == [other]
    assert [jobs(each) for each in talk.shown()] == [{}, {"b": 2}]


def test_several_sections_are_one_write() -> None:
    async def main(talk: Talk) -> Posted:
        voice = Voice(talk)
        both = [section("a"), section("b")]
        return await sticky.post(voice, both, Options("update"), wanted=True, pause=voice.pause)

    talk = Talk()
    assert asyncio.run(main(talk)).status == "created"
    assert [jobs(each) for each in talk.shown()] == [{"a": 1, "b": 1}]
    assert talk.log == ["own", "add", "own"]
    assert asyncio.run(main(talk)).status == "unchanged"


def test_what_was_put_out_of_sight_is_left_alone() -> None:
    talk = Talk()
    talk.begin(compose([section("a")], 65_536)).folded = "DUPLICATE"
    posted(talk, section("b"))
    assert [jobs(each) for each in talk.shown()] == [{"b": 1}]


# --- What goes wrong ----------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["l", "c"])
def test_a_comment_of_which_nobody_knows_is_looked_for_before_it_is_sent_again(fault: str) -> None:
    talk = Talk()
    turns = Turns(lambda _: 0, faults=fault)
    voice = Voice(talk, turns.of(0))
    coroutine = sticky.post(voice, [section()], Options("update"), wanted=True, pause=voice.pause)
    (found,) = asyncio.run(turns.run([coroutine]))
    assert found == Posted("created", "https://example.com/1")
    assert len(talk.lines) == 1
    assert talk.log.count("add") == (2 if fault == "l" else 1)


def test_what_nobody_knows_is_not_said_to_be_written() -> None:
    class Broken(Voice):
        async def own(self) -> list[Comment]:
            if self.talk.log:
                raise PostingError("it is down")
            return await super().own()

        async def add(self, body: str) -> Comment:
            del body
            raise PostingError("the connection broke off", is_unsure=True)

    voice = Broken(Talk())
    with pytest.raises(PostingError, match="it is down"):
        asyncio.run(
            sticky.post(voice, [section()], Options("update"), wanted=True, pause=voice.pause)
        )


def test_where_no_write_gets_through_the_reason_is_told() -> None:
    voice = Lost(Talk())
    writing = sticky.post(voice, [section()], Options("update"), wanted=True, pause=voice.pause)
    with pytest.raises(PostingError, match="the connection broke off") as caught:
        asyncio.run(writing)
    assert caught.value.is_unsure


def test_of_what_a_comment_said_before_the_newest_counts() -> None:
    talk = Talk()
    mine = [section("a", 2, attempt=3)]
    same = {"run": 2, "attempt": 3}
    first = compose([section("b", **same)], 65_536)
    second = compose([replace(section("b", **same), outcome="failed")], 65_536)

    class Overwritten(Voice):
        """Others write twice of a job, and then somebody who knows nothing of it."""

        async def edit(self, comment: Comment, body: str) -> None:
            await super().edit(comment, body)
            if self.talk.log.count("edit") == 1:
                self._line(comment).bodies += [first, second, compose([section("c")], 65_536)]

    talk.begin(compose([section("x")], 65_536))
    voice = Overwritten(talk)
    asyncio.run(sticky.post(voice, mine, Options("update"), wanted=True, pause=voice.pause))
    outcomes = {each.job: each.outcome for each in read("shop", talk.shown()[0])}
    assert outcomes == {"a": "passed", "b": "failed", "c": "passed", "x": "passed"}


def test_what_was_written_is_said_to_be_even_where_it_cannot_be_looked_at() -> None:
    class Silent(Voice):
        async def own(self) -> list[Comment]:
            if "add" in self.talk.log:
                raise PostingError("it is down")
            return await super().own()

    voice = Silent(Talk())
    found = asyncio.run(
        sticky.post(voice, [section()], Options("update"), wanted=True, pause=voice.pause)
    )
    assert found == Posted("created", "https://example.com/1", "it is down")


class Refusing(Voice):
    """Lets nobody write."""

    refused = "add edit"

    async def _turn(self, what: str) -> str:
        if what in self.refused:
            raise PostingError("no", is_refusal=True)
        return await super()._turn(what)


def test_a_refusal_is_told_at_once() -> None:
    talk = Talk()
    with pytest.raises(PostingError) as caught:
        asyncio.run(sticky.post(Refusing(talk), [section()], Options("update"), wanted=True))
    assert caught.value.is_refusal
    assert talk.log == ["own"]


def test_the_comment_stands_where_a_duplicate_cannot_be_put_away() -> None:
    class Untidy(Refusing):
        refused = "retire"

    talk = Talk()
    talk.begin(compose([section("a")], 65_536))
    talk.begin(compose([section("b")], 65_536))
    voice = Untidy(talk)
    found = asyncio.run(
        sticky.post(voice, [section("c")], Options("update"), wanted=True, pause=voice.pause)
    )
    assert found == Posted("updated", "https://example.com/1", "no")
    assert jobs(talk.shown()[0]) == {"a": 1, "b": 1, "c": 1}


def test_what_was_seen_is_written_again_though_nobody_keeps_the_past() -> None:
    class Overwritten(Voice):
        """Another, which read before there was anything, is quicker once."""

        async def edit(self, comment: Comment, body: str) -> None:
            await super().edit(comment, body)
            if self.talk.log.count("edit") == 1:
                self._line(comment).bodies.append(compose([section("c")], 65_536))

    talk = Talk(keeps_history=False)
    talk.begin(compose([section("x")], 65_536))
    voice = Overwritten(talk)
    asyncio.run(
        sticky.post(voice, [section("a")], Options("update"), wanted=True, pause=voice.pause)
    )
    assert jobs(*talk.shown()) == {"a": 1, "c": 1, "x": 1}


def test_it_comes_to_an_end_where_others_overwrite_the_comment_for_ever() -> None:
    class Overwritten(Voice):
        async def edit(self, comment: Comment, body: str) -> None:
            await super().edit(comment, body)
            self._line(comment).bodies.append(compose([section("other")], 65_536))

    talk = Talk()
    talk.begin(compose([section("other")], 65_536))
    voice = Overwritten(talk)
    with pytest.raises(PostingError, match="other jobs keep overwriting the comment on 'shop'"):
        asyncio.run(
            sticky.post(voice, [section()], Options("update"), wanted=True, pause=voice.pause)
        )
    assert talk.log.count("edit") == sticky.MAX_WRITES


def test_the_pauses_grow_and_are_not_the_same_for_two_jobs() -> None:
    async def paused(job: str) -> list[float]:
        found: list[float] = []

        async def pause(seconds: float) -> None:
            found.append(seconds)

        voice = Lost(Talk())
        with pytest.raises(PostingError):
            await sticky.post(voice, [section(job)], Options("update"), wanted=True, pause=pause)
        return found

    first, second = asyncio.run(paused("a")), asyncio.run(paused("b"))
    assert all(x != y for x, y in zip(first, second, strict=True))
    for step, seconds in enumerate(first):
        longest = min(sticky.BACKOFF.longest_s, sticky.BACKOFF.first_s * 2**step)
        assert longest / 2 <= seconds <= longest


class Lost(Voice):
    """Never gets anything through."""

    async def add(self, body: str) -> Comment:
        del body
        raise PostingError("the connection broke off", is_unsure=True)


# --- Many writers -------------------------------------------------------------------------------


async def no_pause(_: float) -> None:
    """Go on: a pause that nobody counts is no place where writers could meet anew."""


def together(
    talk: Talk, turns: Turns, sections: Sequence[Section], mode: Mode, pause: Any = None
) -> list[Any]:
    """Post all at the same time."""

    async def main() -> list[Any]:
        voices = [Voice(talk, turns.of(at)) for at in range(len(sections))]
        return await turns.run(
            [
                sticky.post(voice, [each], Options(mode), wanted=True, pause=pause or voice.pause)
                for voice, each in zip(voices, sections, strict=True)
            ]
        )

    return asyncio.run(main())


def interleavings() -> Iterator[Callable[[Sequence[Any]], int]]:
    """Yield each way to choose between two, one after the other."""
    choices: list[int] = []
    while True:
        made = iter(range(1000))

        def choose(ready: Sequence[Any], made: Iterator[int] = made) -> int:
            if len(ready) == 1:
                return 0
            at = next(made)
            if at == len(choices):
                choices.append(0)
            return choices[at]

        yield choose
        while choices[-1] == 1:
            choices.pop()
        if len(choices) == 1:  # the other is the same with the writers exchanged
            return
        choices[-1] = 1


@pytest.mark.slow
@pytest.mark.parametrize("there", [[], ["x"]])
def test_two_writers_lose_nothing_in_any_order(there: list[str]) -> None:
    expected = {"a": 2, "b": 2} | dict.fromkeys(there, 1)
    for choose in interleavings():
        talk = Talk()
        for job in there:
            talk.begin(compose([section(job, 1, OLD)], 65_536))
        both = [section("a", 2), section("b", 2)]
        found = together(talk, Turns(choose), both, "update", no_pause)
        assert all(isinstance(each, Posted) for each in found), found
        assert [jobs(each) for each in talk.shown()] == [expected]


MODES = st.sampled_from(["update", "recreate", "minimize"])


@pytest.mark.slow
@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(
    mode=MODES,
    count=st.integers(1, 5),
    there=st.integers(0, 3),
    faults=st.text("lc- ", max_size=6),
    random=st.randoms(use_true_random=False),
)
def test_however_writers_meet_one_comment_has_all_their_sections(
    mode: Mode, count: int, there: int, faults: str, random: Any
) -> None:
    talk = Talk()
    for number in range(there):
        talk.begin(compose([section(f"old{number}", 1, OLD)], 65_536))
    turns = Turns(lambda ready: random.randrange(len(ready)), faults)
    sections = [section(f"job{number}", 2) for number in range(count)]
    found = together(talk, turns, sections, mode)
    assert all(isinstance(each, Posted) for each in found), found
    expected = {f"old{number}": 1 for number in range(there)}
    expected |= {each.job: 2 for each in sections}
    assert [jobs(each) for each in talk.shown()] == [expected]


@pytest.mark.slow
@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(count=st.integers(1, 5), random=st.randoms(use_true_random=False))
def test_where_nobody_keeps_the_past_it_is_enough_that_pauses_are_longer_than_requests(
    count: int, random: Any
) -> None:
    def choose(ready: Sequence[tuple[int, str]]) -> int:
        working = [at for at, (_, what) in enumerate(ready) if what != "pause"]
        return random.choice(working or range(len(ready)))

    talk = Talk(keeps_history=False)
    sections = [section(f"job{number}", 2) for number in range(count)]
    found = together(talk, Turns(choose), sections, "update")
    assert all(isinstance(each, Posted) for each in found), found
    assert [jobs(each) for each in talk.shown()] == [{each.job: 2 for each in sections}]


def test_where_nobody_keeps_the_past_a_write_that_took_longer_than_the_pause_loses_a_section() -> (
    None
):
    """What the module says that it cannot do."""
    talk = Talk(keeps_history=False)
    talk.begin(compose([section("old", 1)], 65_536))
    order = iter([1, 0, *[0] * 9, *[1] * 9])
    found = together(
        talk,
        Turns(lambda ready: min(next(order), len(ready) - 1)),
        [section("a", 2), section("b", 2)],
        "update",
    )
    assert statuses(found) == ["updated", "updated"]
    assert "a" not in jobs(*talk.shown())
