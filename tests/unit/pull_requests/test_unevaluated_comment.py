"""Where a run left no report, no comment of ours goes on saying that all is well."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest
from support.concurrent_writers import Talk, Voice

from ci_eval.pull_requests import sticky_comment, unevaluated_comment
from ci_eval.pull_requests.comment_layout import compose
from ci_eval.pull_requests.comment_options import Options
from ci_eval.pull_requests.comment_sections import MAX_SECTIONS, Outcome, Section, read
from ci_eval.pull_requests.run_posting import Place
from ci_eval.pull_requests.sticky_comment import Posted
from ci_eval.reporters.markdown import marker
from ci_eval.runtime.retry import Backoff

OLD, NEW = "a" * 40, "b" * 40
SAID = "> [!WARNING]\n> **Not evaluated:** it was cancelled.\n"
NOTICE = marker("not evaluated: CI")


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sticky_comment, "BACKOFF", Backoff(0.0, 0.0))


def told_by(talk: Talk, suite: str, *jobs: str, run: int = 1, commit: str = OLD) -> None:
    """Begin a comment."""
    every = [Section(suite, job, "passed", f"{job} is well", commit, run) for job in jobs]
    talk.begin(compose(every, 65_536))


def asked(talk: Talk, work: Any) -> Any:
    async def main() -> Any:
        found: Awaitable[Any] = work(Place(Voice(talk), NEW, 2, 1))
        return await found

    return asyncio.run(main())


def tell(talk: Talk) -> Posted:
    found: Posted = asked(
        talk, lambda place: unevaluated_comment.post_notice(place, "CI", SAID, Options("update"))
    )
    return found


def outcomes(suite: str, body: str) -> dict[str, tuple[Outcome, int]]:
    return {each.job: (each.outcome, each.run) for each in read(suite, body)}


def test_where_no_comment_tells_of_a_job_there_is_one_that_says_so() -> None:
    talk = Talk()
    assert tell(talk).status == "created"
    (body,) = talk.shown()
    assert body.startswith(NOTICE)
    assert "**Not evaluated:** it was cancelled." in body


def test_a_whole_matrix_is_told_of_in_one_write() -> None:
    talk = Talk()
    told_by(talk, "shop", *(f"evaluate ({number})" for number in range(MAX_SECTIONS)))
    assert tell(talk).status == "updated"
    assert [each for each in talk.log if each in ("add", "edit")] == ["edit"]
    (body,) = talk.shown()
    assert set(outcomes("shop", body).values()) == {("incomplete", 2)}
    assert len(read("shop", body)) == MAX_SECTIONS
    assert "✅" not in body


def test_each_suite_is_told_in_its_own_comment() -> None:
    talk = Talk()
    told_by(talk, "shop", "a", "b")
    told_by(talk, "bank & co", "c")
    assert tell(talk).status == "updated"
    shop, bank = talk.shown()
    assert outcomes("shop", shop) == {"a": ("incomplete", 2), "b": ("incomplete", 2)}
    assert outcomes("bank & co", bank) == {"c": ("incomplete", 2)}


def test_what_this_run_or_a_newer_one_said_stands() -> None:
    talk = Talk()
    told_by(talk, "shop", "a", run=2, commit=NEW)
    told_by(talk, "bank", "b", run=3, commit=NEW)
    assert tell(talk).status == "created"
    assert [outcomes(*each) for each in zip(("shop", "bank"), talk.shown(), strict=False)] == [
        {"a": ("passed", 2)},
        {"b": ("passed", 3)},
    ]
    assert talk.shown()[2].startswith(NOTICE)


def test_what_is_out_of_sight_does_not_stand_for_what_is_to_be_seen() -> None:
    talk = Talk()
    told_by(talk, "shop", "a")
    talk.lines[0].folded = "OUTDATED"
    assert tell(talk).status == "created"
    assert "is well" in talk.lines[0].bodies[-1]
    assert talk.shown()[0].startswith(NOTICE)


def test_a_suite_whose_name_is_too_long_for_its_comment_is_told_of_there_too() -> None:
    talk = Talk()
    told_by(talk, "🙂" * 100, "a")
    assert tell(talk).status == "updated"
    (body,) = talk.shown()
    assert outcomes("🙂" * 100, body) == {"a": ("incomplete", 2)}


def test_said_twice_it_is_one_comment_and_the_same() -> None:
    talk = Talk()
    tell(talk)
    assert tell(talk).status == "unchanged"
    assert len(talk.lines) == 1


def test_only_the_comment_of_that_workflow_is_taken_away() -> None:
    talk = Talk()
    told_by(talk, "shop", "a")
    told_by(talk, "not evaluated: Other", "")
    tell(talk)
    told_by(talk, "not evaluated: CI", "")
    asked(talk, lambda place: unevaluated_comment.clear(place.thread, "CI"))
    assert [each.partition("\n")[0] for each in talk.shown()] == [
        marker("shop"),
        marker("not evaluated: Other"),
    ]
