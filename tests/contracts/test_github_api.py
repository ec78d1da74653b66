"""The stand-in for GitHub is what GitHub describes, and lets nothing else pass.

Each test that asks for something wrong takes it out of `violations`: else it would fail by them.
"""

import asyncio
import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from servers.github import (
    EVERYTHING,
    HUMAN,
    OTHER_BOT,
    REPOSITORY,
    TOKEN,
    FakeGitHub,
    Fault,
    ViolationError,
    github,
    refusal,
    sha,
)
from servers.github.described import FOLDER, Operation, Operations, filled
from servers.loopback import DROPPED, Reply, as_json

from ci_eval.records.errors import TrialError
from ci_eval.runtime.http import Request, Response, connecting

COMMENTS = "issues/1/comments"
LISTED = """
    query ($number: Int!, $first: Int, $last: Int, $after: String) {
      repository(owner: "octo", name: "shop") {
        pullRequest(number: $number) {
          comments(first: $first, last: $last, after: $after) {
            pageInfo { hasNextPage endCursor }
            nodes { id body isMinimized viewerDidAuthor fullDatabaseId author { login } }
          }
        }
      }
    }
"""
MINIMIZE = """
    mutation ($id: ID!) {
      minimizeComment(input: {subjectId: $id, classifier: OUTDATED}) {
        minimizedComment { isMinimized minimizedReason }
      }
    }
"""


@pytest.fixture
def fake() -> Iterator[FakeGitHub]:
    with github() as found:
        found.add_pull(1)
        yield found


def send(fake: FakeGitHub, method: str, path: str, body: Any = None, **headers: str) -> Response:
    """Send one request, as nobody's client would."""
    url = path if path.startswith("http") else f"{fake.url}/repos/{REPOSITORY}/{path}"
    sent = {
        "Accept": "application/vnd.github+json",
        "Authorization": f"Bearer {TOKEN}",
        "User-Agent": "somebody",
        "X-GitHub-Api-Version": "2022-11-28",
        **headers,
    }

    async def main() -> Response:
        async with connecting({}) as net:
            return await net.send(Request(method, url, body, sent))

    return asyncio.run(main())


def graphql(fake: FakeGitHub, query: str, **variables: Any) -> Any:
    body = {"query": query, "variables": variables}
    response = send(fake, "POST", f"{fake.url}/graphql", body)
    assert response.status == 200
    return json.loads(response.body)


def check_run(**more: Any) -> dict[str, Any]:
    return {"name": "n", "head_sha": sha(1), "status": "completed", "conclusion": "failure", **more}


# --- What fits no description -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "body", "violation"),
    [
        ("GET", "issues/1/coments", None, "is no operation of GitHub's"),
        ("PUT", COMMENTS, {"body": "x"}, "is no operation of GitHub's"),
        ("GET", f"{COMMENTS}?perpage=3", None, "no parameter 'perpage'"),
        ("GET", f"{COMMENTS}?per_page=101", None, "a page has 100 at most"),
        ("GET", f"{COMMENTS}?per_page=all", None, "parameter 'per_page'"),
        ("GET", f"{COMMENTS}?since=yesterday", None, "parameter 'since'"),
        ("GET", "issues/one/comments", None, "parameter 'issue_number'"),
        ("GET", "pulls?state=opened", None, "parameter 'state'"),
        ("GET", COMMENTS, {"page": 1}, "a body where none is described"),
        ("POST", COMMENTS, None, "does not say that it is JSON"),
        ("POST", COMMENTS, {}, '"body" is a required property'),
        ("POST", COMMENTS, {"body": 1}, "the body at body: 1 is not of type"),
        ("POST", COMMENTS, {"body": "x", "bdoy": "y"}, "'bdoy' was unexpected"),
        ("POST", "check-runs", check_run(conclusion="passed"), "the body at conclusion"),
        ("POST", "check-runs", check_run(outputs={}), "'outputs' was unexpected"),
        ("POST", "check-runs", check_run(output={"title": "t", "sumary": "s"}), "at output"),
        (
            "POST",
            "check-runs",
            check_run(output={"title": "t", "summary": "s" * 65_536}),
            "at output.summary",
        ),
    ],
)
def test_a_request_that_is_not_described_is_refused_and_fails_the_test(
    method: str, path: str, body: Any, violation: str
) -> None:
    def main() -> None:
        with github() as fake:
            fake.add_pull(1)
            assert send(fake, method, path, body).status in (404, 422)
            assert (fake.comments, fake.check_runs) == ([], [])

    with pytest.raises(ViolationError) as caught:
        main()
    assert violation in str(caught.value)


