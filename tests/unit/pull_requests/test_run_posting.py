"""What is posted after a run, and that a verdict never depends on it."""

import json
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from servers.github import FORK, REPOSITORY, FakeGitHub, Fault, github, refusal, sha
from servers.gitlab import gitlab
from support.concurrent_writers import Talk, Voice
from support.report_language import make_report

from ci_eval.forge import rest
from ci_eval.pull_requests import run_posting
from ci_eval.pull_requests.comment_options import Options
from ci_eval.pull_requests.comment_sections import read
from ci_eval.pull_requests.run_posting import post
from ci_eval.pull_requests.sticky_comment import Posted
from ci_eval.records.findings import Report
from ci_eval.reporters.markdown import Markdown, marker
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.retry import Backoff

pytestmark = pytest.mark.processes

REPORT = make_report("greets pass 0.9 / refunds fail 0.2 was 0.9")
PASSED = make_report("greets pass 0.9")
UPDATE = Options("update")


@pytest.fixture
def fake() -> Iterator[FakeGitHub]:
    with github() as found:
        found.add_pull()
        yield found


class Step:
    """A step of a workflow for a pull request, and what it said."""

    def __init__(self, fake: FakeGitHub, folder: Path) -> None:
        self.fake = fake
        self.folder = folder
        self.said: list[str] = []

    def post(
        self,
        report: Any = REPORT,
        options: Options = UPDATE,
        *,
        head: str | None = REPOSITORY,
        **env: str,
    ) -> Posted:
        event = self.folder / "event.json"
        repo = {"full_name": head} if head else None
        pull = {"number": 1, "head": {"sha": sha(10), "repo": repo}}
        event.write_text(
            json.dumps({"pull_request": pull, "repository": {"full_name": REPOSITORY}})
        )
        given = {
            "GITHUB_EVENT_NAME": "pull_request",
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_RUN_ID": "77",
            "GITHUB_SHA": sha(11),
        }
        context = RunContext(
            self.fake.env | given | env, self.folder, lambda: 0.0, say=self.said.append
        )
        return post([report], options, context)


@pytest.fixture
def step(fake: FakeGitHub, tmp_path: Path) -> Step:
    return Step(fake, tmp_path)


@pytest.mark.parametrize(
    ("server", "is_linked"), [("https://github.com", True), ("https://evil.example", False)]
)
def test_a_link_of_a_report_to_another_server_is_left_out(
    step: Step, fake: FakeGitHub, server: str, is_linked: bool
) -> None:
    url = f"{server}/o/r/actions/runs/1"
    meta = REPORT.meta.model_copy(update={"url": url})
    step.post(REPORT.model_copy(update={"meta": meta}), GITHUB_SERVER_URL="https://github.com")
    (comment,) = fake.comments
    assert (f"[Log]({url})" in comment.body) is is_linked


def test_the_comment_is_written_and_then_edited_in_its_place(step: Step) -> None:
    first = step.post()
    assert first.status == "created"
    assert step.post(PASSED).status == "updated"
    [body] = step.fake.bodies()
    assert body.startswith(marker("shop"))
    assert "passed" in body
    assert "refunds" not in body
    assert step.said == []


def test_what_did_not_change_is_not_sent(step: Step) -> None:
    step.post()
    writes = [each for each in step.fake.requests if each.method in ("POST", "PATCH")]
    assert step.post().status == "unchanged"
    now = [each for each in step.fake.requests if each.method == "PATCH"]
    assert now == [each for each in writes if each.method == "PATCH"]


def test_nothing_calls_for_a_comment_but_one_that_is_there_is_kept_up_to_date(step: Step) -> None:
    on_failure = replace(UPDATE, when="failure")
    assert step.post(PASSED, on_failure).status == "none"
    assert step.post(REPORT, on_failure).status == "created"
    assert step.post(PASSED, on_failure).status == "updated"


def test_a_fork_whose_token_reads_only_is_told_without_a_warning(
    step: Step, capsys: pytest.CaptureFixture[str]
) -> None:
    step.fake.permissions = frozenset({"contents: read", "pull-requests: read"})
    assert step.post(head=FORK, GITHUB_ACTIONS="true") == Posted("deferred")
    [said] = step.said
    assert said.startswith("no comment yet: ")
    assert capsys.readouterr().out == ""


