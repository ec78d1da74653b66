"""A fork's report on its pull request: measured by one workflow, posted by another, over HTTP.

Each command is a process of its own with the environment of its step.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from servers.github import FORK, HUMAN, REPOSITORY, TOKEN, FakeGitHub, github, sha
from support.commands import run_command
from support.project import GREETS, REFUNDS, TRACKS, Project, changed
from support.report_language import make_report, shown_by_github

from ci_eval.records.findings import Report
from ci_eval.reporters.markdown import marker

HEAD, MERGE, RUN = sha(10), sha(11), 4242
READ_ONLY = frozenset({"actions: read", "contents: read", "pull-requests: read"})
PUBLISHER = frozenset({"actions: read", "pull-requests: write"})
SHOP = marker("shop")


class Done(NamedTuple):
    """How a step ended."""

    code: int
    out: str
    err: str
    outputs: Mapping[str, str]


class Runner:
    """Runs steps as a workflow does."""

    def __init__(self, fake: FakeGitHub, folder: Path) -> None:
        self.fake = fake
        self.folder = folder

    def run(self, *arguments: str, event: str, payload: Any, **env: str) -> Done:
        (self.folder / "event.json").write_text(json.dumps(payload))
        outputs = self.folder / "outputs"
        outputs.write_text("")
        given = {
            "PATH": os.environ["PATH"],
            "GITHUB_EVENT_NAME": event,
            "GITHUB_EVENT_PATH": str(self.folder / "event.json"),
            "GITHUB_OUTPUT": str(outputs),
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_RUN_ID": "1",
            "GITHUB_RUN_ATTEMPT": "1",
        }
        ended = run_command(*arguments, folder=self.folder, env=given | self.fake.env | env)
        assert "Traceback" not in ended.err, ended.err
        assert TOKEN not in ended.out + ended.err
        return Done(*ended, _read(outputs))

    def publish(self, *arguments: str, head: str = HEAD, number: int = RUN, **env: str) -> Done:
        """Do what the step of `publish.yml` does."""
        payload = {"workflow_run": {"id": number, "head_sha": head, "pull_requests": []}}
        return self.run("publish", *arguments, event="workflow_run", payload=payload, **env)


def _read(path: Path) -> dict[str, str]:
    """Return outputs, none of which has several lines."""
    lines = path.read_text().splitlines()
    return {
        name.partition("<<")[0]: value for name, value in zip(lines[::3], lines[1::3], strict=True)
    }


@pytest.fixture
def fake() -> Iterator[FakeGitHub]:
    with github() as found:
        found.permissions = PUBLISHER
        yield found


@pytest.fixture
def runner(fake: FakeGitHub, tmp_path: Path) -> Runner:
    return Runner(fake, tmp_path)


def forked(fake: FakeGitHub, number: int = 7, **more: Any) -> None:
    """Let a fork's pull request be evaluated, without a report."""
    fake.add_fork(number, HEAD, merge_commit=MERGE, **more)
    evaluated(fake)


def evaluated(fake: FakeGitHub, **more: Any) -> None:
    given = {"branch": "change", "event": "pull_request", "repository": FORK, **more}
    fake.add_run(RUN, HEAD, **given)


def left(fake: FakeGitHub, content: Any, name: str = "ci-eval-report", **more: Any) -> None:
    """Let the run leave an artifact."""
    if isinstance(content, Report):
        content = {"report.json": content.model_dump_json().encode()}
    fake.add_artifact(content, HEAD, name=name, run=RUN, **more)


def report(suite: str = "shop", commit: str = MERGE, job: str = "evaluate") -> Report:
    found = make_report("greets pass 0.9 / refunds fail 0.2 was 0.9", suite=suite)
    meta = found.meta.model_copy(update={"commit": commit, "job": job})
    return found.model_copy(update={"meta": meta})