@pytest.mark.parametrize(
    ("query", "variables", "violation"),
    [
        ("query {", {}, "Syntax Error"),
        ("query { viewer { name } }", {}, "Cannot query field 'name' on type 'User'"),
        ("query { viewer }", {}, "must have a selection of subfields"),
        ("query { viewer { login } }", {"number": 1}, "no variable $number"),
        (LISTED, {"first": 1}, "$number"),
        (LISTED, {"number": 1}, "You must provide a `first` or `last` value"),
        (LISTED, {"number": 1, "first": 101}, "exceeds the `first` limit of 100"),
        (MINIMIZE.replace("OUTDATED", "OLD"), {"id": "x"}, "'OLD' does not exist"),
        (MINIMIZE.replace("subjectId", "id"), {"id": "x"}, "unknown field 'id'"),
    ],
)
def test_a_query_that_fits_no_schema_fails_the_test(
    query: str, variables: Mapping[str, Any], violation: str
) -> None:
    def main() -> None:
        with github() as fake:
            fake.add_pull(1)
            assert graphql(fake, query, **variables)["errors"]

    with pytest.raises(ViolationError) as caught:
        main()
    assert violation in str(caught.value)


def test_an_answer_that_is_not_described_fails_the_test() -> None:
    def main() -> None:
        with github() as fake:
            fake.add_artifact(b"", sha(1), expiered=True)
            send(fake, "GET", "actions/artifacts")

    with pytest.raises(ViolationError, match=r"list-artifacts-for-repo answered: .*'expiered'"):
        main()


def test_a_test_that_fails_by_itself_says_that_and_no_violation() -> None:
    def main() -> None:
        with github() as fake:
            fake.violations.append("beside it")
            raise KeyError("its own")

    with pytest.raises(KeyError):
        main()


def test_a_stand_in_that_fails_is_no_cut_connection() -> None:
    def main() -> None:
        with github() as fake:
            fake.artifacts.append({})
            with pytest.raises(TrialError):
                send(fake, "GET", "actions/artifacts?name=a")

    with pytest.raises(ViolationError, match="the stand-in itself failed: KeyError"):
        main()


@pytest.mark.parametrize("operation", Operations().all, ids=lambda each: each.name)
def test_what_is_filled_in_fits(operation: Operation) -> None:
    status = {"POST": 201, "DELETE": 204}.get(operation.method, 200)
    if operation.name == "actions/download-artifact":
        status = 302
    schema = operation.answers(status)
    if schema is None:
        assert not list(operation.faults_of_reply(Reply(status=status)))
        return
    least = filled(schema, [] if schema.get("type") == "array" else {})
    assert not list(operation.faults_of_reply(as_json(least, status)))
    assert list(operation.faults_of_reply(as_json("another", status)))


def test_the_description_is_of_the_version_that_its_page_names() -> None:
    described = json.loads((FOLDER / "openapi.json").read_text(encoding="utf-8"))
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert f"| {described['info']['version']} |" in page


# --- Who may do what --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "body", "accepted"),
    [
        ("POST", COMMENTS, {"body": "x"}, "issues=write; pull_requests=write"),
        ("GET", COMMENTS, None, "issues=read; pull_requests=read"),
        ("POST", "check-runs", check_run(), "checks=write"),
        ("GET", "actions/artifacts", None, "actions=read"),
        ("GET", "pulls/1", None, "pull_requests=read"),
        ("GET", "compare/main...main", None, "contents=read"),
    ],
)
def test_who_may_not_is_told_what_it_takes(
    fake: FakeGitHub, method: str, path: str, body: Any, accepted: str
) -> None:
    fake.permissions = frozenset()
    response = send(fake, method, path, body)
    assert response.status == 403
    assert "Resource not accessible by integration" in response.text
    assert response.headers["x-accepted-github-permissions"] == accepted
    assert (fake.comments, fake.check_runs) == ([], [])


