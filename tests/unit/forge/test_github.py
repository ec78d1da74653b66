"""GitHub's API over real connections: pages, limits, redirects, refusals, and what it may say."""

import asyncio
import ipaddress
import os
import ssl
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from servers.github import (
    EVERYTHING,
    REPOSITORY,
    SIGNATURE,
    TOKEN,
    FakeGitHub,
    Fault,
    github,
    refusal,
    sha,
)
from servers.loopback import CUT, DROPPED, HTML, Reply, as_json, closed_port, serving

from ci_eval.forge import github as module
from ci_eval.forge import rest
from ci_eval.forge.github import GitHub, HostError, connected
from ci_eval.forge.rest import LimitedError
from ci_eval.records.cases import Stored
from ci_eval.runtime import http
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.http import Request, Response
from ci_eval.runtime.retry import Backoff

pytestmark = pytest.mark.processes

READ = "actions: read"
SAID: list[str] = []


class Thing(Stored):
    id: int
    name: str


class Made(Stored):
    id: int


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGitHub]:
    monkeypatch.setattr(rest, "BACKOFF", Backoff(0.0, 0.0))
    SAID.clear()
    with github() as found:
        yield found


def context(env: dict[str, str], now: float | None = None) -> RunContext:
    return RunContext(env, Path(), lambda: time.time() if now is None else now, say=SAID.append)


def asking(
    env: dict[str, str], work: Callable[[GitHub], Awaitable[Any]], now: float | None = None
) -> Any:
    async def main() -> Any:
        async with connected(context(env, now)) as found:
            return await work(found)

    return asyncio.run(main())


def things(path: str = "actions/artifacts", **query: Any) -> Callable[[GitHub], Awaitable[Any]]:
    async def work(found: GitHub) -> list[Thing]:
        listing = found.listed(path, Thing, needs=READ, member="artifacts", name="a", **query)
        return [each async for each in listing]

    return work


def downloaded(number: int) -> Callable[[GitHub], Awaitable[Any]]:
    return lambda found: found.download(f"actions/artifacts/{number}/zip", needs=READ)


def posted(*, repeatable: bool) -> Callable[[GitHub], Awaitable[Any]]:
    body = {
        "name": "n",
        "head_sha": sha(1),
        "status": "completed",
        "conclusion": "neutral",
        "output": {"title": "t", "summary": "s", "text": "x"},
    }
    return lambda found: found.post(
        "check-runs", body, Made, needs="checks: write", repeatable=repeatable
    )


def refused(
    env: dict[str, str], work: Callable[[GitHub], Awaitable[Any]] | None = None, **more: Any
) -> HostError:
    with pytest.raises(HostError) as caught:
        asking(env, work or things(), **more)
    assert TOKEN not in f"{caught.value} {caught.value.hint} {SAID}"
    return caught.value


def scripted(fake: FakeGitHub, *replies: Reply) -> dict[str, str]:
    fake.script.extend(replies)
    return fake.env


def page(*names: str, link: str = "") -> Reply:
    items = [{"id": number, "name": name} for number, name in enumerate(names)]
    return as_json({"artifacts": items}, headers={"Link": link} if link else {})


# --- Who is asked, and as whom ----------------------------------------------------------------


def test_a_request_says_what_github_wants_to_know(fake: FakeGitHub) -> None:
    asking(fake.env, things())
    sent = fake.request
    assert sent.path == f"/repos/{REPOSITORY}/actions/artifacts"
    assert sent.query == {"per_page": ["100"], "name": ["a"]}
    assert {name: sent.headers[name] for name in ("accept", "authorization", "user-agent")} == {
        "accept": "application/vnd.github+json",
        "authorization": f"Bearer {TOKEN}",
        "user-agent": "ci-eval",
    }
    assert sent.headers["x-github-api-version"] == "2022-11-28"


def test_a_slash_behind_the_address_makes_no_difference(fake: FakeGitHub) -> None:
    asking({**fake.env, "GITHUB_API_URL": f"{fake.url}/"}, things())
    assert fake.request.path == f"/repos/{REPOSITORY}/actions/artifacts"


@pytest.mark.parametrize(
    "env",
    [
        {"INPUT_GITHUB-TOKEN": TOKEN, "GITHUB_TOKEN": "other", "GH_TOKEN": "other"},
        {"INPUT_GITHUB-TOKEN": "", "GITHUB_TOKEN": TOKEN, "GH_TOKEN": "other"},
        {"GITHUB_TOKEN": "", "GH_TOKEN": TOKEN},
    ],
)
def test_the_token_of_the_action_comes_first_and_that_of_people_last(
    fake: FakeGitHub, env: dict[str, str]
) -> None:
    assert asking({**fake.env, **env}, things()) == []