def test_what_a_fork_measured_stands_on_its_pull_request(
    fake: FakeGitHub, runner: Runner, capsys: pytest.CaptureFixture[str]
) -> None:
    project = Project(runner.folder, capsys)
    project.traces(GREETS, changed(REFUNDS, "No."), TRACKS)
    fake.add_fork(7, HEAD, merge_commit=MERGE)
    fake.add_pull(8, sha(12))
    payload = {
        "number": 7,
        "pull_request": {"number": 7, "head": {"sha": HEAD, "repo": {"full_name": FORK}}},
        "repository": {"full_name": REPOSITORY},
    }
    fake.permissions = READ_ONLY
    measured = runner.run(
        "run", "--comment", "update", event="pull_request", payload=payload, GITHUB_SHA=MERGE
    )
    assert measured.code == 1
    assert measured.outputs["comment-status"] == "deferred"
    assert fake.comments == []

    evaluated(fake, conclusion="failure")
    written = (runner.folder / "ci-eval-report/report.json").read_bytes()
    left(fake, {"report.json": written, "comment.md": b"@everyone <img src=//evil>"})
    fake.permissions = PUBLISHER
    posted = runner.publish()
    assert posted.code == 0, posted.err
    (body,) = fake.bodies(7)
    assert body.startswith(SHOP)
    assert "shop failed" in body
    assert "Measured by the fork's own workflow run" in body
    assert f"https://github.com/{REPOSITORY}/actions/runs/{RUN}" in body
    assert "everyone" not in body
    assert fake.bodies(8) == []
    assert posted.outputs["verdict"] == "failed"
    assert posted.outputs["exit-code"] == "0"
    assert posted.outputs["comment-status"] == "created"
    assert posted.outputs["comment-url"].endswith(str(fake.comments[0].id))

    again = runner.publish()
    assert again.outputs["comment-status"] == "unchanged"
    assert len(fake.comments) == 1


def test_what_is_not_decided_is_posted_and_counts_as_passed(
    fake: FakeGitHub, runner: Runner
) -> None:
    forked(fake)
    found = make_report("greets pass 0.9", suite="shop")
    found = found.model_copy(update={"meta": report().meta})
    verdict = found.verdict.model_copy(update={"outcome": "passed", "undecided": "too few trials"})
    left(fake, found.model_copy(update={"verdict": verdict}))

    ended = runner.publish("--json")

    assert (ended.code, ended.outputs["verdict"]) == (0, "passed"), ended.err
    assert [each["verdict"] for each in json.loads(ended.out)["told"]] == ["passed"]
    assert "not decided" in fake.bodies(7)[0]


def test_a_matrix_is_one_comment(fake: FakeGitHub, runner: Runner) -> None:
    forked(fake)
    for name in ("small", "large"):
        left(fake, report(job=name), f"ci-eval-report-{name}")
    left(fake, {"other.txt": b"x"}, "coverage")
    assert runner.publish().code == 0
    (body,) = fake.bodies(7)
    assert "<code>small</code>" in body
    assert "<code>large</code>" in body


def test_two_pull_requests_of_a_branch_are_told_apart_by_the_merge(
    fake: FakeGitHub, runner: Runner
) -> None:
    forked(fake)
    fake.add_fork(8, HEAD, base="release", merge_commit=sha(13))
    left(fake, report(commit=sha(13)))
    assert runner.publish().code == 0
    assert fake.bodies(7) == []
    assert len(fake.bodies(8)) == 1


@pytest.mark.slow
def test_where_they_cannot_be_told_apart_nothing_is_written(
    fake: FakeGitHub, runner: Runner
) -> None:
    forked(fake)
    fake.add_fork(8, HEAD, base="release", merge_commit=sha(13))
    left(fake, report(commit=HEAD))
    ended = runner.publish()
    assert ended.code == 0
    assert "the run may belong to any of the pull requests #8, #7" in ended.err
    assert fake.comments == []
    assert runner.publish("--pr", "8").outputs["comment-status"] == "created"
    assert len(fake.bodies(8)) == 1


@pytest.mark.parametrize("change", [{"head": sha(12)}, {"state": "closed"}])
def test_a_pull_request_that_moved_on_is_left_alone(
    fake: FakeGitHub, runner: Runner, change: dict[str, str]
) -> None:
    forked(fake)
    left(fake, report())
    for name, value in change.items():
        setattr(fake.pulls[7], name, value)
    ended = runner.publish()
    assert ended.code == 0
    assert f"no open pull request has the head commit {HEAD[:10]}" in ended.err
    assert ended.outputs["comment-status"] == "none"
    assert fake.comments == []
    assert fake.asked("zip") == []


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"event": "push"}, "was triggered by 'push'"),
        ({"event": "schedule"}, "was triggered by 'schedule'"),
        ({"status": "in_progress", "conclusion": None}, "has not finished"),
        ({"repository": None}, "no open pull request"),
    ],
)
def test_there_is_nothing_to_do_for_other_runs(
    fake: FakeGitHub, runner: Runner, more: dict[str, Any], said: str
) -> None:
    # GitHub's description knows no fork that is gone; its answers do.
    fake.is_faithful = more.get("repository", FORK) is not None
    fake.add_fork(7, HEAD)
    evaluated(fake, **more)
    ended = runner.publish()
    assert ended.code == 0
    assert said in ended.err
    assert fake.comments == []


