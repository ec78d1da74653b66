"""The issue about runs on a schedule, from the configuration to GitHub."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from servers.github import FakeGitHub, github, sha
from support.project import CASES, CONFIG, Project, changed

ASKED = CONFIG + "reports: [junit, issue: {labels: [evaluation], assignees: [mona]}]\n"


@pytest.fixture
def project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Project:
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path, capsys)


@pytest.fixture
def hub(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGitHub]:
    """Return GitHub, for which a scheduled workflow runs here."""
    with github() as found:
        given = {
            "GITHUB_ACTIONS": "true",
            "GITHUB_EVENT_NAME": "schedule",
            "GITHUB_RUN_ID": "77",
            "GITHUB_SHA": sha(11),
            "GITHUB_STEP_SUMMARY": str(project.folder / "step-summary.md"),
            "GITHUB_OUTPUT": str(project.folder / "step-outputs"),
        }
        for name, value in (found.env | given).items():
            monkeypatch.setenv(name, value)
        yield found


def worse(project: Project) -> None:
    project.traces(*CASES[:2], changed(CASES[2], "No idea."))


def test_a_scheduled_run_has_an_issue_until_it_passes_again(
    project: Project, hub: FakeGitHub
) -> None:
    project.config(ASKED)
    worse(project)
    ended = project.ci_eval("run")
    assert (ended.code, "issue created: " in ended.err) == (1, True)
    [issue] = hub.issues.values()
    assert (issue.labels, issue.assignees) == (["evaluation"], ["mona"])
    assert "tracks" in issue.body
    assert "tracks" in project.read("issue.md")

    project.traces(*CASES)
    ended = project.ci_eval("run")
    assert (ended.code, issue.state) == (0, "closed")
    assert f"issue closed: https://github.com/octo/shop/issues/{issue.number}" in ended.err


def test_the_default_reports_ask_nothing_and_write_no_document(
    project: Project, hub: FakeGitHub
) -> None:
    worse(project)
    assert project.ci_eval("run").code == 1
    assert hub.requests == []
    assert not (project.folder / "ci-eval-report/issue.md").exists()


def test_a_missing_permission_changes_no_verdict(project: Project, hub: FakeGitHub) -> None:
    project.config(ASKED)
    worse(project)
    hub.permissions = frozenset({"contents: read"})
    ended = project.ci_eval("run")
    assert ended.code == 1
    assert "no issue: GitHub refuses " in ended.err
    assert "the token needs `permissions: {issues: write}`" in ended.err


def test_a_run_that_left_no_report_is_told_in_the_issue(project: Project, hub: FakeGitHub) -> None:
    project.config(ASKED)
    (project.folder / "smoke.evalset.json").write_text("{")
    assert project.ci_eval("run").code == 4
    [issue] = hub.issues.values()
    assert "**shop was not evaluated:**" in issue.body


def test_a_wrong_option_is_named_with_its_line(project: Project) -> None:
    project.config(CONFIG + "reports:\n  - issue: {events: [push]}\n")
    ended = project.ci_eval("validate")
    assert ended.code == 4
    assert "reports[0].issue.events[0]" in ended.out + ended.err
