"""Which pull request a run is of, for every event.

`events.json` has what GitHub's documentation shows of each event, from
https://github.com/octokit/webhooks, without addresses and people; the numbers, commits and branches
of those that have to fit the repository of the test are changed.
"""

import asyncio
import copy
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from servers.github import FORK, REPOSITORY, FakeGitHub, github, refusal, sha
from servers.github.faults import Fault
from servers.loopback import as_json

from ci_eval.forge.github import GitHub, connected
from ci_eval.forge.rest import HostError
from ci_eval.pull_requests.comment_thread import PostingError
from ci_eval.pull_requests.pull_request import PullRequest, find, of_branch
from ci_eval.runtime.context import RunContext

pytestmark = pytest.mark.processes

EVENTS = json.loads(Path(__file__).with_name("events.json").read_text(encoding="utf-8"))
HEAD, MERGE = sha(10), sha(11)


@pytest.fixture
def fake() -> Iterator[FakeGitHub]:
    with github() as found:
        yield found


Found = Callable[..., PullRequest | None]


def asked(fake: FakeGitHub, folder: Path, work: Callable[[GitHub, Mapping[str, str]], Any]) -> Any:
    async def ask(env: Mapping[str, str]) -> Any:
        async with connected(RunContext(env, folder, lambda: 0.0)) as client:
            return await work(client, env)

    return asyncio.run(ask(fake.env))


@pytest.fixture
def found(fake: FakeGitHub, tmp_path: Path) -> Found:
    """Return a lookup of the pull request for a payload and variables."""

    def find_it(payload: Any = None, number: int | None = None, **env: str) -> PullRequest | None:
        path = tmp_path / "event.json"
        path.write_text(json.dumps(payload or {}))
        more = {"GITHUB_EVENT_PATH": str(path), **env}
        result = asked(fake, tmp_path, lambda client, own: find(client, {**own, **more}, number))
        assert result is None or isinstance(result, PullRequest)
        return result

    return find_it


def payload(name: str) -> Any:
    return copy.deepcopy(EVENTS[name])


# --- Events that are of a pull request --------------------------------------------------------


def test_a_pull_request_is_told_by_its_event_and_nobody_is_asked(
    fake: FakeGitHub, found: Found
) -> None:
    pull = found(payload("pull_request"))
    assert pull == PullRequest(
        2, "ec26c3e57ca3a959ca5aad62de7213c562f8c821", is_fork=False, base="master"
    )
    assert fake.requests == []


@pytest.mark.parametrize("repo", [{"full_name": "someone/Hello-World"}, None])
def test_a_fork_is_told_by_its_repository_even_where_that_is_gone(found: Found, repo: Any) -> None:
    event = payload("pull_request")
    event["pull_request"]["head"]["repo"] = repo
    pull = found(event)
    assert pull
    assert pull.is_fork


def test_a_closed_pull_request_is_none(found: Found) -> None:
    event = payload("pull_request_closed")
    assert event["pull_request"]["state"] == "closed"
    assert found(event) is None


def queued(number: int, *, base: str = "main") -> Any:
    event = payload("merge_group")
    named = event["merge_group"]["head_ref"]
    assert named.startswith("refs/heads/gh-readonly-queue/main/pr-104-")
    event["merge_group"]["head_ref"] = named.replace("pr-104-", f"pr-{number}-")
    event["merge_group"]["base_ref"] = f"refs/heads/{base}"
    return event


def test_a_merge_queue_is_told_on_the_pull_request_it_ends_with(
    fake: FakeGitHub, found: Found
) -> None:
    fake.add_pull(7, HEAD)
    pull = found(queued(7))
    assert pull
    assert (pull.number, pull.head_sha) == (7, HEAD)


def test_the_name_of_a_queue_is_not_believed(fake: FakeGitHub, found: Found) -> None:
    fake.add_pull(7, HEAD)
    fake.add_pull(8, sha(12), state="closed")
    assert found(queued(7, base="other")) is None
    assert found(queued(8)) is None
    event = queued(7)
    event["merge_group"]["head_ref"] = "refs/heads/gh-readonly-queue/main/pr-7-"
    assert found(event) is None