def test_an_event_that_github_knows_otherwise_is_refused(fake: FakeGitHub, runner: Runner) -> None:
    forked(fake)
    ended = runner.publish(head=sha(12))
    assert ended.code == 4
    assert f"the event does not match workflow run {RUN} of {REPOSITORY}" in ended.err


def test_where_the_token_may_not_write_the_permission_is_named(
    fake: FakeGitHub, runner: Runner
) -> None:
    forked(fake)
    left(fake, report())
    fake.permissions = READ_ONLY
    ended = runner.publish()
    assert ended.code == 4
    assert "pull-requests: write" in ended.err
    assert ended.outputs["comment-status"] == "failed"


# --- What is no report ------------------------------------------------------------------------


def hostile(suite: str) -> Report:
    found = report(suite)
    evil = "</details><img src=x onerror=y> @octocat ![a](http://evil/) ::error::x <!-- ci-eval:end"
    meta = found.meta.model_copy(update={"job": evil, "warnings": (evil,), "config": evil})
    return found.model_copy(update={"meta": meta})


@pytest.mark.slow
def test_hostile_artifacts_are_said_and_the_others_still_posted(
    fake: FakeGitHub, runner: Runner
) -> None:
    forked(fake)
    group = json.loads(report().model_dump_json())
    group["groups"] *= 10_000
    left(fake, {"report.json": b" " * (1 << 25)}, "ci-eval-report-bomb")
    left(fake, report(), "ci-eval-report-claims", size_in_bytes=1 << 30)
    left(fake, {"../report.json": b"x"}, "ci-eval-report-elsewhere")
    left(fake, {"report.json": json.dumps(group).encode()}, "ci-eval-report-groups")
    left(fake, {"report.json": b'{"verdict": 1}'}, "ci-eval-report-json")
    left(fake, b"garbage", "ci-eval-report-zip")
    left(fake, report(), "ci-eval-report-old", expired=True)
    left(fake, report("good"), "ci-eval-report-good")
    ended = runner.publish()
    assert ended.code == 4
    for said in (
        "-bomb'/report.json: is larger than 16 MiB",
        "-claims': has 1,073,741,824 bytes",
        "-elsewhere': expected one report.json at its top level, found 0",
        "-groups'/report.json: groups: is longer than 2,000",
        "-json'/report.json:1: has schema version",
        "-zip': is not a readable ZIP archive",
        "-old': has expired",
    ):
        assert said in ended.err
    (body,) = fake.bodies(7)
    assert body.startswith(marker("good"))


def test_a_report_of_a_stranger_touches_no_comment_but_ours_on_that_pull_request(
    fake: FakeGitHub, runner: Runner
) -> None:
    forked(fake)
    fake.add_pull(8, sha(12))
    theirs = fake.add_comment(f"{SHOP}\nlooks like ours", number=7, author=HUMAN)
    ours = fake.add_comment(f"{SHOP}\nof another one", number=8)
    left(fake, hostile("shop --> <b>"))
    left(fake, report("shop"), "ci-eval-report-2")
    assert runner.publish().code == 0
    assert theirs.body.endswith("looks like ours")
    assert ours.body.endswith("of another one")
    bodies = fake.bodies(7)
    assert len(bodies) == 2
    for body in map(shown_by_github, bodies):
        assert "<img" not in body
        assert "evil/" not in re.findall('href="([^"]*)"', body)


def test_a_stranger_gets_no_more_comments_than_there_are_suites(
    fake: FakeGitHub, runner: Runner
) -> None:
    forked(fake)
    for number in range(20):
        fake.add_comment(f"{marker(f's{number}')}\nx", number=7)
    left(fake, report("one more"))
    ended = runner.publish()
    assert ended.code == 4
    assert "no comment for suite 'one more': the maximum is 20 suites" in ended.err
    assert len(fake.bodies(7)) == 20