def test_a_fork_that_may_make_no_check_run_is_told_without_a_warning(
    step: Step, capsys: pytest.CaptureFixture[str]
) -> None:
    step.fake.permissions = frozenset({"contents: read", "pull-requests: read"})
    wanted = Options("off", check_run=True)
    assert step.post(head=FORK, options=wanted, GITHUB_ACTIONS="true") == Posted("off")
    [said] = step.said
    assert said.startswith("no check run: ")
    assert "forks and from Dependabot get a read-only token" in said
    assert capsys.readouterr().out == ""


def test_a_check_run_on_gitlab_is_refused_with_a_warning(step: Step) -> None:
    assert step.post(options=Options("off", check_run=True), GITLAB_CI="true") == Posted("off")
    assert step.said == ["no check run: only GitHub has them", "remove `--check-run`"]


@pytest.mark.parametrize(
    ("commit", "event", "is_posted"),
    [
        (sha(10), "workflow_dispatch", True),  # the head
        (sha(21), "workflow_dispatch", True),  # an earlier merge of it
        (sha(11), "pull_request", True),  # what GitHub merged the head into
        ("f" * 40, "workflow_dispatch", True),  # GitHub does not know it
        (sha(11), "workflow_dispatch", False),
        (sha(22), "workflow_dispatch", False),  # a merge of an earlier head
        (sha(12), "pull_request", False),
    ],
)
def test_what_another_commit_did_is_not_posted(
    step: Step, fake: FakeGitHub, commit: str, event: str, *, is_posted: bool
) -> None:
    fake.branches["main"] = [sha(11), sha(12), sha(13)]
    fake.merges = {sha(21): [sha(12), sha(10)], sha(22): [sha(12), sha(9)]}
    meta = PASSED.meta.model_copy(update={"commit": commit})
    report = PASSED.model_copy(update={"meta": meta})
    options = replace(UPDATE, pull_request=1, check_run=True)
    posted = step.post(report, options, GITHUB_EVENT_NAME=event, GITHUB_ACTIONS="true")
    assert posted.status == ("created" if is_posted else "failed")
    assert bool(fake.check_runs) is bool(fake.comments) is is_posted
    if not is_posted:
        head = f"the head of pull request #1 ({sha(10)[:7]})"
        why = f"commit {commit[:7]} was evaluated, which is neither {head} nor a merge of it"
        assert step.said == [f"no comment: {why}", "check out refs/pull/1/merge, and run again"]


def test_a_push_needs_no_permission_to_look_for_a_pull_request(
    step: Step, capsys: pytest.CaptureFixture[str]
) -> None:
    step.fake.permissions = frozenset({"contents: read"})
    pushed = {"GITHUB_EVENT_NAME": "push", "GITHUB_EVENT_PATH": "", "GITHUB_SHA": sha(10)}
    assert step.post(GITHUB_ACTIONS="true", **pushed) == Posted("none")
    [said] = step.said
    assert said.startswith("no comment: ")
    assert "pull-requests: read" in said
    assert capsys.readouterr().out == ""


def test_whoever_names_a_pull_request_is_warned_that_it_cannot_be_read(
    step: Step, capsys: pytest.CaptureFixture[str]
) -> None:
    step.fake.permissions = frozenset({"contents: read"})
    named = replace(UPDATE, pull_request=1)
    assert step.post(options=named, GITHUB_ACTIONS="true") == Posted("failed")
    assert "pull-requests: read" in capsys.readouterr().out


def test_a_server_that_does_not_answer_holds_no_job_for_long(
    step: Step, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_posting, "PATIENCE_S", 0.2)
    is_over = threading.Event()

    def until_it_is_over() -> None:
        is_over.wait(120)

    step.fake.faults.append(Fault(before=until_it_is_over))
    try:
        assert step.post() == Posted("failed")
    finally:
        is_over.set()
    assert step.said == ["no comment: it may or may not have been written: timed out after 0.2 s"]


def test_a_missing_permission_is_named_on_the_run(
    step: Step, capsys: pytest.CaptureFixture[str]
) -> None:
    step.fake.permissions = frozenset({"contents: read", "pull-requests: read"})
    assert step.post(GITHUB_ACTIONS="true") == Posted("failed")
    assert "pull-requests: write" in " ".join(step.said)
    out = capsys.readouterr().out
    assert out.startswith("::warning ")
    assert "pull-requests: write" in out


def test_without_a_token_the_run_stands(step: Step) -> None:
    assert step.post(GITHUB_TOKEN="") == Posted("failed")
    assert "no GitHub token" in step.said[0]


def test_a_check_run_is_made_whether_there_is_a_comment_or_not(step: Step) -> None:
    assert step.post(options=Options("off", check_run=True)) == Posted("off")
    [made] = step.fake.check_runs
    assert made["head_sha"] == sha(10)
    assert step.fake.bodies() == []