def test_who_may_only_read_may_not_write_by_either_api(fake: FakeGitHub) -> None:
    made = fake.add_comment("ours")
    fake.permissions = frozenset({"issues: read", "pull-requests: read"})
    number = f"issues/comments/{made.id}"
    assert send(fake, "PATCH", number, {"body": "x"}).status == 403
    assert send(fake, "DELETE", number).status == 403
    answer = graphql(fake, MINIMIZE, id=made.node_id)
    assert answer["data"] == {"minimizeComment": None}
    (error,) = answer["errors"]
    assert (error["type"], error["path"]) == ("FORBIDDEN", ["minimizeComment"])
    assert (made.body, made.minimized, fake.comments) == ("ours", None, [made])


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"Authorization": "Bearer other"}, 401), ({"X-GitHub-Api-Version": "2000-01-01"}, 400)],
)
def test_strangers_are_refused(fake: FakeGitHub, headers: dict[str, str], status: int) -> None:
    assert send(fake, "GET", COMMENTS, **headers).status == status


# --- Comments ---------------------------------------------------------------------------------


def test_rest_and_graphql_show_the_same_comments(fake: FakeGitHub) -> None:
    fake.add_pull(2)
    ours = fake.add_comment("ours")
    fake.add_comment("> ours", author=HUMAN)
    fake.add_comment("theirs", author=OTHER_BOT, minimized="outdated")
    fake.add_comment("of nobody", author=None)
    fake.add_comment("elsewhere", number=2)
    listed = send(fake, "GET", COMMENTS).json()
    assert isinstance(listed, list)
    shown = [
        (each["body"], (each["user"] or {}).get("login"), each["minimized"]) for each in listed
    ]
    assert shown == [
        ("ours", "github-actions[bot]", None),
        ("> ours", "mona", None),
        ("theirs", "dependabot[bot]", {"reason": "outdated"}),
        ("of nobody", None, None),
    ]
    answer = graphql(fake, LISTED, number=1, first=100)
    nodes = answer["data"]["repository"]["pullRequest"]["comments"]["nodes"]
    assert nodes[0] == {
        "id": ours.node_id,
        "body": "ours",
        "isMinimized": False,
        "viewerDidAuthor": True,
        "fullDatabaseId": str(ours.id),
        "author": {"login": "github-actions"},
    }
    told = [(each["viewerDidAuthor"], each["isMinimized"]) for each in nodes[1:]]
    assert told == [(False, False), (False, True), (False, False)]
    assert nodes[3]["author"] is None


@pytest.mark.slow
def test_three_thousand_comments_are_on_thirty_pages_of_both(fake: FakeGitHub) -> None:
    for number in range(3000):
        fake.add_comment(str(number))
    bodies, url, pages = [], f"{COMMENTS}?per_page=100", 0
    while url:
        response = send(fake, "GET", url)
        bodies += [each["body"] for each in json.loads(response.body)]
        links = dict(
            reversed(each.split("; ")) for each in response.headers.get("Link", "").split(", ")
        )
        url, pages = links.get('rel="next"', "").strip("<>"), pages + 1
    assert (bodies, pages) == ([str(number) for number in range(3000)], 30)

    bodies, after, pages = [], None, 0
    while pages == 0 or after:
        answer = graphql(fake, LISTED, number=1, first=100, after=after)
        found = answer["data"]["repository"]["pullRequest"]["comments"]
        bodies += [each["body"] for each in found["nodes"]]
        after = found["pageInfo"]["endCursor"] if found["pageInfo"]["hasNextPage"] else None
        pages += 1
    assert (bodies, pages) == ([str(number) for number in range(3000)], 30)


def test_a_cursor_outlives_the_comment_that_it_stands_for(fake: FakeGitHub) -> None:
    made = [fake.add_comment(str(number)) for number in range(4)]
    answer = graphql(fake, LISTED, number=1, first=2)
    found = answer["data"]["repository"]["pullRequest"]["comments"]
    assert send(fake, "DELETE", f"issues/comments/{made[1].id}").status == 204
    after = found["pageInfo"]["endCursor"]
    answer = graphql(fake, LISTED, number=1, first=2, after=after)
    found = answer["data"]["repository"]["pullRequest"]["comments"]
    assert [each["body"] for each in found["nodes"]] == ["2", "3"]