@pytest.mark.parametrize(
    ("env", "message", "hint"),
    [
        ({"GITHUB_TOKEN": ""}, "no GitHub token is set", "GITHUB_TOKEN"),
        (
            {"GITHUB_TOKEN": "two\nlines"},
            "GITHUB_TOKEN is not a token: it has spaces, line breaks or invalid characters",
            "",
        ),
        ({"GITHUB_REPOSITORY": ""}, "no GitHub repository is configured", "GITHUB_REPOSITORY="),
        *(
            (
                {"GITHUB_REPOSITORY": name},
                f"GITHUB_REPOSITORY must be 'owner/name', found {name!r}",
                "",
            )
            for name in (
                "shop",
                "../..",
                "octo/..",
                "octo/shop/../x",
                "octo/shop?a=b",
                "octo/sh op",
                "ö/shop",
            )
        ),
        ({"GITHUB_API_URL": "api.github.com"}, "GITHUB_API_URL: expected an address", ""),
    ],
)
def test_what_the_environment_lacks_is_said_before_anything_is_sent(
    fake: FakeGitHub, env: dict[str, str], message: str, hint: str
) -> None:
    error = refused({**fake.env, **env})
    assert str(error).startswith(message)
    assert hint in error.hint
    assert fake.requests == []


# --- Pages ------------------------------------------------------------------------------------


def fill(fake: FakeGitHub, count: int) -> None:
    for _ in range(count):
        fake.add_artifact(b"", sha(1), name="a")


def test_all_pages_are_read_in_their_order(fake: FakeGitHub) -> None:
    fill(fake, 205)
    found = asking(fake.env, things())
    assert [each.id for each in found] == [each["id"] for each in fake.artifacts]
    assert [each.query.get("page") for each in fake.requests] == [None, ["2"], ["3"]]
    assert {each.headers["authorization"] for each in fake.requests} == {f"Bearer {TOKEN}"}


def test_no_more_pages_are_read_than_are_taken(fake: FakeGitHub) -> None:
    fill(fake, 205)

    async def first(found: GitHub) -> int:
        listing = found.listed("actions/artifacts", Thing, needs=READ, member="artifacts", name="a")
        async with aclosing(listing) as each:
            return (await anext(each)).id

    assert asking(fake.env, first) == fake.artifacts[0]["id"]
    assert len(fake.requests) == 1


@pytest.mark.parametrize("suffix", ["", ".example.com", "@example.com"])
def test_a_next_page_elsewhere_is_not_told_the_token(fake: FakeGitHub, suffix: str) -> None:
    elsewhere = fake.url + suffix if suffix else fake.storage.url
    link = f'<{elsewhere}/repos/x?page=2>; rel="next"'
    error = refused(scripted(fake, page("a", link=link)))
    assert " is elsewhere, at http://" in str(error)
    assert fake.storage.requests == []


@pytest.mark.parametrize(
    "link", ['<x>; rel="prev"', "nonsense", "<", "x; rel=next", '<x; rel="next"']
)
def test_what_names_no_next_page_is_the_end(fake: FakeGitHub, link: str) -> None:
    found = asking(scripted(fake, page("a", link=link)), things())
    assert [each.name for each in found] == ["a"]
    assert len(fake.requests) == 1


def test_pages_without_end_are_not_read(fake: FakeGitHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PAGES", 3)
    link = f'<{fake.url}/repos/octo/shop/actions/artifacts?name=a>; rel="next"'
    error = refused(scripted(fake, *[page(link=link)] * 9))
    assert str(error) == f"{fake.url}/repos/octo/shop/actions/artifacts has more than 3 pages"
    assert len(fake.requests) == 3


# --- What comes back --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (HTML, "which is not JSON"),
        (as_json({}), " did not return a list"),
        (as_json([1, 2]), " returned unexpected data: expected an object, found 1"),
        (as_json({"artifacts": {"id": 1}}), " did not return a list"),
        (as_json({"artifacts": [{"id": 1}]}), "unexpected data: 'name' is missing"),
        (
            as_json({"artifacts": [{"id": "\x1b[31mred", "name": "n"}]}),
            "unexpected data: id: expected a whole number, found ",
        ),
        (as_json({"artifacts": [{"id": [TOKEN], "name": "n"}]}), "unexpected data: id: "),
        (Reply(b"[" * 100_000), "is nested too deeply"),
    ],
)
def test_an_answer_that_is_something_else_is_refused(
    fake: FakeGitHub, reply: Reply, said: str
) -> None:
    error = refused(scripted(fake, reply))
    assert said in str(error)
    assert "\x1b" not in str(error)


