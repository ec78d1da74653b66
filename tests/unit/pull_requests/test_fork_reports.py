"""What a stranger's run may bring about on its pull request, and what it never does."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from servers.github import FORK, HUMAN, REPOSITORY, FakeGitHub, Fault, github, refusal, sha
from servers.loopback import as_json
from support.report_language import make_report

from ci_eval.forge import rest
from ci_eval.pull_requests.comment_layout import compose
from ci_eval.pull_requests.comment_options import Options
from ci_eval.pull_requests.comment_sections import Section, joining, read
from ci_eval.pull_requests.comment_thread import PostingError
from ci_eval.pull_requests.fork_reports import MAX_SUITES, Relayed, relay
from ci_eval.pull_requests.report_artifacts import MAX_ARTIFACTS, MAX_LISTED
from ci_eval.records.errors import UsageError
from ci_eval.records.findings import Report
from ci_eval.reporters.markdown import marker
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.retry import Backoff

pytestmark = pytest.mark.processes

HEAD, MERGE, RUN = sha(10), sha(11), 4242
UPDATE = Options("update")
FORKS = "Measured by the fork's own workflow run"


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGitHub]:
    monkeypatch.setattr(rest, "BACKOFF", Backoff(0.0, 0.0))
    with github() as found:
        found.add_fork(7, HEAD, merge_commit=MERGE)
        found.add_run(RUN, HEAD, branch="change", event="pull_request", repository=FORK)
        yield found


class Publisher:
    """A step of a workflow on `workflow_run`, and what it said."""

    def __init__(self, fake: FakeGitHub, folder: Path) -> None:
        self.fake = fake
        self.folder = folder
        self.said: list[str] = []

    def relay(self, options: Options = UPDATE, *, head: str = HEAD) -> Relayed:
        path = self.folder / "event.json"
        path.write_text(json.dumps({"workflow_run": {"id": RUN, "head_sha": head}}))
        given = {"GITHUB_EVENT_NAME": "workflow_run", "GITHUB_EVENT_PATH": str(path)}
        context = RunContext(self.fake.env | given, self.folder, lambda: 0.0, say=self.said.append)
        return relay(options, "ci-eval-report*", context)

    def left(self, *reports: Report) -> None:
        """Let the run leave an artifact with each."""
        for number, each in enumerate(reports):
            content = {"report.json": each.model_dump_json().encode()}
            name = f"ci-eval-report-{number:03}"
            self.fake.add_artifact(content, HEAD, name=name, run=RUN)


@pytest.fixture
def step(fake: FakeGitHub, tmp_path: Path) -> Publisher:
    return Publisher(fake, tmp_path)


def report(suite: str = "shop", *, job: str = "evaluate", commit: str | None = MERGE) -> Report:
    found = make_report("greets pass 0.9", suite=suite)
    meta = found.meta.model_copy(update={"commit": commit, "job": job})
    return found.model_copy(update={"meta": meta})


def of_the_repository(fake: FakeGitHub) -> None:
    """Let it be a pull request of a branch of the repository itself."""
    fake.add_pull(7, HEAD, merge_commit=MERGE)
    fake.runs[RUN].repository = REPOSITORY


def statuses(found: Relayed) -> list[str]:
    return [each.posted.status for each in found.told]


def errors(found: Relayed) -> list[str]:
    return [str(each) for each in found.errors]


# --- Which run, and which pull request ----------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"event": "push"}, "was triggered by 'push'"),
        ({"status": "in_progress", "conclusion": None}, "has not finished"),
    ],
)
def test_a_run_that_has_nothing_to_tell_is_left_alone(
    fake: FakeGitHub, step: Publisher, change: dict[str, Any], said: str
) -> None:
    for name, value in change.items():
        setattr(fake.runs[RUN], name, value)
    step.left(report())
    assert step.relay() == Relayed()
    assert said in " ".join(step.said)
    assert fake.asked("pulls") == []


def test_a_run_of_another_repository_is_not_told(fake: FakeGitHub, step: Publisher) -> None:
    run = {
        "id": RUN,
        "head_sha": HEAD,
        "repository": {"full_name": FORK},
        "event": "pull_request",
        "status": "completed",
    }
    fake.faults.append(Fault("GET", f"actions/runs/{RUN}", reply=as_json(run)))
    step.left(report())
    with pytest.raises(PostingError, match=f"does not match workflow run {RUN} of {REPOSITORY}"):
        step.relay()
    assert fake.asked("pulls") == []


@pytest.mark.parametrize("name", ["pull_request", "pull_request_target"])
def test_a_run_of_a_pull_request_is_told_there(
    fake: FakeGitHub, step: Publisher, name: str
) -> None:
    fake.runs[RUN].event = name
    step.left(report())
    assert statuses(step.relay()) == ["created"]
    assert len(fake.bodies(7)) == 1


def test_a_run_of_another_commit_than_the_event_says_is_not_told(
    fake: FakeGitHub, step: Publisher
) -> None:
    fake.runs[RUN].head = sha(12)
    step.left(report())
    with pytest.raises(PostingError, match=f"does not match workflow run {RUN}"):
        step.relay()
    assert fake.asked("pulls") == []


def test_the_same_branch_of_another_fork_is_not_meant(fake: FakeGitHub, step: Publisher) -> None:
    owner = FORK.partition("/")[0]
    fake.add_pull(7, HEAD, repository=f"{owner}/another")
    step.left(report())
    assert step.relay() == Relayed()
    assert fake.comments == []


def test_only_the_pull_request_that_is_named_is_told(fake: FakeGitHub, step: Publisher) -> None:
    step.left(report())
    assert step.relay(Options("update", pull_request=8)) == Relayed()
    assert fake.comments == []


def test_where_several_could_be_meant_and_no_report_tells_that_is_said(
    fake: FakeGitHub, step: Publisher
) -> None:
    fake.add_fork(8, HEAD, base="release", merge_commit=sha(13))
    assert step.relay() == Relayed()
    assert "any of the pull requests #8, #7" in " ".join(step.said)
    assert fake.comments == []


def test_a_report_is_not_looked_for_outside_of_such_a_workflow(
    fake: FakeGitHub, tmp_path: Path
) -> None:
    (tmp_path / "event.json").write_text('{"workflow_run": {"id": "1", "head_sha": null}}')
    given = {"GITHUB_EVENT_NAME": "workflow_run", "GITHUB_EVENT_PATH": str(tmp_path / "event.json")}
    with pytest.raises(UsageError, match="contains no workflow run"):
        relay(UPDATE, "*", RunContext(fake.env | given, tmp_path, lambda: 0.0))
    assert fake.requests == []


# --- How many comments --------------------------------------------------------------------------


def test_comments_of_others_that_begin_like_ours_take_no_room(
    fake: FakeGitHub, step: Publisher
) -> None:
    for number in range(MAX_SUITES):
        fake.add_comment(f"{marker(f's{number}')}\nx", number=7, author=HUMAN)
    step.left(report())
    assert statuses(step.relay()) == ["created"]


def test_names_that_are_too_long_for_a_comment_are_counted_too(
    fake: FakeGitHub, step: Publisher
) -> None:
    for number in range(MAX_SUITES):
        fake.add_comment(f"{marker('🙂' * 90 + str(number))}\nx", number=7)
    step.left(report())
    assert errors(step.relay()) == ["no comment for suite 'shop': the maximum is 20 suites"]
    assert len(fake.comments) == MAX_SUITES


def test_a_suite_that_has_its_comment_already_is_told_however_many_there_are(
    fake: FakeGitHub, step: Publisher
) -> None:
    for number in range(MAX_SUITES):
        fake.add_comment(f"{marker(f's{number}')}\nx", number=7)
    step.left(report("s3"))
    assert statuses(step.relay()) == ["updated"]


def test_one_run_makes_no_more_of_them_either_and_the_others_are_told(
    fake: FakeGitHub, step: Publisher
) -> None:
    for number in range(MAX_SUITES - 2):
        fake.add_comment(f"{marker(f's{number}')}\nx", number=7)
    step.left(report("a"), report("b"), report("c"), report("a", job="more"))
    found = step.relay()
    assert statuses(found) == ["created", "created", "created"]
    assert errors(found) == ["no comment for suite 'c': the maximum is 20 suites"]
    assert len(fake.bodies(7)) == MAX_SUITES


# --- What is said -------------------------------------------------------------------------------


@pytest.mark.parametrize("commit", [MERGE, HEAD, None])
def test_what_the_repository_measured_is_told_without_a_note(
    fake: FakeGitHub, step: Publisher, commit: str | None
) -> None:
    of_the_repository(fake)
    step.left(report(commit=commit))
    step.relay()
    (body,) = fake.bodies(7)
    assert "<sub>" not in body.partition("\n\n")[2].partition("\n\n")[0]
    assert FORKS not in body
    assert "neither the head" not in body


def test_a_forks_report_says_that_it_is_and_the_commit_that_github_knows(
    fake: FakeGitHub, step: Publisher
) -> None:
    step.left(report(commit=sha(99)))
    step.relay()
    (body,) = fake.bodies(7)
    assert FORKS in body
    (section,) = read("shop", body)
    assert (section.commit, section.run) == (HEAD, RUN)


def test_the_commit_that_is_shown_is_the_newest_and_not_what_the_report_names(
    fake: FakeGitHub, step: Publisher
) -> None:
    merge = fake.pulls[7].merge_commit = "c" * 40
    step.left(report(commit=merge))
    step.relay()
    (body,) = fake.bodies(7)
    assert f"Commit [<code>{HEAD[:10]}</code>](" in body
    assert "c" * 10 not in body
    assert "neither the head" not in body


def test_of_several_pull_requests_it_is_the_one_whose_merge_was_measured(
    fake: FakeGitHub, step: Publisher
) -> None:
    fake.add_fork(8, HEAD, base="release", merge_commit=sha(13))
    step.left(report(commit=sha(13)), report("other", commit=sha(14)))
    assert statuses(step.relay()) == ["created"]
    assert (len(fake.bodies(7)), len(fake.bodies(8))) == (0, 1)
    assert "any of the pull requests #8, #7" in " ".join(step.said)


def test_what_said_that_there_was_no_report_goes_when_there_is_one(
    fake: FakeGitHub, step: Publisher
) -> None:
    first = step.relay()
    assert first.notice
    assert first.notice.status == "created"
    step.left(report())
    assert statuses(step.relay()) == ["created"]
    (body,) = fake.bodies(7)
    assert body.startswith(marker("shop"))


def test_a_newer_attempt_is_newer(fake: FakeGitHub, step: Publisher) -> None:
    fake.runs[RUN].attempt = 3
    step.left(report())
    step.relay()
    (section,) = read("shop", fake.bodies(7)[0])
    assert section.attempt == 3


def test_only_what_the_repository_measured_makes_a_check(fake: FakeGitHub, step: Publisher) -> None:
    wanted = Options("off", check_run=True)
    step.left(report())
    assert statuses(step.relay(wanted)) == ["off"]
    assert fake.check_runs == []
    of_the_repository(fake)
    assert statuses(step.relay(wanted)) == ["off"]
    assert [each["head_sha"] for each in fake.check_runs] == [HEAD]
    assert fake.comments == []


def test_a_check_run_that_may_not_be_made_keeps_no_comment_back(
    fake: FakeGitHub, step: Publisher
) -> None:
    of_the_repository(fake)
    fake.permissions = frozenset({"actions: read", "pull-requests: write"})
    step.left(report("a"), report("b"))
    found = step.relay(Options("update", check_run=True))
    assert statuses(found) == ["created", "created"]
    (error,) = found.errors
    assert str(error).startswith("no check run: GitHub refuses ")
    assert "checks: write" in error.hint
    assert len(fake.asked("check-runs")) == 1


# --- Several jobs -------------------------------------------------------------------------------


def failing(job: str) -> Report:
    found = report(job=job)
    failed = make_report("greets fail 0.2")
    return failed.model_copy(update={"meta": found.meta})


def of_step(found: Report, name: str) -> Report:
    return found.model_copy(update={"meta": found.meta.model_copy(update={"step": name})})


@pytest.mark.slow
def test_a_matrix_of_many_jobs_is_written_once(fake: FakeGitHub, step: Publisher) -> None:
    jobs = [f"evaluate ({number})" for number in range(40)]
    step.left(*(report(job=job) for job in jobs))
    assert len(step.relay().told) == 40
    assert len(fake.writes()) == 1
    assert sorted(each.job for each in read("shop", fake.bodies(7)[0])) == sorted(jobs)


def test_steps_of_a_job_keep_their_names_and_are_posted_once(
    fake: FakeGitHub, step: Publisher
) -> None:
    of_the_repository(fake)
    step.left(*(of_step(failing("evaluate"), f"{name}.yml") for name in ("a", "b")))
    assert statuses(step.relay()) == ["created", "created"]
    sections = read("shop", fake.bodies(7)[0])
    assert [each.key for each in sections] == [("evaluate", "a.yml"), ("evaluate", "b.yml")]
    assert statuses(step.relay()) == ["unchanged", "unchanged"]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
def test_jobs_of_the_same_name_do_not_take_each_others_place(
    fake: FakeGitHub, step: Publisher, order: tuple[int, ...]
) -> None:
    jobs = [report(job="evaluate"), failing("evaluate"), report(job="evaluate (2)")]
    step.left(*(jobs[at] for at in order))
    step.relay()
    (body,) = fake.bodies(7)
    sections = read("shop", body)
    assert sorted(each.outcome for each in sections) == ["failed", "passed", "passed"]
    assert "shop failed in 1 of 3 jobs" in body


def test_a_job_that_passed_in_a_run_that_did_not_is_told_with_that(
    fake: FakeGitHub, step: Publisher
) -> None:
    fake.runs[RUN].conclusion = "failure"
    step.left(report())
    step.relay()
    (body,) = fake.bodies(7)
    assert "ended with `failure`, so the report of another job may be missing" in body


def test_what_a_job_of_the_repository_wrote_itself_is_left_as_it_is(
    fake: FakeGitHub, step: Publisher
) -> None:
    of_the_repository(fake)
    long = "a" * 200
    mine = [Section("shop", job, "passed", "as I like it", HEAD, RUN, 1) for job in ("small", long)]
    ours = fake.add_comment(compose([joining(each, ()) for each in mine], 65_536), number=7)
    fake.runs[RUN].attempt = 2
    step.left(report(job="small"), report(job=long))
    assert statuses(step.relay()) == ["unchanged", "unchanged"]
    assert fake.writes() == []

    step.left(report(job="small"), failing(long), report(job="new"))
    assert statuses(step.relay()) == ["updated"] * 3
    found = {each.job[:5]: each for each in read("shop", ours.body)}
    assert {name: each.outcome for name, each in found.items()} == {
        "small": "passed",
        "aaaaa": "failed",
        "new": "passed",
    }
    assert found["small"].text == "as I like it"


def test_what_a_job_wrote_itself_stays_where_the_report_of_another_cannot_be_read(
    fake: FakeGitHub, step: Publisher
) -> None:
    of_the_repository(fake)
    mine = joining(Section("shop", "small", "passed", "as I like it", HEAD, RUN, 1), ())
    ours = fake.add_comment(compose([mine], 65_536), number=7)
    step.left(report(job="small"), report(job="new"))
    fake.add_artifact(b"garbage", HEAD, name="ci-eval-report-z", run=RUN)
    assert [each.verdict for each in step.relay().told] == ["incomplete", "incomplete"]
    found = {each.job: each.outcome for each in read("shop", ours.body)}
    assert found == {"small": "passed", "new": "incomplete"}


def test_where_comments_are_off_none_says_that_there_is_no_report(
    fake: FakeGitHub, step: Publisher
) -> None:
    assert step.relay(Options("off", check_run=True)) == Relayed()
    assert fake.comments == []


# --- Which artifacts ----------------------------------------------------------------------------


def archived(each: Report) -> dict[str, bytes]:
    return {"report.json": each.model_dump_json().encode()}


def test_of_two_attempts_the_newer_artifact_counts_and_others_are_not_asked_for(
    fake: FakeGitHub, step: Publisher
) -> None:
    for suite, hour in (("older", 1), ("newest", 3), ("newer", 2)):
        fake.add_artifact(
            archived(report(suite)),
            HEAD,
            name="ci-eval-report",
            run=RUN,
            created_at=f"2026-01-01T0{hour}:00:00Z",
        )
    fake.add_artifact(archived(report("of another tool")), HEAD, name="coverage", run=RUN)
    assert [each.suite for each in step.relay().told] == ["newest"]
    assert len(fake.asked("zip")) == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [({"expired": True}, "has expired"), ({"size_in_bytes": 1 << 30}, "has 1,073,741,824 bytes")],
)
def test_what_cannot_be_had_is_not_asked_for(
    fake: FakeGitHub, step: Publisher, change: dict[str, Any], said: str
) -> None:
    name = "ci-eval-report" + "x" * 500
    fake.add_artifact(archived(report()), HEAD, name=name, run=RUN, **change)
    found = step.relay()
    assert fake.asked("zip") == []
    (error,) = errors(found)
    assert said in error
    assert len(error) < 300
    assert found.notice
    assert "left no readable report" in fake.bodies(7)[0]


@pytest.mark.slow
def test_of_very_many_artifacts_the_first_are_read_and_the_others_named(
    fake: FakeGitHub, step: Publisher
) -> None:
    step.left(*(report(job=f"job{number:02}") for number in range(MAX_ARTIFACTS + 2)))
    found = step.relay()
    assert len(found.told) == len(fake.asked("zip")) == MAX_ARTIFACTS
    assert [each.partition("'")[2] for each in errors(found)] == [
        f"ci-eval-report-{number}': was not read: the maximum is 256 artifacts per run"
        for number in (MAX_ARTIFACTS, MAX_ARTIFACTS + 1)
    ]


def test_no_more_than_five_hundred_artifacts_are_looked_at(
    fake: FakeGitHub, step: Publisher
) -> None:
    step.left(report())
    for number in range(MAX_LISTED):
        fake.add_artifact(b"", HEAD, name=f"coverage-{number}", run=RUN)
    assert step.relay().told == []
    assert len(fake.asked("artifacts")) == MAX_LISTED // 100


# --- What goes wrong ----------------------------------------------------------------------------


def test_a_report_that_could_not_be_posted_is_none_that_is_missing(
    fake: FakeGitHub, step: Publisher
) -> None:
    step.left(report("a"), report("b"))
    fake.permissions = frozenset({"actions: read", "pull-requests: read"})
    found = step.relay()
    assert (found.told, found.notice) == ([], None)
    # It would be so with the other, too.
    assert len(found.errors) == 1
    assert "pull-requests: write" in found.errors[0].hint


def test_what_was_read_before_github_went_down_is_told(fake: FakeGitHub, step: Publisher) -> None:
    step.left(report("a"), report("b"))
    fake.faults.append(Fault("GET", "/zip", nth=2, reply=refusal(500, "no"), times=100))
    found = step.relay()
    assert statuses(found) == ["created"]
    assert fake.bodies(7)[0].startswith(marker("a"))
    (error,) = errors(found)
    assert error.startswith("not published: ")


def test_a_report_that_github_finds_no_good_keeps_no_other_back(
    fake: FakeGitHub, step: Publisher
) -> None:
    step.left(report("a"), report("b"))
    refused = refusal(422, "Validation Failed")
    fake.faults.append(Fault("POST", "issues/7/comments", reply=refused))
    found = step.relay()
    assert statuses(found) == ["created"]
    assert len(found.errors) == 1


def test_where_artifacts_cannot_be_read_any_more_the_others_are_not_asked_for(
    fake: FakeGitHub, step: Publisher
) -> None:
    step.left(*(report(f"s{number}") for number in range(3)))
    unwell: Any = Fault("GET", "/zip", reply=refusal(500, "no"), times=100)
    fake.faults.append(unwell)
    with pytest.raises(PostingError, match="not published: "):
        step.relay()
    assert len(set(fake.asked("zip"))) == 1