def test_a_comment_is_made_changed_folded_and_removed(fake: FakeGitHub) -> None:
    assert send(fake, "POST", COMMENTS, {"body": "first"}).status == 201
    (made,) = fake.comments
    assert send(fake, "PATCH", f"issues/comments/{made.id}", {"body": "second"}).status == 200
    assert (made.body, made.author, made.updated > made.created) == ("second", fake.me, True)
    answer = graphql(fake, MINIMIZE, id=made.node_id)
    told = answer["data"]["minimizeComment"]["minimizedComment"]
    assert told == {"isMinimized": True, "minimizedReason": "outdated"}
    assert (fake.bodies(), fake.bodies(shown=False)) == ([], ["second"])
    for status in (204, 404):
        assert send(fake, "DELETE", f"issues/comments/{made.id}").status == status
    error = graphql(fake, MINIMIZE, id=made.node_id)["errors"][0]
    assert error["type"] == "NOT_FOUND"
    assert fake.writes() == [
        f"POST {COMMENTS}",
        f"PATCH issues/comments/{made.id}",
        "minimizeComment",
        *[f"DELETE issues/comments/{made.id}"] * 2,
        "minimizeComment",
    ]


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ("x" * 65_536, 201, ""),
        ("\U0001f600" * 65_536, 201, ""),
        ("x" * 65_537, 422, "Body is too long (maximum is 65536 characters)"),
        (" \n", 422, "Body can't be blank"),
    ],
)
def test_a_body_has_its_limits(fake: FakeGitHub, body: str, status: int, said: str) -> None:
    response = send(fake, "POST", COMMENTS, {"body": body})
    assert response.status == status
    assert said in response.text
    assert len(fake.comments) == (status == 201)


def test_a_conversation_that_is_locked_takes_no_more(fake: FakeGitHub) -> None:
    fake.pulls[1].locked = True
    response = send(fake, "POST", COMMENTS, {"body": "x"})
    assert (response.status, "is locked" in response.text) == (403, True)


def test_an_app_is_no_user(fake: FakeGitHub) -> None:
    assert send(fake, "GET", f"{fake.url}/user").status == 403
    fake.me = HUMAN
    user: Any = send(fake, "GET", f"{fake.url}/user").json()
    assert user["login"] == "mona"


# --- Pull requests, commits, checks, runs -----------------------------------------------------


def numbers(fake: FakeGitHub, path: str) -> list[int]:
    return [each["number"] for each in json.loads(send(fake, "GET", path).body)]


def test_pull_requests_are_found_as_github_finds_them(fake: FakeGitHub) -> None:
    fake.branches["main"] = [sha(4), sha(3)]
    fake.add_pull(2, sha(20), base="next")
    fake.add_pull(3, sha(30), state="closed", merged=True, merge_commit=sha(4))
    fake.add_pull(4, sha(30), state="closed")
    fake.add_fork(5, sha(50))
    fake.is_faithful = False  # GitHub does not say that it names no repository that is deleted
    fake.add_pull(6, sha(60), repository=None)
    assert numbers(fake, "pulls") == [6, 5, 2, 1]
    assert numbers(fake, "pulls?state=all&head=octo:change") == [4, 3, 2, 1]
    assert numbers(fake, "pulls?head=stranger:change") == [5]
    assert numbers(fake, "pulls?head=octo:change&base=next") == [2]
    assert numbers(fake, f"commits/{sha(4)}/pulls") == [3]
    assert numbers(fake, f"commits/{sha(20)}/pulls") == [2]
    assert numbers(fake, f"commits/{sha(30)}/pulls") == []
    assert numbers(fake, f"commits/{sha(50)}/pulls") == []
    fake.finds_forks_by_commit = True
    assert numbers(fake, f"commits/{sha(50)}/pulls") == [5]


def test_two_branches_are_compared_from_where_they_part(fake: FakeGitHub) -> None:
    fake.branches = {"main": [sha(3), sha(1)], "change": [sha(5), sha(4), sha(1)]}
    answer = json.loads(send(fake, "GET", "compare/main...change").body)
    told = answer["merge_base_commit"]["sha"], answer["status"]
    assert told == (sha(1), "diverged")
    assert (answer["ahead_by"], answer["behind_by"]) == (2, 1)
    assert send(fake, "GET", "compare/main...gone").status == 404


def test_annotations_of_a_check_run_come_in_fifties(fake: FakeGitHub) -> None:
    fifty = [
        {"path": "a", "start_line": 1, "end_line": 1, "annotation_level": "failure", "message": "m"}
    ] * 50
    output = {"title": "t", "summary": "s", "annotations": fifty}
    made = json.loads(send(fake, "POST", "check-runs", check_run(output=output)).body)
    path = f"check-runs/{made['id']}"
    assert send(fake, "PATCH", path, {"output": output}).status == 200
    found = json.loads(send(fake, "GET", path).body)
    assert found["output"]["annotations_count"] == 100
    more = {**output, "annotations": [*fifty, fifty[0]]}
    assert send(fake, "PATCH", path, {"output": more}).status == 422
    assert "at output.annotations" in fake.violations.pop()
    assert len(fake.annotations[made["id"]]) == 100