def test_a_commit_that_is_not_of_the_pull_request_is_said(fake: FakeGitHub, runner: Runner) -> None:
    forked(fake)
    left(fake, report(commit=sha(99)))
    assert runner.publish().code == 0
    (body,) = fake.bodies(7)
    assert f"The report names commit `{sha(99)[:10]}`, which is neither" in body
    assert f"Commit [<code>{HEAD[:10]}</code>](" in body


def test_what_a_fork_measured_makes_no_check(fake: FakeGitHub, runner: Runner) -> None:
    fake.permissions = PUBLISHER | {"checks: write"}
    forked(fake)
    left(fake, report())
    ended = runner.publish("--check-run")
    assert ended.code == 0
    assert "no check run: measurements of a fork are not trusted" in ended.err
    assert fake.check_runs == []


# --- No report --------------------------------------------------------------------------------


def test_a_run_without_a_report_is_not_evaluated_until_there_is_one(
    fake: FakeGitHub, runner: Runner
) -> None:
    forked(fake)
    fake.runs[RUN].conclusion = "cancelled"
    ended = runner.publish()
    assert ended.code == 0
    (body,) = fake.bodies(7)
    assert "**Not evaluated:** the workflow run ended with `cancelled`" in body
    assert "✅" not in body
    assert ended.outputs["verdict"] == "incomplete"
    assert ended.outputs["exit-code"] == "0"

    left(fake, report())
    assert runner.publish().code == 0
    (body,) = fake.bodies(7)
    assert body.startswith(SHOP)
    assert "Not evaluated" not in body


def test_the_comment_on_an_older_commit_says_that_the_newer_was_not_evaluated(
    fake: FakeGitHub, runner: Runner
) -> None:
    forked(fake)
    left(fake, make_report("greets pass 0.9"))
    assert runner.publish().code == 0
    assert "passed" in fake.bodies(7)[0]

    newer = sha(14)
    fake.pulls[7].head = newer
    fake.add_run(
        RUN + 1, newer, branch="change", event="pull_request", repository=FORK, conclusion="failure"
    )
    ended = runner.publish(head=newer, number=RUN + 1)
    assert ended.code == 0, ended.err
    (body,) = fake.bodies(7)
    assert body.startswith(SHOP)
    assert "**Not evaluated:** the workflow run ended with `failure`" in body
    assert "passed" not in body


# --- Reports that are named -------------------------------------------------------------------


def test_downloaded_reports_are_posted_on_the_pull_request_of_the_event(
    fake: FakeGitHub, runner: Runner
) -> None:
    fake.add_pull(7, HEAD)
    for name in ("a", "b"):
        folder = runner.folder / "reports" / name
        folder.mkdir(parents=True)
        (folder / "report.json").write_text(report(job=name).model_dump_json())
    payload = {"pull_request": {"number": 7, "head": {"sha": HEAD}}}
    ended = runner.run("publish", "reports", "--json", event="pull_request", payload=payload)
    assert ended.code == 0, ended.err
    told = json.loads(ended.out)["told"]
    assert [each["job"] for each in told] == ["a", "b"]
    assert len(fake.bodies(7)) == 1