# --- Events that are of a commit --------------------------------------------------------------


@pytest.mark.parametrize("name", ["workflow_dispatch", "schedule"])
def test_an_event_without_a_commit_is_of_the_one_that_is_checked_out(
    fake: FakeGitHub, found: Found, name: str
) -> None:
    fake.add_pull(7, HEAD)
    # https://docs.github.com/actions: a schedule has its cron line alone.
    event = EVENTS.get(name, {"schedule": "30 5 * * 1,3"})
    pull = found(event, GITHUB_SHA=HEAD)
    assert pull
    assert pull.number == 7
    assert fake.asked() == [f"commits/{HEAD}/pulls"]


def test_a_push_is_of_the_open_pull_request_that_ends_with_its_commit(
    fake: FakeGitHub, found: Found
) -> None:
    event = payload("push")
    fake.add_pull(7, event["after"])
    fake.add_pull(8, sha(12), commits=(event["after"],))
    pull = found(event, GITHUB_SHA=sha(99))
    assert pull
    assert pull.number == 7


def test_the_merge_that_a_workflow_checks_out_is_of_its_pull_request(
    fake: FakeGitHub, found: Found
) -> None:
    fake.add_pull(7, HEAD, merge_commit=MERGE)
    pull = found(GITHUB_SHA=MERGE)
    assert pull
    assert (pull.head_sha, pull.merge_sha) == (HEAD, MERGE)


def test_a_push_that_deleted_a_branch_is_of_none(fake: FakeGitHub, found: Found) -> None:
    assert found({"after": "0" * 40}) is None
    assert fake.requests == []


@pytest.mark.parametrize("commit", ["", "main", "../../../user", HEAD.upper()[:39] + "g"])
def test_only_a_commit_is_asked_for(fake: FakeGitHub, found: Found, commit: str) -> None:
    assert found(GITHUB_SHA=commit) is None
    assert fake.requests == []


def test_a_commit_that_was_never_pushed_is_of_none(fake: FakeGitHub, found: Found) -> None:
    fake.missing.add(HEAD)
    assert found(GITHUB_SHA=HEAD) is None


def test_of_several_it_is_the_one_into_the_branch_of_the_event(
    fake: FakeGitHub, found: Found
) -> None:
    fake.add_pull(7, HEAD, base="main")
    fake.add_pull(8, HEAD, base="release")
    pull = found(GITHUB_SHA=HEAD, GITHUB_BASE_REF="release")
    assert pull
    assert pull.number == 8
    pull = found({"repository": {"default_branch": "main"}}, GITHUB_SHA=HEAD)
    assert pull
    assert pull.number == 7


def test_the_branch_of_the_event_goes_before_the_default_branch(
    fake: FakeGitHub, found: Found
) -> None:
    fake.add_pull(7, HEAD, base="main")
    fake.add_pull(8, HEAD, base="release")
    event = {"repository": {"default_branch": "main"}}
    pull = found(event, GITHUB_SHA=HEAD, GITHUB_BASE_REF="release")
    assert pull
    assert pull.number == 8


def test_where_several_are_as_good_one_has_to_be_named(fake: FakeGitHub, found: Found) -> None:
    fake.add_pull(7, HEAD, base="v1")
    fake.add_pull(8, HEAD, base="v2")
    with pytest.raises(PostingError, match=r"#[78], #[78]") as caught:
        found(GITHUB_SHA=HEAD)
    assert caught.value.hint == "select one with --pr NUMBER"


def test_that_github_refuses_is_no_answer(fake: FakeGitHub, found: Found) -> None:
    fake.script.append(refusal(403, "Resource not accessible by integration"))
    with pytest.raises(HostError, match="refuses"):
        found(GITHUB_SHA=HEAD)


# --- Another workflow run ---------------------------------------------------------------------


def ended(*, source: str | None, branch: str = "change", commit: str = HEAD) -> Any:
    event = payload("workflow_run")
    assert event["workflow_run"]["pull_requests"] == []
    repository = {"full_name": source} if source else None
    event["workflow_run"] |= {
        "head_repository": repository,
        "head_branch": branch,
        "head_sha": commit,
    }
    return event