def test_an_answer_without_end_is_refused(
    fake: FakeGitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "MAX_BODY", 1000)
    assert " sent more than " in str(refused(scripted(fake, Reply(b"[" + b" " * 2000))))
    assert len(fake.requests) == 1


@pytest.mark.parametrize(
    ("reply", "said", "hint"),
    [
        (
            refusal(401, "Bad credentials"),
            "GitHub does not accept the token: Bad credentials",
            "in a workflow, use ${{ github.token }}",
        ),
        (
            refusal(403, "Resource not accessible by integration"),
            f"/repos/{REPOSITORY}/actions/artifacts: Resource not accessible by integration",
            "the token needs `permissions: {actions: read}`",
        ),
        (
            refusal(403, "Unable to create comment because issue is locked."),
            ": Unable to create comment because issue is locked.",
            "",
        ),
        (
            refusal(404, "Not Found"),
            f"/repos/{REPOSITORY}/actions/artifacts, or the token has no access to it",
            "the token needs `permissions: {actions: read}`",
        ),
        (refusal(418, f"I am a \x1b[31mteapot {TOKEN}"), "418: I am a teapot [hidden]", ""),
        (Reply(b"[]", 451), " answered 451", ""),
        (
            Reply(status=301, headers={"Location": "/elsewhere"}),
            "/elsewhere; use that address",
            "was the repository renamed?",
        ),
    ],
)
def test_a_refusal_is_told_in_words_with_the_permission_it_takes(
    fake: FakeGitHub, reply: Reply, said: str, hint: str
) -> None:
    error = refused(scripted(fake, reply))
    assert str(error).endswith(said)
    assert (error.hint, error.status) == (hint, reply.status)
    assert len(fake.requests) == 1


def test_who_may_not_write_is_told_that_forks_never_may(fake: FakeGitHub) -> None:
    fake.permissions = EVERYTHING - {"checks: write"} | {"checks: read"}
    error = refused(fake.env, posted(repeatable=True))
    assert error.hint == (
        "the token needs `permissions: {checks: write}`, which pull requests from forks never get"
    )


# --- Limits, and servers that are not well ----------------------------------------------------

LIMIT = "You have exceeded a secondary rate limit"


@pytest.mark.parametrize(
    "reply",
    [
        refusal(429, LIMIT, **{"Retry-After": "0"}),
        refusal(403, LIMIT, **{"Retry-After": "0.01"}),
        refusal(
            403,
            "API rate limit exceeded",
            **{"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1000"},
        ),
    ],
)
def test_a_limit_is_waited_for_as_long_as_github_says(fake: FakeGitHub, reply: Reply) -> None:
    assert asking(scripted(fake, reply, page("a")), things(), now=999.99)[0].name == "a"
    assert [f"GitHub rate limit exceeded: {_message(reply)}; retrying in 0 s"] == SAID


def _message(reply: Reply) -> str:
    return "API rate limit exceeded" if b"API rate" in reply.body else LIMIT


@pytest.mark.parametrize("status", [403, 429])
def test_a_limit_that_names_no_time_is_waited_for_a_minute(
    fake: FakeGitHub, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []

    async def sleep(pause_s: float) -> None:
        slept.append(pause_s)

    monkeypatch.setattr(module.asyncio, "sleep", sleep)
    asking(scripted(fake, refusal(status, LIMIT), page("a")), things())
    assert slept == [60]


@pytest.mark.parametrize(
    ("headers", "pause"),
    [
        ({"Retry-After": "3600"}, 3600),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "2000"}, 1000),
    ],
)
def test_a_limit_that_lasts_too_long_ends_it_at_once(
    fake: FakeGitHub, headers: dict[str, str], pause: int
) -> None:
    error = refused(scripted(fake, refusal(403, "API rate limit exceeded", **headers)), now=1000)
    assert str(error) == (
        f"GitHub rate limit exceeded: API rate limit exceeded; try again in {pause} s"
    )
    assert (len(fake.requests), SAID) == (1, [])


