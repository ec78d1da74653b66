"""The comment on GitHub, over real connections and with what goes wrong there."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from servers.github import HUMAN, OTHER_BOT, TOKEN, FakeGitHub, Fault, github, refusal
from servers.loopback import CUT, DROPPED, as_json

from ci_eval.forge import github as client
from ci_eval.forge import rest
from ci_eval.forge.github import connected
from ci_eval.pull_requests import sticky_comment
from ci_eval.pull_requests.comment_layout import compose
from ci_eval.pull_requests.comment_options import Mode, Options
from ci_eval.pull_requests.comment_sections import Section, read
from ci_eval.pull_requests.comment_thread import PostingError
from ci_eval.pull_requests.github_thread import GitHubThread
from ci_eval.pull_requests.sticky_comment import Posted
from ci_eval.reporters.markdown import marker
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.retry import Backoff

pytestmark = pytest.mark.processes

NOT_OURS = "Resource not accessible by integration"
EARLIER = "userContentEdits"


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGitHub]:
    monkeypatch.setattr(rest, "BACKOFF", Backoff(0.0, 0.0))
    with github() as found:
        found.add_pull(1)
        yield found


def section(job: str = "evaluate", run: int = 1, commit: str = "a" * 40) -> Section:
    return Section("shop", job, "passed", f"{job} in run {run}", commit, run)


def body(*jobs: str) -> str:
    return compose([section(job) for job in jobs], 65_536)


def jobs(found: str) -> list[str]:
    return [each.job for each in read("shop", found)]


async def no_pause(_: float) -> None:
    """Go on."""


def with_thread(fake: FakeGitHub, work: Callable[[GitHubThread], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        context = RunContext(fake.env, Path(), time.time)
        async with connected(context) as found:
            return await work(GitHubThread(found, 1))

    return asyncio.run(main())


def posted(fake: FakeGitHub, *sections: Section, mode: Mode = "update") -> list[Posted]:
    async def work(thread: GitHubThread) -> list[Posted]:
        return [
            await sticky_comment.post(thread, [each], Options(mode), wanted=True, pause=no_pause)
            for each in sections
        ]

    found: list[Posted] = with_thread(fake, work)
    return found


def refused(fake: FakeGitHub) -> PostingError:
    with pytest.raises(PostingError) as caught:
        posted(fake, section())
    assert TOKEN not in f"{caught.value} {caught.value.hint}"
    return caught.value


# --- One comment --------------------------------------------------------------------------------


def test_a_comment_is_created_then_edited_in_its_place_then_left_as_it_is(fake: FakeGitHub) -> None:
    found = posted(fake, section(run=1), section(run=2), section(run=2))
    assert [each.status for each in found] == ["created", "updated", "unchanged"]
    (comment,) = fake.comments
    assert comment.body.startswith(marker("shop"))
    assert {each.url.rpartition("-")[2] for each in found} == {str(comment.id)}
    assert fake.writes() == ["POST issues/1/comments", f"PATCH issues/comments/{comment.id}"]


@pytest.mark.slow
@pytest.mark.parametrize("has_graphql", [True, False])
def test_ours_is_found_among_three_thousand_comments(fake: FakeGitHub, has_graphql: bool) -> None:
    for number in range(3000):
        fake.add_comment(f"Comment {number}", author=HUMAN)
        if number == 1717:
            ours = fake.add_comment(body("a"))
    if not has_graphql:
        fake.faults.append(no_graphql())
    posted(fake, section("b"))
    assert jobs(ours.body) == ["a", "b"]
    assert len(fake.comments) == 3001
    assert len(fake.requests) <= 4 * 31


def test_who_we_are_is_not_guessed_where_github_is_down(fake: FakeGitHub) -> None:
    ours = fake.add_comment(body("a"))
    fake.faults += [
        no_graphql(),
        Fault("GET", "/user", reply=refusal(502, "Bad Gateway"), times=100),
    ]
    assert refused(fake).is_unsure
    assert jobs(ours.body) == ["a"]
    assert fake.writes() == []


def test_of_two_comments_the_older_is_kept_whatever_their_numbers_look_like(
    fake: FakeGitHub,
) -> None:
    older, newer = fake.add_comment(body("a")), fake.add_comment(body("b"))
    older.id, newer.id = 9_999_999_999, 10_000_000_000
    posted(fake, section("c"))
    assert jobs(older.body) == ["a", "b", "c"]
    assert newer.minimized


@pytest.mark.parametrize("has_graphql", [True, False])
def test_what_was_minimised_is_left_alone_and_another_is_begun(
    fake: FakeGitHub, has_graphql: bool
) -> None:
    old = fake.add_comment(body("a"), minimized="outdated")
    if not has_graphql:
        fake.faults.append(no_graphql())
    assert [each.status for each in posted(fake, section("b"))] == ["created"]
    assert jobs(old.body) == ["a"]


def no_graphql() -> Fault:
    return Fault("POST", "/graphql", reply=refusal(404, "Not Found"), times=1000)


@pytest.mark.parametrize("has_graphql", [True, False])
def test_what_others_quote_is_never_edited(fake: FakeGitHub, has_graphql: bool) -> None:
    if not has_graphql:
        fake.faults.append(no_graphql())
    for author in (HUMAN, OTHER_BOT, None):
        fake.add_comment(body("a"), author=author)
    fake.add_comment(f"> {body('a')}")
    fake.add_comment(body("a").replace("\n", "\n" + "x" * 60_000, 2))
    before = [each.body for each in fake.comments]
    assert posted(fake, section("b"))[0].status == "created"
    assert [each.body for each in fake.comments][:-1] == before
    assert jobs(fake.comments[-1].body) == ["b"]


@pytest.mark.parametrize("has_graphql", [True, False])
def test_of_duplicates_the_oldest_stays_in_sight(fake: FakeGitHub, has_graphql: bool) -> None:
    if not has_graphql:
        fake.faults.append(no_graphql())
    made = [fake.add_comment(body(job)) for job in ("a", "b", "c")]
    (found,) = posted(fake, section("d"))
    assert jobs(made[0].body) == ["a", "b", "c", "d"]
    if has_graphql:
        assert [each.minimized for each in made] == [None, "duplicate", "duplicate"]
    else:
        line = f"*ci-eval continues in [another comment]({found.url}).*"
        assert [each.body for each in made[1:]] == [line, line]
    assert posted(fake, section("d"))[0].status == "unchanged"


@pytest.mark.parametrize(("mode", "left"), [("recreate", [None]), ("minimize", ["outdated", None])])
def test_a_new_commit_gets_a_new_comment(
    fake: FakeGitHub, mode: Mode, left: list[str | None]
) -> None:
    posted(fake, section(run=1), section(run=2, commit="b" * 40), mode=mode)
    assert [each.minimized for each in fake.comments] == left
    assert read("shop", fake.comments[-1].body)[0].run == 2


def test_without_graphql_who_we_are_is_asked_where_a_token_is_told(fake: FakeGitHub) -> None:
    fake.me = HUMAN
    fake.faults.append(no_graphql())
    ours = fake.add_comment(body("a"), author=HUMAN)
    posted(fake, section("b"))
    assert jobs(ours.body) == ["a", "b"]


def test_a_server_that_does_not_know_a_field_is_asked_by_rest(fake: FakeGitHub) -> None:
    error = {
        "message": "Field 'fullDatabaseId' doesn't exist on type 'IssueComment'",
        "extensions": {"code": "undefinedField"},
    }
    fake.faults.append(Fault("POST", "/graphql", reply=as_json({"errors": [error]})))
    ours = fake.add_comment(body("a"))
    posted(fake, section("b"))
    assert jobs(ours.body) == ["a", "b"]


SOMETHING = as_json({"errors": [{"message": "Something went wrong while executing your query."}]})
TIMED_OUT = as_json({"data": None, "errors": [{"type": "SERVICE_UNAVAILABLE", "message": "Later"}]})


@pytest.mark.parametrize("reply", [SOMETHING, TIMED_OUT, refusal(502, "Bad Gateway")])
def test_graphql_that_fails_once_is_asked_again(fake: FakeGitHub, reply: Any) -> None:
    fake.faults.append(Fault("POST", "/graphql", reply=reply, times=2))
    hidden = fake.add_comment(body("old"), minimized="outdated")
    posted(fake, section("b"))
    assert jobs(hidden.body) == ["old"]
    assert [jobs(each) for each in fake.bodies()] == [["b"]]
    # REST was not needed, except to write.
    assert fake.asked("comments") == ["issues/1/comments"]


@pytest.mark.parametrize("reply", [SOMETHING, TIMED_OUT, refusal(502, "Bad Gateway")])
def test_where_graphql_keeps_failing_rest_finds_the_comment(fake: FakeGitHub, reply: Any) -> None:
    fake.faults.append(Fault("POST", "/graphql", reply=reply, times=1000))
    hidden = fake.add_comment(body("old"), minimized="outdated")
    ours = fake.add_comment(body("a"))
    assert [each.status for each in posted(fake, section("b"))] == ["updated"]
    assert (jobs(ours.body), jobs(hidden.body)) == (["a", "b"], ["old"])
    # The first query was tried four times; then GraphQL was left alone.
    assert len([each for each in fake.requests if each.path == "/graphql"]) == 4


def test_duplicates_that_graphql_cannot_minimise_are_edited(fake: FakeGitHub) -> None:
    fake.faults.append(Fault("POST", "minimizeComment", reply=SOMETHING, times=1000))
    made = [fake.add_comment(body(job)) for job in ("a", "b", "c")]
    (found,) = posted(fake, section("d"))
    assert (found.status, found.note) == ("updated", "")
    assert jobs(made[0].body) == ["a", "b", "c", "d"]
    assert [each.body.startswith("*ci-eval continues in ") for each in made] == [False, True, True]


def test_where_earlier_texts_cannot_be_read_the_comment_is_written_all_the_same(
    fake: FakeGitHub,
) -> None:
    fake.faults.append(Fault("POST", EARLIER, reply=SOMETHING, times=1000))
    comment = fake.add_comment(body("a"))
    assert posted(fake, section("b"))[0] == Posted("updated", posted(fake, section("b"))[0].url)
    assert jobs(comment.body) == ["a", "b"]


def test_an_enterprise_server_is_asked_at_its_own_addresses(fake: FakeGitHub) -> None:
    fake.is_enterprise = True
    assert [each.status for each in posted(fake, section(), section(run=2))] == [
        "created",
        "updated",
    ]
    assert {each.path.split("/")[2] for each in fake.requests} == {"v3", "graphql"}


# --- Refusals and limits ------------------------------------------------------------------------


def test_a_token_that_only_reads_is_a_refusal_with_the_permission_that_is_missing(
    fake: FakeGitHub,
) -> None:
    fake.permissions = frozenset({"contents: read", "pull-requests: read", "issues: read"})
    error = refused(fake)
    assert error.is_refusal
    assert not error.is_unsure
    assert NOT_OURS in str(error)
    assert "pull-requests: write" in error.hint
    assert fake.comments == []


def test_a_pull_request_that_is_locked_is_a_refusal(fake: FakeGitHub) -> None:
    fake.pulls[1].locked = True
    error = refused(fake)
    assert error.is_refusal
    assert "locked" in str(error)


@pytest.mark.parametrize("status", [403, 429])
@pytest.mark.parametrize("headers", [{"Retry-After": "0"}, {}])
def test_a_secondary_limit_is_waited_for(
    fake: FakeGitHub, monkeypatch: pytest.MonkeyPatch, status: int, headers: dict[str, str]
) -> None:
    waited: list[float] = []
    really = asyncio.sleep

    async def sleep(seconds: float) -> None:
        waited.append(seconds)
        await really(0)

    monkeypatch.setattr(client.asyncio, "sleep", sleep)
    limit = refusal(status, "You have exceeded a secondary rate limit.", **headers)
    fake.faults.append(Fault("POST", "/comments", reply=limit))
    assert posted(fake, section())[0].status == "created"
    assert len(fake.comments) == 1
    assert (60.0 in waited) is (not headers)


LONG = [{"Retry-After": "9999"}, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "4102444800"}]


@pytest.mark.parametrize("status", [403, 429])
@pytest.mark.parametrize("headers", LONG)
@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_a_limit_that_lasts_too_long_ends_all_attempts_at_once(
    fake: FakeGitHub, status: int, headers: dict[str, str], method: str
) -> None:
    if method == "PATCH":
        fake.add_comment(body("a"))
    limit = refusal(status, "API rate limit exceeded", **headers)
    fake.faults.append(Fault(method, "/comments", reply=limit, times=1000))
    error = refused(fake)
    assert (error.is_refusal, error.is_unsure) == (False, False)
    assert "API rate limit exceeded; try again in " in str(error)
    # One look by GraphQL, and one attempt to write.
    assert len(fake.requests) == 2


def test_a_long_limit_that_is_met_by_graphql_is_not_gone_around(fake: FakeGitHub) -> None:
    limit = refusal(403, "You have exceeded a secondary rate limit.", **LONG[0])
    fake.faults.append(Fault("POST", "/graphql", reply=limit, times=1000))
    assert "try again in 9999 s" in str(refused(fake))
    assert len(fake.requests) == 1


def test_a_long_limit_of_graphql_alone_leaves_rest(fake: FakeGitHub) -> None:
    error = {"type": "RATE_LIMITED", "message": "API rate limit exceeded"}
    limit = as_json({"errors": [error]}, headers=LONG[1])
    fake.faults.append(Fault("POST", "/graphql", reply=limit, times=1000))
    comment = fake.add_comment(body("a"))
    assert posted(fake, section("b"))[0].status == "updated"
    assert jobs(comment.body) == ["a", "b"]
    assert len([each for each in fake.requests if each.path == "/graphql"]) == 1


# --- What nobody knows the fate of --------------------------------------------------------------


@pytest.mark.parametrize("reply", [refusal(502, "Bad Gateway"), DROPPED, CUT])
@pytest.mark.parametrize("is_made", [True, False])
def test_nothing_is_doubled_whether_the_comment_was_made_or_not(
    fake: FakeGitHub, reply: Any, is_made: bool
) -> None:
    fake.faults.append(Fault("POST", "/comments", reply=reply, is_made=is_made))
    (found,) = posted(fake, section())
    assert found.status == "created"
    assert [jobs(each.body) for each in fake.comments] == [["evaluate"]]
    assert found.url.endswith(str(fake.comments[0].id))


@pytest.mark.parametrize("reply", [refusal(502, "Bad Gateway"), DROPPED])
@pytest.mark.parametrize("is_made", [True, False])
def test_an_edit_is_not_sent_twice_blindly(fake: FakeGitHub, reply: Any, is_made: bool) -> None:
    comment = fake.add_comment(body("a"))
    fake.faults.append(Fault("PATCH", reply=reply, is_made=is_made))
    assert posted(fake, section("b"))[0].status == "updated"
    assert jobs(comment.body) == ["a", "b"]
    assert len(fake.writes()) == (1 if is_made else 2)


def test_a_comment_that_is_deleted_meanwhile_is_begun_anew(fake: FakeGitHub) -> None:
    fake.add_comment(body("a"))
    fake.faults.append(Fault("PATCH", before=fake.comments.clear))
    posted(fake, section("b"))
    assert [jobs(each.body) for each in fake.comments] == [["a", "b"]]


# --- Two writers --------------------------------------------------------------------------------


def test_what_another_wrote_between_our_look_and_our_edit_is_joined(fake: FakeGitHub) -> None:
    comment = fake.add_comment(body("a"))
    fake.faults.append(Fault("PATCH", before=lambda: comment.edit(body("a", "other"), fake.tick())))
    posted(fake, section("b"))
    assert jobs(comment.body) == ["a", "b", "other"]


def test_two_that_both_found_no_comment_leave_one(fake: FakeGitHub) -> None:
    fake.faults.append(Fault("POST", "/comments", before=lambda: fake.add_comment(body("other"))))
    posted(fake, section("b"))
    assert [jobs(each) for each in fake.bodies()] == [["b", "other"]]
    assert [each.minimized for each in fake.comments] == [None, "duplicate"]


@pytest.mark.parametrize("has_comment", [True, False])
def test_many_at_the_same_time_lose_nothing_and_double_nothing(
    fake: FakeGitHub, has_comment: bool
) -> None:
    if has_comment:
        fake.add_comment(body("old"))
    names = [f"job{number}" for number in range(4)]
    barrier = threading.Barrier(len(names))
    # All have looked before any of them writes.
    method, part = ("PATCH", "") if has_comment else ("POST", "/comments")
    fake.faults += [Fault(method, part, before=barrier.wait) for _ in names]
    failed: list[BaseException] = []

    def write(name: str) -> None:
        try:
            posted(fake, section(name))
        except BaseException as exc:  # noqa: BLE001  # told by the test
            failed.append(exc)

    threads = [threading.Thread(target=write, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    expected = [*names, "old"] if has_comment else names
    assert [sorted(jobs(each)) for each in fake.bodies()] == [expected]