def test_the_page_of_a_report_is_linked_once_its_address_is_known(
    fake: FakeGitHub, runner: Runner
) -> None:
    fake.add_pull(7, HEAD)
    fake.permissions = PUBLISHER | {"checks: write"}
    (runner.folder / "report.json").write_text(report().model_dump_json())
    payload = {"pull_request": {"number": 7, "head": {"sha": HEAD}}}
    page, summary = "https://artifacts.example/o/r/runs/1/artifacts/2", runner.folder / "summary"
    ended = runner.run(
        *("publish", "report.json", "--check-run", "--report-url", page),
        event="pull_request",
        payload=payload,
        GITHUB_STEP_SUMMARY=str(summary),
    )
    assert ended.code == 0, ended.err
    [body] = fake.bodies(7)
    link = f"{page}#case=support%2Fsmoke%2Frefunds"
    assert f"[whole case]({link})" in body
    assert f"[Report]({page})" in body
    [check] = fake.check_runs
    assert check["details_url"] == page
    assert link in check["output"]["summary"]
    assert summary.read_text() == f"[report.html: every case]({page})\n"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("a.json", "b.json", "https://x.example/a"), "and there are 2 reports"),
        (("https://x.example/a",), "--report-url needs a REPORT"),
        (("a.json", "javascript:alert(1)"), "is not an http(s) address"),
        (("a.json", "https://x.example/a#case=b"), "is not an http(s) address"),
        (("a.json", "https://x.example/](/a"), "is not an http(s) address"),
    ],
)
def test_an_address_is_of_one_page(
    fake: FakeGitHub, runner: Runner, given: tuple[str, ...], message: str
) -> None:
    fake.add_pull(7, HEAD)
    for name in ("a", "b"):
        (runner.folder / f"{name}.json").write_text(report(job=name).model_dump_json())
    payload = {"pull_request": {"number": 7, "head": {"sha": HEAD}}}
    *reports, page = given
    ended = runner.run(
        "publish", *reports, "--report-url", page, event="pull_request", payload=payload
    )
    assert ended.code == 4
    assert message in ended.err
    assert fake.bodies(7) == []


def test_what_is_no_report_is_said_and_the_others_still_posted(
    fake: FakeGitHub, runner: Runner
) -> None:
    fake.add_pull(7, HEAD)
    (runner.folder / "good.json").write_text(report().model_dump_json())
    (runner.folder / "bad.json").write_text("{}")
    payload = {"pull_request": {"number": 7, "head": {"sha": HEAD}}}
    ended = runner.run(
        "publish", "bad.json", "none", "good.json", event="pull_request", payload=payload
    )
    assert ended.code == 4
    assert "bad.json:1: is not a report of ci-eval" in ended.err
    assert "none: no such file" in ended.err
    assert len(fake.bodies(7)) == 1


@pytest.mark.parametrize("is_named", [True, False])
def test_beside_a_report_that_cannot_be_read_none_passes(
    fake: FakeGitHub, runner: Runner, is_named: bool
) -> None:
    fake.permissions = PUBLISHER | {"checks: write"}
    fake.add_pull(7, HEAD, merge_commit=MERGE)
    good = make_report("greets pass 0.9").model_dump_json()
    if is_named:
        (runner.folder / "good.json").write_text(good)
        (runner.folder / "bad.json").write_text(good[:-300])
        payload = {"pull_request": {"number": 7, "head": {"sha": HEAD}}}
        given = ("good.json", "bad.json", "--check-run")
        ended = runner.run("publish", *given, event="pull_request", payload=payload)
    else:
        evaluated(fake, repository=REPOSITORY)
        left(fake, {"report.json": good.encode()}, "ci-eval-report-a")
        left(fake, {"report.json": good[:-300].encode()}, "ci-eval-report-bad")
        ended = runner.publish("--check-run", "--comment-on", "failure")
    assert (ended.code, ended.outputs["verdict"]) == (4, "incomplete")
    assert "bad" in ended.err
    (body,) = fake.bodies(7)
    assert "shop has no verdict:** another report could not be read" in body
    assert "passed:**" not in body
    [check] = fake.check_runs
    assert check["conclusion"] == "failure"


def test_a_missing_permission_is_named_on_the_run(fake: FakeGitHub, runner: Runner) -> None:
    forked(fake)
    left(fake, report())
    fake.permissions = frozenset({"contents: read", "pull-requests: write"})
    ended = runner.publish(GITHUB_ACTIONS="true")
    assert ended.code == 4
    [shown] = [line for line in ended.out.splitlines() if line.startswith("::")]
    assert shown.startswith("::error title=ci-eval::not published: GitHub refuses ")
    assert shown.endswith("; the token needs `permissions: {actions: read}`")


@pytest.mark.parametrize("event", ["", "push"])
def test_without_reports_another_run_must_have_started_this_one(runner: Runner, event: str) -> None:
    ended = runner.run("publish", event=event, payload={})
    assert ended.code == 4
    assert "there is no report to publish: " in ended.err
    assert "run this in a `workflow_run` workflow" in ended.err
    assert ended.outputs == {
        "verdict": "",
        "comment-status": "failed",
        "comment-url": "",
        "exit-code": "4",
    }