def test_after_a_limit_that_lasts_too_long_nothing_is_sent_until_it_ends(fake: FakeGitHub) -> None:
    clock = [1000.0]
    limit = refusal(429, "API rate limit exceeded", **{"Retry-After": "3600"})

    async def main() -> None:
        async with connected(
            RunContext(fake.env, Path(), lambda: clock[0], say=SAID.append)
        ) as found:
            with pytest.raises(LimitedError, match="exceeded; try again in 3600 s"):
                await things()(found)
            clock[0] = 4599.0
            with pytest.raises(LimitedError, match="exceeded; try again in 1 s"):
                await who(found)
            assert len(fake.requests) == 1
            clock[0] = 4600.0
            assert await things()(found) == []

    scripted(fake, limit)
    asyncio.run(main())


def test_one_wait_is_bounded_apart_from_all_of_them(fake: FakeGitHub) -> None:
    limit = refusal(429, LIMIT, **{"Retry-After": str(rest.MAX_WAIT_S + 1)})
    assert rest.MAX_WAIT_S + 1 < rest.PATIENCE_S
    assert isinstance(refused(scripted(fake, limit)), LimitedError)
    assert len(fake.requests) == 1


def test_all_waiting_together_has_an_end(fake: FakeGitHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "PATIENCE_S", 0.025)
    limit = refusal(429, LIMIT, **{"Retry-After": "0.01"})
    link = f'<{fake.url}/repos/octo/shop/actions/artifacts?name=a>; rel="next"'
    refused(scripted(fake, *[limit, page("a", link=link)] * 5))
    assert len(fake.requests) == 5
    assert len(SAID) == 2


def test_limits_without_end_are_not_obeyed_without_end(fake: FakeGitHub) -> None:
    limit = refusal(429, LIMIT, **{"Retry-After": "0"})
    refused(scripted(fake, *[limit] * 9))
    assert len(fake.requests) == 4


@pytest.mark.parametrize(
    "reply", [Reply(b"<html>", status) for status in (500, 502, 503, 504)] + [DROPPED, CUT]
)
def test_a_server_that_is_not_well_is_asked_again(fake: FakeGitHub, reply: Reply) -> None:
    assert asking(scripted(fake, reply, reply, page("a")), things())[0].name == "a"
    # aiohttp sends once more by itself what got no answer at all.
    assert len(fake.requests) == 3
    assert 1 <= len(SAID) <= 2


def test_a_server_that_stays_unwell_ends_it(fake: FakeGitHub) -> None:
    error = refused(scripted(fake, *[refusal(502, "Server Error")] * 9))
    assert " answered 502: " in str(error)
    assert len(fake.requests) == 4


def test_nobody_there_is_said(fake: FakeGitHub) -> None:
    env = {**fake.env, "GITHUB_API_URL": f"http://127.0.0.1:{closed_port()}"}
    assert str(refused(env)).endswith("/actions/artifacts could not be reached: Connection refused")


def test_an_answer_that_does_not_come_is_not_waited_for(
    fake: FakeGitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest, "PATIENCE_S", -1)
    with pytest.raises(HostError, match=r"did not answer within 0\.05 s$"):
        asking(
            scripted(fake, Reply(b"{}", delay_s=60)),
            lambda found: found.host.send(Request("GET", fake.url), again=True, within_s=0.05),
        )


@pytest.mark.parametrize("reply", [refusal(502, "Server Error"), DROPPED])
def test_what_may_have_been_made_is_made_again_only_where_twice_does_no_harm(
    fake: FakeGitHub, reply: Reply
) -> None:
    refused(scripted(fake, reply), posted(repeatable=False))
    assert fake.check_runs == []
    asking(scripted(fake, reply), posted(repeatable=True))
    assert len(fake.check_runs) == 1


def test_what_a_limit_kept_from_being_made_is_made_later(fake: FakeGitHub) -> None:
    limit = refusal(403, LIMIT, **{"Retry-After": "0"})
    asking(scripted(fake, limit), posted(repeatable=False))
    assert len(fake.check_runs) == 1


# --- Changes ----------------------------------------------------------------------------------

WRITE = "pull-requests: write"


class Body(Stored):
    id: int
    body: str


class Viewer(Stored):
    login: str


class Asked(Stored):
    viewer: Viewer


class Folded(Stored):
    minimizeComment: dict[str, Any]  # noqa: N815 - as it is answered


WHO = "query { viewer { login } }"
FOLD = (
    "mutation ($id: ID!) { minimizeComment(input: {subjectId: $id, classifier: OUTDATED}) "
    "{ minimizedComment { isMinimized } } }"
)