def test_a_run_of_a_fork_is_of_the_pull_request_of_its_branch(
    fake: FakeGitHub, found: Found
) -> None:
    fake.add_fork(7, HEAD)
    fake.add_pull(8, HEAD)
    pull = found(ended(source=FORK))
    assert pull
    assert (pull.number, pull.is_fork) == (7, True)


def test_a_run_of_an_older_commit_is_of_none(fake: FakeGitHub, found: Found) -> None:
    fake.add_fork(7, sha(12))
    assert found(ended(source=FORK)) is None


def test_a_run_of_a_closed_pull_request_or_of_a_fork_that_is_gone_is_of_none(
    fake: FakeGitHub, found: Found
) -> None:
    fake.add_fork(7, HEAD, state="closed")
    assert found(ended(source=FORK)) is None
    assert found(ended(source=None)) is None


def test_a_number_in_the_event_of_another_run_counts_for_nothing(
    fake: FakeGitHub, found: Found
) -> None:
    fake.add_fork(7, HEAD)
    fake.add_pull(8, sha(12))
    event = ended(source=FORK)
    event["workflow_run"]["pull_requests"] = [{"number": 8}]
    pull = found(event)
    assert pull
    assert pull.number == 7


@pytest.mark.parametrize(("source", "branch"), [("", "change"), (FORK, "")])
def test_without_a_repository_or_a_branch_nobody_is_asked(
    fake: FakeGitHub, tmp_path: Path, source: str, branch: str
) -> None:
    fake.add_fork(7, HEAD)
    assert asked(fake, tmp_path, lambda client, _: of_branch(client, source, branch, HEAD)) == []
    assert fake.requests == []


def test_what_is_closed_is_left_out_even_where_it_is_listed(
    fake: FakeGitHub, tmp_path: Path
) -> None:
    fake.add_fork(7, HEAD)
    ends = {"ref": "change", "sha": HEAD, "repo": {"full_name": FORK}}
    base = {"ref": "main", "sha": sha(1), "repo": {"full_name": REPOSITORY}}
    fake.script.append(as_json([{"number": 7, "state": "closed", "head": ends, "base": base}]))
    assert asked(fake, tmp_path, lambda client, _: of_branch(client, FORK, "change", HEAD)) == []


def test_the_name_of_a_branch_is_no_part_of_an_address(fake: FakeGitHub, tmp_path: Path) -> None:
    branch = "a&state=closed#?/../%2e"
    fake.add_fork(7, HEAD, branch=branch)
    pulls = asked(fake, tmp_path, lambda client, _: of_branch(client, FORK, branch, HEAD))
    assert [each.number for each in pulls] == [7]
    assert fake.request.query["head"] == [f"stranger:{branch}"]
    assert fake.request.query["state"] == ["open"]


# --- A number that was given ------------------------------------------------------------------


def test_a_number_comes_before_the_event(fake: FakeGitHub, found: Found) -> None:
    fake.add_fork(7, HEAD)
    pull = found(payload("pull_request"), number=7)
    assert pull
    assert (pull.number, pull.head_sha, pull.is_fork) == (7, HEAD, True)


def test_a_number_must_be_that_of_an_open_pull_request(fake: FakeGitHub, found: Found) -> None:
    fake.add_pull(7, HEAD, state="closed")
    with pytest.raises(PostingError, match="pull request #7 is not open"):
        found(number=7)
    with pytest.raises(PostingError, match="there is no pull request #9") as caught:
        found(number=9)
    assert not caught.value.hint


def test_a_number_that_may_not_be_read_is_not_said_to_be_missing(
    fake: FakeGitHub, found: Found
) -> None:
    fake.faults.append(Fault("GET", "/pulls", reply=refusal(404, "Not Found"), times=2))
    with pytest.raises(HostError, match="or the token has no access to it") as caught:
        found(number=9)
    assert caught.value.hint == "the token needs `permissions: {pull-requests: read}`"


def test_the_repository_of_the_test_is_the_one_that_is_asked(
    fake: FakeGitHub, found: Found
) -> None:
    fake.add_pull(7, HEAD)
    found(number=7)
    assert fake.request.path == f"/repos/{REPOSITORY}/pulls/7"
