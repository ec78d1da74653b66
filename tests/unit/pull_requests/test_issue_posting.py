"""The issue about scheduled runs: one for a suite, and closed once it passes again."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from servers.github import (
    ACTIONS,
    HUMAN,
    REPOSITORY,
    SIGNATURE,
    TOKEN,
    FakeGitHub,
    Fault,
    github,
    refusal,
    sha,
)
from servers.gitlab import ME, PATH, FakeGitLab, gitlab
from servers.gitlab import NewIssue as NewOnGitLab
from support.report_language import make_report

from ci_eval.forge import rest
from ci_eval.forge.lineage import event_of
from ci_eval.pull_requests import run_posting
from ci_eval.pull_requests.comment_sections import read
from ci_eval.pull_requests.issue_posting import post, post_notice
from ci_eval.records.findings import Report
from ci_eval.reporters.issue import Issue
from ci_eval.reporters.markdown import marker
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.retry import Backoff

pytestmark = pytest.mark.processes

FAILED = make_report("greets pass 0.9 / refunds fail 0.2 was 0.9")
PASSED = make_report("greets pass 0.9")
ASSIGNED = Issue(labels=("evaluation",), assignees=("mona",))


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "BACKOFF", Backoff(0.0, 0.0))


@pytest.fixture
def hub() -> Iterator[FakeGitHub]:
    with github() as found:
        yield found


@pytest.fixture
def lab() -> Iterator[FakeGitLab]:
    with gitlab() as found:
        yield found


def on_github(hub: FakeGitHub, run: int = 77, event: str = "schedule") -> dict[str, str]:
    return hub.env | {
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": event,
        "GITHUB_RUN_ATTEMPT": "1",
        "GITHUB_RUN_ID": str(run),
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_SHA": sha(11),
    }


def in_job(report: Report, job: str) -> Report:
    return report.model_copy(update={"meta": report.meta.model_copy(update={"job": job})})


def posted(report: Report, env: dict[str, str], options: Issue = ASSIGNED) -> list[str]:
    """Post a report, and return what was said."""
    said: list[str] = []
    post(report, options, RunContext(env, Path(), lambda: 0.0, say=said.append))
    assert not any(secret in line for line in said for secret in (TOKEN, SIGNATURE))
    return said


# --- GitHub -----------------------------------------------------------------------------------


def test_a_failed_scheduled_run_opens_an_issue_with_the_comment_for_its_owners(
    hub: FakeGitHub,
) -> None:
    assert posted(FAILED, on_github(hub)) == [
        f"issue created: https://github.com/{REPOSITORY}/issues/1"
    ]
    [issue] = hub.issues.values()
    assert (issue.title, issue.state) == ("ci-eval: shop did not pass", "open")
    assert (issue.labels, issue.assignees) == (["evaluation"], ["mona"])
    assert issue.body.startswith(marker("shop"))
    assert "refunds" in issue.body
    assert f"[a run on `schedule`](https://github.com/{REPOSITORY}/actions/runs/77)" in issue.body


def test_another_failed_run_updates_the_open_issue(hub: FakeGitHub) -> None:
    posted(FAILED, on_github(hub))
    before = hub.issues[1].body
    [said] = posted(FAILED, on_github(hub, run=78))
    assert said.startswith("issue updated: ")
    assert len(hub.issues) == 1
    assert hub.issues[1].body != before
    assert [each.run for each in read("shop", hub.issues[1].body)] == [78]


def test_a_run_that_passes_closes_the_issue_with_a_sentence(hub: FakeGitHub) -> None:
    posted(FAILED, on_github(hub))
    [said] = posted(PASSED, on_github(hub, run=78))
    assert said == f"issue closed: https://github.com/{REPOSITORY}/issues/1"
    assert (hub.issues[1].state, hub.issues[1].reason) == ("closed", "completed")
    [comment] = hub.bodies(1)
    link = f"https://github.com/{REPOSITORY}/actions/runs/78"
    assert comment == f"shop passed again. From [a run on `schedule`]({link})."


def test_a_closed_issue_is_left_alone_and_the_next_failure_opens_another(hub: FakeGitHub) -> None:
    posted(FAILED, on_github(hub))
    posted(PASSED, on_github(hub, run=78))
    assert posted(PASSED, on_github(hub, run=79)) == []
    posted(FAILED, on_github(hub, run=80))
    assert [each.state for each in hub.issues.values()] == ["closed", "open"]
    assert len(hub.bodies(1)) == 1


def test_a_run_that_passes_without_an_issue_writes_nothing(hub: FakeGitHub) -> None:
    assert posted(PASSED, on_github(hub)) == []
    assert hub.writes() == []


@pytest.mark.parametrize("event", ["push", "pull_request", "workflow_dispatch", ""])
def test_other_events_ask_nothing(hub: FakeGitHub, event: str) -> None:
    assert posted(FAILED, on_github(hub, event=event)) == []
    assert hub.requests == []


def test_a_dispatched_run_counts_if_it_is_named(hub: FakeGitHub) -> None:
    options = Issue(events=("schedule", "workflow_dispatch"))
    posted(FAILED, on_github(hub, event="workflow_dispatch"), options)
    assert "a run on `workflow_dispatch`" in hub.issues[1].body


def test_outside_of_a_workflow_nothing_is_posted(hub: FakeGitHub) -> None:
    assert posted(FAILED, {**on_github(hub), "GITHUB_ACTIONS": ""}) == []


def test_jobs_of_a_matrix_share_an_issue_that_closes_with_the_last(hub: FakeGitHub) -> None:
    for job in ("a", "b"):
        posted(in_job(FAILED, job), on_github(hub))
    assert len(hub.issues) == 1
    assert [each.job for each in read("shop", hub.issues[1].body)] == ["a", "b"]
    posted(in_job(PASSED, "a"), on_github(hub, run=78))
    assert hub.issues[1].state == "open"
    posted(in_job(PASSED, "b"), on_github(hub, run=78))
    assert hub.issues[1].state == "closed"


def test_issues_of_others_and_of_other_suites_are_not_touched(hub: FakeGitHub) -> None:
    hub.add_pull(9)
    forged = hub.add_issue(f"{marker('shop')}\nforged", author=HUMAN)
    other = hub.add_issue(f"{marker('bakery')}\nanother suite", author=ACTIONS)
    posted(FAILED, on_github(hub))
    posted(PASSED, on_github(hub, run=78))
    assert [each.state for each in (forged, other)] == ["open", "open"]
    assert forged.body == f"{marker('shop')}\nforged"
    assert other.body == f"{marker('bakery')}\nanother suite"


def test_two_jobs_that_each_found_none_end_with_one_issue(hub: FakeGitHub) -> None:
    posted(FAILED, on_github(hub))
    hub.add_issue(hub.issues[1].body)
    posted(FAILED, on_github(hub, run=78))
    assert [each.state for each in hub.issues.values()] == ["open", "closed"]
    assert hub.issues[2].reason == "not_planned"


def test_a_missing_permission_is_named_in_a_warning(
    hub: FakeGitHub, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.permissions = frozenset({"contents: read", "issues: read"})
    said, hint = posted(FAILED, on_github(hub))
    assert re.match("no issue: GitHub refuses http.*/issues: Resource not accessible", said)
    assert hint.startswith("the token needs `permissions: {issues: write}`")
    assert capsys.readouterr().out.startswith("::warning title=ci-eval::no issue: ")


def test_an_unknown_assignee_is_reported(hub: FakeGitHub) -> None:
    [said] = posted(FAILED, on_github(hub), Issue(assignees=("nobody",)))
    assert said.endswith("Validation Failed")
    assert hub.issues == {}


def test_an_issue_that_may_have_been_opened_is_found(hub: FakeGitHub) -> None:
    hub.faults = [Fault("POST", reply=refusal(502, "Bad Gateway"), is_made=True, times=1)]
    posted(FAILED, on_github(hub))
    assert len(hub.issues) == 1


def test_a_host_that_answers_nothing_in_time_is_a_warning(
    hub: FakeGitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_posting, "PATIENCE_S", 0.0)
    [said] = posted(FAILED, on_github(hub))
    assert said == "no issue: it may or may not have been written: timed out after 0 s"


def test_a_run_without_a_report_is_told_in_the_issue(hub: FakeGitHub) -> None:
    context = RunContext(on_github(hub), Path(), lambda: 0.0, say=lambda _: None)
    post_notice("shop", "> **Not evaluated:** why.", ASSIGNED, context, wanted=False)
    assert hub.issues == {}
    post_notice("shop", "> **Not evaluated:** why.", ASSIGNED, context, wanted=True)
    assert "Not evaluated" in hub.issues[1].body
    posted(PASSED, on_github(hub, run=78))
    assert hub.issues[1].state == "closed"


# --- GitLab -----------------------------------------------------------------------------------


def test_a_scheduled_pipeline_opens_updates_and_closes_an_issue(lab: FakeGitLab) -> None:
    env = lab.schedule_env
    assert posted(FAILED, env | {"CI_PIPELINE_ID": "5"}) == [
        f"issue created: https://gitlab.example/{PATH}/-/issues/1"
    ]
    [issue] = lab.issues
    assert (issue.title, issue.labels) == ("ci-eval: shop did not pass", ["evaluation"])
    assert [each.id for each in issue.assignees] == [2]
    assert "refunds" in issue.description
    assert posted(FAILED, env | {"CI_PIPELINE_ID": "6"})[0].startswith("issue updated: ")
    assert posted(PASSED, env | {"CI_PIPELINE_ID": "7"})[0].startswith("issue closed: ")
    assert (len(lab.issues), issue.state) == (1, "closed")
    link = f"https://gitlab.example/{PATH}/-/pipelines/5"
    assert lab.said == [(1, f"shop passed again. From [a run on `schedule`]({link}).")]
    assert lab.done == []


def test_on_gitlab_issues_of_others_are_not_touched(lab: FakeGitLab) -> None:
    forged = lab.open_issue(
        NewOnGitLab(title="t", description=f"{marker('shop')}\nforged"), by=ME + 1
    )
    posted(FAILED, lab.schedule_env)
    assert (len(lab.issues), forged.description) == (2, f"{marker('shop')}\nforged")


def test_on_gitlab_a_duplicate_is_closed(lab: FakeGitLab) -> None:
    posted(FAILED, lab.schedule_env)
    lab.open_issue(NewOnGitLab(title="t", description=lab.issues[0].description))
    posted(FAILED, lab.schedule_env)
    assert [each.state for each in lab.issues] == ["opened", "closed"]


def test_an_unknown_user_of_gitlab_is_named(lab: FakeGitLab) -> None:
    [said] = posted(FAILED, lab.schedule_env, Issue(assignees=("nobody",)))
    assert said == "no issue: GitLab has no user 'nobody'; correct `assignees` in the configuration"
    assert lab.issues == []


def test_on_gitlab_a_missing_role_or_token_is_named(lab: FakeGitLab) -> None:
    lab.role = "guest"
    assert "at least the role Reporter" in posted(FAILED, lab.schedule_env)[1]
    env = {name: each for name, each in lab.schedule_env.items() if name != "GITLAB_TOKEN"}
    assert posted(FAILED, env)[0] == "no issue: no GitLab token is set"


@pytest.mark.parametrize(
    ("source", "event"),
    [("schedule", "schedule"), ("web", "workflow_dispatch"), ("push", ""), ("", "")],
)
def test_sources_of_pipelines_are_events(source: str, event: str) -> None:
    assert event_of({"GITLAB_CI": "true", "CI_PIPELINE_SOURCE": source}) == event