def commented(body: str = "new", **more: Any) -> Callable[[GitHub], Awaitable[Any]]:
    return lambda found: found.post("issues/1/comments", {"body": body}, Body, needs=WRITE, **more)


def edited(number: int, body: str = "new") -> Callable[[GitHub], Awaitable[Any]]:
    path = f"issues/comments/{number}"
    return lambda found: found.patch(path, {"body": body}, needs=WRITE)


def removed(number: int) -> Callable[[GitHub], Awaitable[Any]]:
    return lambda found: found.delete(f"issues/comments/{number}", needs=WRITE)


def folded(node: str) -> Callable[[GitHub], Awaitable[Any]]:
    return lambda found: found.graphql(FOLD, {"id": node}, Folded, needs=WRITE)


def who(found: GitHub) -> Awaitable[Any]:
    return found.graphql(WHO, {}, Asked, needs="contents: read")


def test_what_is_made_changed_folded_and_removed_is_so_at_github(fake: FakeGitHub) -> None:
    fake.add_pull(1)
    made = asking(fake.env, commented("first"))
    (kept,) = fake.comments
    assert (made.id, made.body, kept.body) == (kept.id, "first", "first")
    assert asking(fake.env, edited(kept.id, "second")) is None
    assert kept.body == "second"
    answer = asking(fake.env, folded(kept.node_id))
    assert answer.minimizeComment == {"minimizedComment": {"isMinimized": True}}
    assert kept.minimized == "outdated"
    assert asking(fake.env, removed(kept.id)) is None
    assert fake.comments == []


def test_what_is_removed_already_is_removed(fake: FakeGitHub) -> None:
    assert asking(fake.env, removed(1)) is None


def test_what_is_not_there_cannot_be_changed(fake: FakeGitHub) -> None:
    error = refused(fake.env, edited(1))
    assert str(error).endswith("/issues/comments/1, or the token has no access to it")
    assert error.status == 404
    error = refused(fake.env, folded("IC_gone"))
    assert str(error).endswith("Could not resolve to a node with the global id of 'IC_gone'")
    assert error.status == 404


@pytest.mark.parametrize("what", [commented("x" * 65_537), edited(3_000_000_001, "x" * 65_537)])
def test_what_is_not_valid_is_said_in_githubs_words(
    fake: FakeGitHub, what: Callable[[GitHub], Awaitable[Any]]
) -> None:
    fake.add_pull(1)
    fake.add_comment("ours")
    error = refused(fake.env, what)
    said = " answered 422: Validation Failed: Body is too long (maximum is 65536 characters)"
    assert str(error).endswith(said)
    assert (error.status, error.hint) == (422, "")


@pytest.mark.parametrize(
    "errors", [None, "x", {}, [1], [{"message": 2}], [{"message": "\x1b[1mb"}]]
)
def test_words_of_a_refusal_may_be_anything(fake: FakeGitHub, errors: Any) -> None:
    fake.add_pull(1)
    error = refused(scripted(fake, refusal(422, "a", errors=errors)), commented())
    assert str(error).endswith((" answered 422: a", " answered 422: a: b"))


@pytest.mark.parametrize("what", [commented(), edited(1), removed(1), who])
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_change_follows_no_redirect(
    fake: FakeGitHub, what: Callable[[GitHub], Awaitable[Any]], status: int
) -> None:
    reply = Reply(status=status, headers={"Location": f"{fake.storage.url}/x?sig=1"})
    error = refused(scripted(fake, reply), what)
    said = f" answered {status}, a redirect to {fake.storage.url}/x; use that address"
    assert str(error).endswith(said)
    assert error.hint == "was the repository renamed?"
    assert fake.storage.requests == []


@pytest.mark.parametrize("reply", [refusal(502, "Server Error"), refusal(504, ""), DROPPED])
@pytest.mark.parametrize("is_made", [True, False])
def test_an_edit_of_which_nobody_knows_is_sent_once(
    fake: FakeGitHub, reply: Reply, is_made: bool
) -> None:
    made = fake.add_comment("old")
    fake.faults.append(Fault("PATCH", reply=reply, is_made=is_made))
    refused(fake.env, edited(made.id))
    assert made.body == ("new" if is_made else "old")
    assert len(fake.writes()) == 1