def test_a_merge_queue_waits_for_the_check_of_its_own_commit(step: Step) -> None:
    queue = {"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": "merge_group"}
    step.post(options=Options("off", check_run=True), **queue)
    assert [each["head_sha"] for each in step.fake.check_runs] == [sha(11)]


def test_a_check_run_that_is_refused_keeps_no_comment_back(step: Step) -> None:
    step.fake.permissions = frozenset({"pull-requests: write", "issues: write", "checks: read"})
    assert step.post(options=replace(UPDATE, check_run=True)).status == "created"
    assert "checks: write" in " ".join(step.said)


def test_where_github_is_down_a_fork_is_told_that_it_failed(
    step: Step, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest, "BACKOFF", Backoff(0.0, 0.0))
    step.fake.faults.append(Fault(reply=refusal(502, "Bad Gateway"), times=100))
    assert step.post(head=FORK) == Posted("failed")


def test_who_gets_a_token_that_reads_is_known(step: Step) -> None:
    step.fake.permissions = frozenset({"contents: read", "pull-requests: read"})
    assert step.post(GITHUB_ACTOR="dependabot[bot]") == Posted("deferred")
    assert step.post(GITHUB_ACTOR="mona") == Posted("failed")
    # The fork was deleted.
    assert step.post(GITHUB_ACTOR="mona", head=None) == Posted("deferred")
    nothing = {"GITHUB_EVENT_PATH": "", "GITHUB_SHA": sha(10)}
    assert step.post(**nothing) == Posted("failed")


def test_the_comment_is_of_the_newest_commit_and_of_this_attempt(step: Step) -> None:
    step.post(GITHUB_RUN_ID="78", GITHUB_RUN_ATTEMPT="3")
    (section,) = read("shop", step.fake.bodies()[0])
    assert (section.commit, section.run, section.attempt) == (sha(10), 78, 3)


def test_on_gitlab_it_is_of_the_pipeline_and_the_job(tmp_path: Path) -> None:
    with gitlab() as fake:
        env = {**fake.env, "CI_PIPELINE_ID": "2200000000", "CI_JOB_ID": "12300000000"}
        context = RunContext(env, tmp_path, lambda: 0.0, say=lambda _: None)
        assert post([REPORT], UPDATE, context).status == "created"
        older = replace(context, env=env | {"CI_JOB_ID": "12299999999"})
        assert post([PASSED], UPDATE, older).status == "unchanged"
        (section,) = read("shop", fake.bodies[0])
    assert (section.run, section.attempt) == (2_200_000_000, 12_300_000_000)


def test_the_job_of_a_fork_on_gitlab_has_no_token_and_is_told_without_a_warning(
    tmp_path: Path,
) -> None:
    with gitlab() as fake:
        said: list[str] = []
        source = {"CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "4712"}
        env = {**fake.env, "GITLAB_TOKEN": ""}
        assert post([REPORT], UPDATE, RunContext(env, tmp_path, lambda: 0.0)) == Posted("failed")
        context = RunContext(env | source, tmp_path, lambda: 0.0, say=said.append)
        assert post([REPORT], UPDATE, context) == Posted("deferred")
    assert said[0].startswith("no comment yet: ")


def test_jobs_that_are_told_together_are_written_once(step: Step) -> None:
    jobs = [
        each.model_copy(update={"meta": each.meta.model_copy(update={"job": job})})
        for each, job in ((REPORT, "small"), (PASSED, "large"))
    ]
    context = RunContext(step.fake.env, step.folder, lambda: 0.0, say=step.said.append)
    assert post(jobs, Options("update", "failure", 1), context).status == "created"
    assert len(step.fake.writes()) == 1
    sections = read("shop", step.fake.bodies()[0])
    assert {each.job: each.outcome for each in sections} == {"small": "failed", "large": "passed"}


class Filling(Markdown):
    """Says as much as there is room for."""

    def body(self, report: Report, fits: Callable[[str], bool]) -> str:
        del report
        long = bisect_left(range(100_000), True, key=lambda size: not fits("x" * size)) - 1
        return f"x\n\n{'x' * (long - 3)}"


@pytest.mark.parametrize("note", ["", "n" * 1_000])
def test_a_note_takes_its_room_from_the_text(note: str) -> None:
    place = run_posting.Place(Voice(Talk()), sha(10), 1, 1)
    text = run_posting.section(REPORT, place, Filling(), note=note).text
    assert run_posting.MAX_TEXT - 4 <= len(text) <= run_posting.MAX_TEXT
    assert note in text
