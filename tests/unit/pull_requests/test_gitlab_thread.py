"""Notes on a merge request: whose they are, where, and what is refused."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from servers.gitlab import ME, NUMBER, PATH, PROJECT, SHA, TOKEN, FakeGitLab, gitlab, refusal
from servers.loopback import DROPPED, Reply, as_json

from ci_eval.forge import rest
from ci_eval.forge.lineage import from_fork
from ci_eval.pull_requests import sticky_comment as sticky
from ci_eval.pull_requests.comment_options import Options
from ci_eval.pull_requests.comment_sections import Section, read
from ci_eval.pull_requests.comment_thread import Comment, PostingError
from ci_eval.pull_requests.gitlab_thread import GitLabThread, merge_request, opened
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.retry import Backoff

FIRST = "<!-- ci-eval:v1 id=shop -->"
Work = Callable[[GitLabThread], Awaitable[Any]]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGitLab]:
    monkeypatch.setattr(rest, "BACKOFF", Backoff(0.0, 0.0))
    with gitlab() as found:
        yield found


def talking(env: dict[str, str], work: Work, said: list[str] | None = None) -> Any:
    async def main() -> Any:
        context = RunContext(env, Path(), time.time, say=(said if said is not None else []).append)
        async with opened(context) as found:
            assert found is not None
            return await work(found[0])

    return asyncio.run(main())


def own(thread: GitLabThread) -> Awaitable[list[Comment]]:
    return thread.own()


def adding(body: str) -> Work:
    return lambda thread: thread.add(body)


def refused(env: dict[str, str], work: Work) -> PostingError:
    said: list[str] = []
    with pytest.raises(PostingError) as caught:
        talking(env, work, said)
    assert TOKEN not in f"{caught.value} {caught.value.hint} {said}"
    return caught.value


# --- Ours among the notes ---------------------------------------------------------------------


def test_ours_are_those_that_we_wrote_and_that_begin_with_the_line(fake: FakeGitLab) -> None:
    fake.say(f"{FIRST}\nforged by somebody", by=ME + 1)
    first = fake.say(f"{FIRST}\nthe first")
    fake.say(f"> {FIRST}\nquoted")
    fake.say(f"{FIRST} and more\nanother suite")
    fake.say("enabled an automatic merge", system=True)
    second = fake.say(f"{FIRST}\nthe second")
    assert talking(fake.env, own) == [
        Comment(str(each.id), each.body, f"{page}#note_{each.id}")
        for page in [f"https://gitlab.example/{PATH}/-/merge_requests/{NUMBER}"]
        for each in (first, second)
    ]


def test_all_pages_are_read(fake: FakeGitLab) -> None:
    for number in range(3000):
        fake.say(FIRST if number in (0, 1500, 2999) else "talk", by=ME)
    assert [each.id for each in talking(fake.env, own)] == ["100", "1600", "3099"]
    pages = [each.query["page"] for each in fake.requests if "page" in each.query]
    assert pages == [[str(page)] for page in range(1, 31)]


def test_a_server_that_always_has_a_next_page_is_not_followed_for_ever(fake: FakeGitLab) -> None:
    page = Reply(b"[]", headers={"x-next-page": "1"})
    fake.script.extend([Reply(b'{"id": 42}'), page])
    assert talking(fake.env, own) == []


def test_a_note_is_written_edited_and_taken_away(fake: FakeGitLab) -> None:
    async def work(thread: GitLabThread) -> None:
        made = await thread.add(f"{FIRST}\none")
        assert made.url.endswith(f"#note_{made.id}")
        await thread.edit(made, f"{FIRST}\ntwo")
        assert fake.bodies == [f"{FIRST}\ntwo"]
        await thread.remove(made)
        await thread.remove(made)  # it is gone already

    talking(fake.env, work)
    assert fake.bodies == []
    assert [each.method for each in fake.requests] == ["POST", "PUT", "DELETE", "DELETE"]


@pytest.mark.parametrize(
    ("reason", "summary"), [("OUTDATED", "Outdated report"), ("DUPLICATE", "Duplicate report")]
)
def test_what_is_put_out_of_sight_is_folded_and_no_longer_taken_for_ours(
    fake: FakeGitLab, reason: Any, summary: str
) -> None:
    fake.say(f"{FIRST}\nsome report")

    async def work(thread: GitLabThread) -> list[Comment]:
        (there,) = await thread.own()
        await thread.retire(there, reason)
        return await thread.own()

    assert talking(fake.env, work) == []
    folded = f"<details><summary>{summary}</summary>\n\n{FIRST}\nsome report\n\n</details>"
    assert fake.bodies == [f"<!-- ci-eval:retired -->\n{folded}"]


# --- Which merge request ----------------------------------------------------------------------

DETACHED = {
    "CI_COMMIT_SHA": SHA,
    "CI_MERGE_REQUEST_EVENT_TYPE": "detached",
    "CI_MERGE_REQUEST_IID": "7",
    "CI_MERGE_REQUEST_PROJECT_ID": PROJECT,
    "CI_MERGE_REQUEST_PROJECT_URL": "https://gitlab.example/octo/shop",
    "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": PROJECT,
    "CI_PROJECT_ID": PROJECT,
    "CI_PROJECT_URL": "https://gitlab.example/octo/shop",
}
HEAD = "b" * 40
FORK = {
    "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "4712",
    "CI_PROJECT_ID": "4712",
    "CI_PROJECT_URL": "https://gitlab.example/else/shop",
}


@pytest.mark.parametrize(
    ("env", "commit"),
    [
        (DETACHED, SHA),
        (
            {
                **DETACHED,
                "CI_MERGE_REQUEST_EVENT_TYPE": "merged_result",
                "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": HEAD,
            },
            HEAD,
        ),
        ({**DETACHED, **FORK}, SHA),
    ],
    ids=["detached", "merged result", "in a fork"],
)
def test_a_job_of_a_merge_request_is_told_of_it(env: dict[str, str], commit: str) -> None:
    found = merge_request(env)
    assert found is not None
    assert found == (PROJECT, "7", "https://gitlab.example/octo/shop/-/merge_requests/7", commit)


def test_a_pipeline_of_a_branch_is_of_the_only_merge_request_that_wants_it() -> None:
    branch = {"CI_PROJECT_ID": "4712", "CI_SERVER_URL": "https://gitlab.example"}
    one = merge_request({**branch, "CI_OPEN_MERGE_REQUESTS": "octo/shop!7"})
    assert one is not None
    assert (one.project, one.number) == ("octo/shop", "7")
    assert one.url == "https://gitlab.example/octo/shop/-/merge_requests/7"
    for none in ("", "octo/shop!7?a=b", "!7"):
        assert merge_request({**branch, "CI_OPEN_MERGE_REQUESTS": none}) is None


def test_of_several_merge_requests_one_has_to_be_named() -> None:
    two = {"CI_PROJECT_ID": "4712", "CI_OPEN_MERGE_REQUESTS": "octo/shop!7,octo/shop!8"}
    with pytest.raises(
        PostingError, match="several merge requests: octo/shop!7,octo/shop!8"
    ) as caught:
        merge_request(two)
    assert caught.value.hint == "select one with --pr NUMBER"
    assert not caught.value.is_refusal
    named = merge_request(two, 8)
    assert named is not None
    assert named.number == "8"


def test_a_number_that_is_given_goes_before_what_the_job_is_told() -> None:
    found = merge_request(DETACHED, 12)
    assert found is not None
    assert (found.project, found.number) == (PROJECT, "12")


@pytest.mark.parametrize("number", ["", "7/notes", "../8", "x"])
def test_what_is_no_number_names_no_merge_request(number: str) -> None:
    assert merge_request({**DETACHED, "CI_MERGE_REQUEST_IID": number}) is None


def test_a_change_of_another_project_is_of_a_fork() -> None:
    assert from_fork({**DETACHED, **FORK})
    assert not from_fork(DETACHED)
    assert not from_fork({})


def test_the_project_is_named_by_its_path_where_nothing_has_its_number(fake: FakeGitLab) -> None:
    env = {
        name: value for name, value in fake.env.items() if not name.startswith("CI_MERGE_REQUEST")
    }
    talking({**env, "CI_OPEN_MERGE_REQUESTS": f"{PATH}!{NUMBER}"}, own)
    assert fake.requests[-1].path == f"/api/v4/projects/octo%2Fshop/merge_requests/{NUMBER}/notes"


# --- What is refused --------------------------------------------------------------------------


def test_a_job_without_a_token_is_told_what_it_takes(fake: FakeGitLab) -> None:
    env = {**fake.env, "GITLAB_TOKEN": "", "CI_JOB_TOKEN": "glcbt-of-the-job"}
    error = refused(env, own)
    assert error.is_refusal
    assert str(error) == "no GitLab token is set"
    assert "project access token with the scope `api` and the role Reporter" in error.hint
    assert fake.requests == []


@pytest.mark.parametrize(
    ("change", "message", "hint"),
    [
        ({"scope": "read_api"}, "GitLab refuses ", "the token needs the scope `api`"),
        ({"role": "guest"}, "GitLab refuses ", "at least the role Reporter"),
        ({"role": "none"}, "GitLab has no ", "at least the role Reporter"),
    ],
)
def test_a_token_that_may_not_is_told_what_it_lacks(
    fake: FakeGitLab, change: dict[str, str], message: str, hint: str
) -> None:
    for name, value in change.items():
        setattr(fake, name, value)
    error = refused(fake.env, adding("text"))
    assert error.is_refusal
    assert str(error).startswith(message)
    assert hint in error.hint


def test_a_token_that_ended_is_refused(fake: FakeGitLab) -> None:
    error = refused({**fake.env, "GITLAB_TOKEN": "glpat-of-last-year"}, own)
    assert error.is_refusal
    assert str(error) == "GitLab does not accept the token: 401 Unauthorized"


def test_what_is_too_long_is_no_refusal(fake: FakeGitLab) -> None:
    error = refused(fake.env, adding("x" * 1_000_001))
    assert not error.is_refusal
    assert "answered 400" in str(error)


def test_a_note_whose_making_broke_off_is_not_made_again(fake: FakeGitLab) -> None:
    fake.script.append(DROPPED)
    error = refused(fake.env, adding("text"))
    assert "could not be reached" in str(error)
    assert len(fake.requests) == 1


def test_an_edit_of_which_nobody_knows_overwrites_nothing_that_others_wrote_since(
    fake: FakeGitLab,
) -> None:
    note = fake.say("old")
    fake.script.append(Reply(b"Bad Gateway", 502, "text/plain"))
    error = refused(fake.env, lambda thread: thread.edit(Comment(str(note.id), "old", ""), "new"))
    assert error.is_unsure
    assert len(fake.requests) == 1


def test_what_is_gone_before_it_is_edited_is_no_refusal(fake: FakeGitLab) -> None:
    error = refused(fake.env, lambda thread: thread.edit(Comment("99", "old", ""), "new"))
    assert error.is_unsure
    assert not error.is_refusal


def posted(fake: FakeGitLab, *jobs: str) -> list[str]:
    """Post what each job says, and return what became of it."""

    async def no_pause(_: float) -> None:
        """Go on."""

    async def work(thread: GitLabThread) -> list[str]:
        sections = [Section("shop", job, "passed", f"{job} is well", SHA, 1) for job in jobs]
        found = [
            await sticky.post(thread, [each], Options("update"), wanted=True, pause=no_pause)
            for each in sections
        ]
        return [each.status for each in found]

    found: list[str] = talking(fake.env, work)
    return found


@pytest.mark.parametrize("is_made", [False, True])
def test_a_note_of_which_nobody_knows_is_looked_for_and_is_there_once(
    fake: FakeGitLab, is_made: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = GitLabThread.add
    left = [1]

    async def broken(thread: GitLabThread, body: str) -> Comment:
        if not left:
            return await add(thread, body)
        left.clear()
        if is_made:
            await add(thread, body)
        fake.script.append(DROPPED)
        return await add(thread, body)

    monkeypatch.setattr(GitLabThread, "add", broken)
    assert posted(fake, "a") == ["created"]
    assert len(fake.bodies) == 1


def test_jobs_share_one_note(fake: FakeGitLab) -> None:
    assert posted(fake, "a", "b", "b") == ["created", "updated", "unchanged"]
    (body,) = fake.bodies
    assert {each.job for each in read("shop", body)} == {"a", "b"}


def test_a_note_of_another_is_not_changed(fake: FakeGitLab) -> None:
    note = fake.say("theirs", by=ME + 1)
    error = refused(
        fake.env, lambda thread: thread.edit(Comment(str(note.id), "theirs", ""), "ours")
    )
    assert error.is_refusal
    assert fake.bodies == ["theirs"]


def test_a_limit_is_waited_for(fake: FakeGitLab) -> None:
    fake.script.append(Reply(b"Retry later", 429, "text/plain", {"Retry-After": "0"}))
    talking(fake.env, adding("text"))
    assert fake.bodies == ["text"]


def test_a_limit_that_lasts_too_long_ends_all_attempts_at_once(fake: FakeGitLab) -> None:
    limit = Reply(b"Retry later", 429, "text/plain", {"Retry-After": "9999"})
    # Who we are, which notes there are, and one attempt to write.
    fake.script.extend([as_json({"id": ME}), as_json([]), *[limit] * 9])
    said = Section("shop", "evaluate", "passed", "text", "a" * 40, 1)
    error = refused(
        fake.env, lambda thread: sticky.post(thread, [said], Options("update"), wanted=True)
    )
    assert str(error) == "GitLab rate limit exceeded; try again in 9999 s"
    assert (error.is_refusal, error.is_unsure) == (False, False)
    assert [each.method for each in fake.requests] == ["GET", "GET", "POST"]


def test_what_gitlab_says_of_itself_is_quoted_in_one_line(fake: FakeGitLab) -> None:
    fake.script.append(refusal(403, "no\n::error::forged \x1b[31mred"))
    error = refused(fake.env, adding("text"))
    assert str(error).endswith(": no ::error::forged red")
    assert "\n" not in str(error)