@pytest.mark.parametrize("reply", [refusal(502, "Server Error"), DROPPED])
@pytest.mark.parametrize("is_made", [True, False])
def test_nothing_is_removed_or_made_twice(fake: FakeGitHub, reply: Reply, is_made: bool) -> None:
    fake.add_pull(1)
    made = fake.add_comment("ours")
    fake.faults.append(Fault("DELETE", reply=reply, is_made=is_made))
    asking(fake.env, removed(made.id))
    assert fake.comments == []
    fake.faults.append(Fault("POST", reply=reply, is_made=is_made))
    refused(fake.env, commented())
    assert len(fake.comments) == is_made


def test_what_github_named_is_in_the_hint_where_ours_would_not_do(fake: FakeGitHub) -> None:
    fake.permissions = frozenset()
    error = refused(fake.env, edited(1))
    assert error.hint == (
        "the token needs `permissions: {pull-requests: write}`, "
        "which pull requests from forks never get"
    )

    def mistaken(found: GitHub) -> Awaitable[Any]:
        return found.patch("issues/comments/1", {"body": "x"}, needs="contents: read")

    assert refused(fake.env, mistaken).hint == (
        "the token needs `permissions: {issues: write}` or `{pull-requests: write}`, "
        "which pull requests from forks never get"
    )


@pytest.mark.parametrize(
    ("named", "hint"),
    [
        ("actions=read", "`permissions: {actions: read}`"),
        ("contents=read; actions=read", "`permissions: {actions: read}`"),
        ("contents=write,issues=read", "`permissions: {contents: write, issues: read}`"),
        ("metadata=read", "`permissions: {actions: read}`"),
        ("metadata=read,checks=read", "`permissions: {checks: read}`"),
        ("`}\x07 <b>=read; nonsense", "`permissions: {actions: read}`"),
        ("", "`permissions: {actions: read}`"),
    ],
)
def test_a_header_that_names_permissions_is_read(fake: FakeGitHub, named: str, hint: str) -> None:
    headers = {"X-Accepted-GitHub-Permissions": named.replace("\x07", "")}
    error = refused(scripted(fake, refusal(403, "no", **headers)))
    assert error.hint.startswith(f"the token needs {hint}")


def test_graphql_refuses_with_the_permission_it_takes(fake: FakeGitHub) -> None:
    made = fake.add_comment("ours")
    fake.permissions = frozenset({"pull-requests: read"})
    error = refused(fake.env, folded(made.node_id))
    assert str(error).endswith("/graphql: Resource not accessible by integration")
    assert error.status == 403
    assert "`permissions: {pull-requests: write}`, which pull requests from forks" in error.hint


@pytest.mark.parametrize(
    ("reply", "said", "status"),
    [
        (as_json([]), "did not return an object", None),
        (as_json({"data": None}), "returned unexpected data", None),
        (as_json({"data": {"viewer": {"login": 1}}}), "viewer.login: expected", None),
        (
            as_json({"errors": [{"message": "\x1b[1ma", "type": "UNPROCESSABLE"}]}),
            "/graphql: a",
            422,
        ),
        (as_json({"errors": [1], "data": {}}), "/graphql: no message", None),
        (as_json({"errors": "x"}), "/graphql: no message", None),
        (HTML, "which is not JSON", None),
    ],
)
def test_an_answer_of_graphql_that_is_something_else_is_refused(
    fake: FakeGitHub, reply: Reply, said: str, status: int | None
) -> None:
    error = refused(scripted(fake, reply), who)
    assert said in str(error)
    assert (error.status, error.hint) == (status, "")


@pytest.mark.parametrize(
    "error",
    [{"message": "Something went wrong"}, {"type": "INTERNAL", "message": "Something went wrong"}],
)
def test_an_error_of_graphql_that_may_pass_is_asked_about_again(
    fake: FakeGitHub, error: dict[str, str]
) -> None:
    failed = as_json({"data": None, "errors": [error]})
    assert asking(scripted(fake, failed, failed), who).viewer.login == "github-actions[bot]"
    assert len(fake.requests) == 3
    assert f"{fake.url}/graphql answered 200: Something went wrong; retrying in 0 s" in SAID


def test_an_error_of_graphql_that_stays_ends_it(fake: FakeGitHub) -> None:
    failed = as_json({"errors": [{"message": "Something went wrong"}]})
    error = refused(scripted(fake, *[failed] * 9), who)
    assert str(error) == f"{fake.url}/graphql answered 200: Something went wrong"
    assert len(fake.requests) == 4