def test_texts_of_a_check_run_are_measured_in_bytes(fake: FakeGitHub) -> None:
    output = {"title": "t", "summary": "ä" * 32_768}
    assert send(fake, "POST", "check-runs", check_run(output=output)).status == 422
    output = {"title": "t", "summary": "ä" * 32_767}
    assert send(fake, "POST", "check-runs", check_run(output=output)).status == 201


def test_an_artifact_that_expired_is_listed_and_gone(fake: FakeGitHub) -> None:
    fake.add_run(7, sha(10), event="pull_request", pull_requests=(1,), attempt=2)
    fake.runs[7].jobs = [{"id": 1, "name": "evaluate"}]
    number = fake.add_artifact(b"", sha(10), run=7, expired=True)
    fake.add_artifact(b"", sha(1))
    listed = json.loads(send(fake, "GET", "actions/runs/7/artifacts").body)
    assert [(each["id"], each["expired"]) for each in listed["artifacts"]] == [(number, True)]
    assert send(fake, "GET", f"actions/artifacts/{number}/zip").status == 410
    run = json.loads(send(fake, "GET", "actions/runs/7").body)
    assert (run["event"], run["pull_requests"][0]["number"]) == ("pull_request", 1)
    jobs = json.loads(send(fake, "GET", "actions/runs/7/attempts/2/jobs").body)
    assert [each["name"] for each in jobs["jobs"]] == ["evaluate"]
    assert send(fake, "GET", "actions/runs/7/attempts/3/jobs").status == 404


# --- What goes wrong --------------------------------------------------------------------------


@pytest.mark.parametrize("is_made", [True, False])
@pytest.mark.parametrize("reply", [refusal(502, "Server Error"), DROPPED])
def test_a_change_is_made_or_not_whatever_is_answered(
    fake: FakeGitHub, reply: Reply, is_made: bool
) -> None:
    fake.faults.append(Fault("POST", "comments", reply=reply, is_made=is_made))
    try:
        assert send(fake, "POST", COMMENTS, {"body": "x"}).status == 502
    except TrialError:
        assert reply is DROPPED
    assert len(fake.comments) == is_made
    assert send(fake, "POST", COMMENTS, {"body": "y"}).status == 201


def test_a_fault_happens_to_those_it_is_for(fake: FakeGitHub) -> None:
    fake.faults.append(Fault("GET", "comments", nth=2, times=2, reply=refusal(429, "limit")))
    fake.faults.append(Fault(part="minimizeComment", reply=refusal(500, "x")))
    assert send(fake, "GET", "pulls").status == 200
    statuses = [send(fake, "GET", COMMENTS).status for _ in range(4)]
    assert statuses == [200, 429, 429, 200]
    assert graphql(fake, LISTED, number=1, first=1)["data"]
    body = {"query": MINIMIZE, "variables": {"id": "x"}}
    assert send(fake, "POST", f"{fake.url}/graphql", body).status == 500


def test_another_writer_comes_between_exactly_where_it_should(fake: FakeGitHub) -> None:
    seen: list[list[str]] = []

    def writes() -> None:
        seen.append(fake.bodies())
        assert send(fake, "POST", COMMENTS, {"body": "quicker"}).status == 201

    fake.faults.append(
        Fault("POST", "comments", before=writes, after=lambda: seen.append(fake.bodies()))
    )
    send(fake, "POST", COMMENTS, {"body": "slower"})
    assert seen == [[], ["quicker", "slower"]]


def test_an_answer_can_be_slow(fake: FakeGitHub) -> None:
    fake.faults.append(Fault(delay_s=0.05))
    began = time.monotonic()
    send(fake, "GET", "pulls")
    assert time.monotonic() - began >= 0.05


def test_an_enterprise_server_has_other_addresses(fake: FakeGitHub) -> None:
    fake.is_enterprise = True
    assert fake.env["GITHUB_API_URL"] == f"{fake.url}/api/v3"
    assert send(fake, "GET", f"{fake.api}/repos/{REPOSITORY}/pulls").status == 200
    body = {"query": "query { viewer { login } }"}
    assert send(fake, "POST", f"{fake.url}/api/graphql", body).status == 200
    assert fake.permissions == EVERYTHING