def test_a_secondary_limit_of_graphql_needs_no_type(
    fake: FakeGitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []

    async def sleep(pause_s: float) -> None:
        slept.append(pause_s)

    monkeypatch.setattr(module.asyncio, "sleep", sleep)
    asking(scripted(fake, as_json({"errors": [{"message": LIMIT}]})), who)
    assert slept == [60]


@pytest.mark.parametrize("kind", ["RATE_LIMITED", "RATE_LIMIT"])
def test_a_limit_of_graphql_is_waited_for_although_its_status_is_well(
    fake: FakeGitHub, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []

    async def sleep(pause_s: float) -> None:
        slept.append(pause_s)

    monkeypatch.setattr(module.asyncio, "sleep", sleep)
    limit = as_json({"errors": [{"type": kind, "message": LIMIT}]})
    assert asking(scripted(fake, limit), who).viewer.login == "github-actions[bot]"
    assert slept == [60]


def test_a_comment_that_speaks_of_a_limit_is_none(fake: FakeGitHub) -> None:
    trap = '{"type": "RATE_LIMITED"}'
    told = asking(scripted(fake, as_json({"data": {"viewer": {"login": trap}}})), who)
    assert told.viewer.login == trap


def test_changes_are_a_second_apart_and_reads_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert module.WRITE_INTERVAL_S == 1
    slept: list[float] = []

    async def sleep(pause_s: float) -> None:
        slept.append(pause_s)

    monkeypatch.setattr(module.asyncio, "sleep", sleep)

    async def work(found: GitHub) -> None:
        await who(found)
        await edited(made.id)(found)
        await who(found)
        assert slept == []
        await folded(made.node_id)(found)
        await who(found)
        await removed(made.id)(found)

    with github(writes_apart_s=1000) as fake:
        made = fake.add_comment("ours")
        asking(fake.env, work)
    assert len(slept) == 2
    assert all(900 < each <= 1000 for each in slept)


# --- Where GitHub is --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("api", "graphql"),
    [
        ("https://api.github.com", "https://api.github.com/graphql"),
        ("https://api.octo.ghe.com", "https://api.octo.ghe.com/graphql"),
        ("https://github.example/api/v3", "https://github.example/api/graphql"),
    ],
)
def test_graphql_is_beside_the_api(api: str, graphql: str) -> None:
    assert module._graphql({}, api) == graphql


def test_an_enterprise_server_is_asked_at_its_own_addresses(fake: FakeGitHub) -> None:
    fake.is_enterprise = True
    fill(fake, 101)
    assert len(asking(fake.env, things())) == 101
    assert asking(fake.env, who).viewer.login == "github-actions[bot]"
    assert {each.path for each in fake.requests} == {
        f"/api/v3/repos/{REPOSITORY}/actions/artifacts",
        "/api/v3/repositories/4711/actions/artifacts",
        "/api/graphql",
    }


def test_the_path_of_a_server_may_be_called_like_those_of_the_api(fake: FakeGitHub) -> None:
    env = {**fake.env, "GITHUB_API_URL": f"{fake.url}/repos/api/v3"}
    following = f'<{fake.url}/repos/api/v3/repositories/4711/actions/artifacts?page=2>; rel="next"'
    scripted(fake, page("a", link=following), page("b"))
    assert len(asking(env, things())) == 2
    assert [each.path for each in fake.requests] == [
        f"/repos/api/v3/repos/{REPOSITORY}/actions/artifacts",
        "/repos/api/v3/repositories/4711/actions/artifacts",
    ]


def test_a_workflow_says_where_graphql_is(fake: FakeGitHub) -> None:
    env = {**fake.env, "GITHUB_API_URL": "http://nobody.invalid"}
    found = asking({**env, "GITHUB_GRAPHQL_URL": f"{fake.url}/graphql"}, who)
    assert found.viewer.login == "github-actions[bot]"


def test_an_address_of_graphql_that_is_none_is_said(fake: FakeGitHub) -> None:
    error = refused({**fake.env, "GITHUB_GRAPHQL_URL": "graphql"}, who)
    assert str(error).startswith("GITHUB_GRAPHQL_URL: expected an address")
    assert fake.requests == []


def test_a_proxy_is_asked_for_a_server_elsewhere(
    fake: FakeGitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.is_enterprise = True
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", fake.url)
    api = {"GITHUB_API_URL": "http://github.example/api/v3", "http_proxy": fake.url}
    assert asking({**fake.env, **api}, things()) == []
    assert asking({**fake.env, **api}, who).viewer.login == "github-actions[bot]"
    assert {each.headers["host"] for each in fake.requests} == {"github.example"}


ASKS = """
import asyncio, os, time
from pathlib import Path
from ci_eval.forge import github, rest
from ci_eval.records.cases import Stored
from ci_eval.runtime.context import RunContext

class PullRequest(Stored):
    number: int

async def main():
    async with github.connected(RunContext(os.environ, Path(), time.time)) as found:
        print((await found.one("pulls/1", PullRequest, needs="pull-requests: read")).number)

rest.RETRIES = 0
try:
    asyncio.run(main())
except github.HostError as exc:
    print(exc)
"""


@pytest.mark.parametrize("is_known", [True, False])
def test_a_private_authority_is_trusted_where_the_environment_names_it(
    tmp_path: Path, is_known: bool
) -> None:
    authority = tmp_path / "authority.pem"
    fake = FakeGitHub()
    fake.add_pull(1)
    with serving(fake, certified(authority)):
        env = {**os.environ, **fake.env, "SSL_CERT_FILE": str(authority)}
        if not is_known:
            del env["SSL_CERT_FILE"]
        command = [sys.executable, "-c", ASKS]
        done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    if is_known:
        assert (done.stdout, fake.violations) == ("1\n", [])
    else:
        assert "certificate" in done.stdout
        assert fake.requests == []


def certified(authority: Path) -> ssl.SSLContext:
    """Return the certificate of a server on this machine, issued by `authority`."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "an authority of this test")])
    now = datetime.now(UTC)
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(here, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    authority.write_bytes(certificate.public_bytes(Encoding.PEM))
    both = authority.with_suffix(".both")
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    both.write_bytes(secret + authority.read_bytes())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    return context


# --- Downloads --------------------------------------------------------------------------------


def test_a_file_is_fetched_where_it_is_without_the_token(fake: FakeGitHub) -> None:
    number = fake.add_artifact(b"\xff\x00\xfe", sha(1))
    assert asking(fake.env, downloaded(number)) == b"\xff\x00\xfe"
    sent = fake.storage.request
    assert TOKEN not in str(sent)
    assert sent.headers["user-agent"] == "ci-eval"


def test_a_file_that_comes_at_once_is_taken(fake: FakeGitHub) -> None:
    assert asking(scripted(fake, Reply(b"\xff")), downloaded(1)) == b"\xff"


@pytest.mark.parametrize("reply", [refusal(404, "Not Found"), refusal(410, "Gone")])
def test_a_file_that_is_gone_is_none(fake: FakeGitHub, reply: Reply) -> None:
    assert asking(scripted(fake, reply), downloaded(1)) is None


def test_a_file_that_is_gone_from_the_other_host_is_none(fake: FakeGitHub) -> None:
    number = fake.add_artifact(b"x", sha(1))
    fake.storage.files.clear()
    assert asking(fake.env, downloaded(number)) is None


def test_what_the_other_host_says_is_not_repeated(fake: FakeGitHub) -> None:
    number = fake.add_artifact(b"x", sha(1))
    fake.storage.script.append(Reply(SIGNATURE.encode(), 403))
    error = refused(fake.env, downloaded(number))
    assert str(error) == f"{fake.storage.url}/{number}.zip answered 403"


def test_a_redirect_is_followed_once(fake: FakeGitHub) -> None:
    number = fake.add_artifact(b"x", sha(1))
    fake.storage.script.append(Reply(status=302, headers={"Location": "http://169.254.169.254/"}))
    assert str(refused(fake.env, downloaded(number))).endswith(".zip answered 302")


@pytest.mark.parametrize(
    ("here", "location", "there"),
    [
        ("https://a/x", "https://b/y?sig=1", "https://b/y?sig=1"),
        ("https://a/x", "/y", "https://a/y"),
        ("http://a/x", "http://b/y", "http://b/y"),
        ("http://a/x", "https://b/y", "https://b/y"),
        ("https://a/x", "http://b/y?sig=1", None),
        ("https://a/x", "file:///etc/passwd", None),
        ("http://a/x", "ftp://b/y", None),
    ],
)
def test_a_redirect_leads_to_the_web_and_never_out_of_encryption(
    here: str, location: str, there: str | None
) -> None:
    response = Response(Request("GET", here), 302, {"Location": location}, b"")
    if there:
        assert module._target(response) == there
    else:
        with pytest.raises(HostError) as caught:
            module._target(response)
        assert "sig" not in str(caught.value)
