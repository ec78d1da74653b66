"""What is told where a key is missing, and where a run ends without a report: never green."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from servers.github import FakeGitHub, sha
from support.agent_sessions import LONG_S, waits_for
from support.project import GREETS, Project
from support.pull_request_step import pull_request_step

from ci_eval.cli import action
from ci_eval.pull_requests.comment_sections import read

AGENT = """\
import os


def answer(message):
    return os.environ["SHOP_KEY"] and "Hello!"
"""
WITH_AGENT = """\
name: shop
agents:
  bot: {python: "shop:answer", env: [SHOP_KEY]}
evalsets: {smoke: smoke.evalset.json}
criteria: {response_match_score: 0.5}
"""
WITH_JUDGE = """\
name: shop
agents:
  bot: {recorded: traces.jsonl}
evalsets: {smoke: smoke.evalset.json}
criteria: {final_response_match_v2: 0.5}
"""


@pytest.fixture
def project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Project:
    monkeypatch.chdir(tmp_path)
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY", "SHOP_KEY", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    found = Project(tmp_path, capsys)
    found.evalset(GREETS)
    found.traces(GREETS)
    (tmp_path / "shop.py").write_text(AGENT)
    return found


@pytest.fixture
def fake(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGitHub]:
    """Return GitHub with a pull request of which a step here is."""
    env = {
        "GITHUB_SHA": sha(11),
        "GITHUB_STEP_SUMMARY": str(project.folder / "step-summary.md"),
        "GITHUB_OUTPUT": str(project.folder / "step-outputs"),
    }
    with pull_request_step(project.folder, monkeypatch, **env) as found:
        yield found


def reasons(project: Project) -> list[str]:
    report = json.loads(project.read("report.json"))
    return [each["message"] for each in report["verdict"]["reasons"]]


def kept_answer(project: Project) -> None:
    """Keep an answer to some question, so that a run begins without a key."""
    cassette = project.folder / ".ci-eval/cache/judge.jsonl"
    project.config(
        WITH_JUDGE
        + "judge: {provider: scripted, answers: [{answer: {reasoning: r, "
        + "is_the_agent_response_valid: valid}}]}\n"
    )
    assert project.ci_eval("run").code == 0
    assert cassette.exists()
    project.config(WITH_JUDGE)


def test_a_case_of_which_one_criterion_was_measured_was_evaluated(project):
    (project.folder / "checks.py").write_text("def boom(observed):\n    raise ValueError\n")
    boom = 'boom: {use: ci/python, python: "checks:boom", threshold: 1}'
    config = WITH_AGENT.replace(", env: [SHOP_KEY]", "").replace("0.5}", f"0.5, {boom}}}")
    (project.folder / "shop.py").write_text("def answer(_):\n    return 'Hello, how can I help?'\n")
    project.config(config)
    ended = project.ci_eval("run")

    assert ended.code == 6
    assert "INCOMPLETE: the suite has no verdict\n" in ended.out
    assert "1 case of 1 could not be measured" in ended.out
    assert "**shop has no verdict:** 1 case of 1 could not be measured" in project.read(
        "comment.md"
    )


# --- A key is missing ---------------------------------------------------------------------------


def test_the_key_that_a_judge_lacks_is_the_first_reason_and_told_once(project: Project):
    kept_answer(project)
    ended = project.ci_eval("run")
    assert ended.code == 6
    lacks = "the judge of final_response_match_v2 lacks GOOGLE_API_KEY or GEMINI_API_KEY"
    assert reasons(project) == [f"1 case of 1 could not be measured: {lacks}"]
    assert "INCOMPLETE: the suite was not evaluated" in ended.out
    first = project.read("comment.md").splitlines()[2]
    assert first.startswith("> **shop was not evaluated:** 1 case of 1 could not be measured")
    assert "lacks GOOGLE_API_KEY or GEMINI_API_KEY." in first
    assert "[!WARNING]" in project.read("comment.md")
    assert "title=shop was not evaluated" in project.read("annotations.txt")


def test_a_stored_run_still_knows_what_it_lacked(project: Project):
    kept_answer(project)
    project.ci_eval("run")
    before = reasons(project)
    assert project.ci_eval("report").code == 6
    assert reasons(project) == before


@pytest.mark.parametrize("value", [None, ""], ids=["not set", "empty, as a secret is in a fork"])
def test_a_variable_that_an_agent_is_to_get_and_nobody_has_set_is_told(
    project: Project, monkeypatch: pytest.MonkeyPatch, value: str | None
):
    if value is not None:
        monkeypatch.setenv("SHOP_KEY", value)
    project.config(WITH_AGENT)
    (project.folder / "shop.py").write_text(
        AGENT.replace('"] and', '"] or exec("raise OSError(401)") and')
    )
    assert project.ci_eval("run").code == 6
    assert reasons(project) == ["1 case of 1 could not be measured: the agent 'bot' lacks SHOP_KEY"]


def test_an_agent_that_does_without_is_not_said_to_lack_anything(project: Project):
    project.config(WITH_AGENT)
    (project.folder / "shop.py").write_text("def answer(message):\n    return 'Hello!'\n")
    project.ci_eval("run")
    assert "lacks" not in project.read("comment.md")


# --- A run without a report ---------------------------------------------------------------------


def test_a_comment_does_not_keep_a_verdict_that_a_broken_run_did_not_reach(
    project: Project, fake: FakeGitHub, monkeypatch: pytest.MonkeyPatch
):
    project.config(WITH_AGENT)
    monkeypatch.setenv("SHOP_KEY", "a-key-of-the-shop")
    project.ci_eval("run", "--comment", "update")
    [before] = fake.bodies()
    assert "not evaluated" not in before

    monkeypatch.setenv("GITHUB_RUN_ID", "78")
    project.config(WITH_AGENT.replace("response_match_score", "final_response_match_v2"))
    ended = project.ci_eval("run", "--comment", "update")
    assert ended.code == 4
    [after] = fake.bodies()
    assert "> **shop was not evaluated:** the judge of adk/final_response_match_v2 lacks" in after
    [section] = read("shop", after)
    assert section.outcome == "incomplete"
    assert "comment updated: " in ended.err
    summary = (project.folder / "step-summary.md").read_text()
    assert "**shop was not evaluated:**" in summary
    assert summary.count("not evaluated") == 1
    outputs = (project.folder / "step-outputs").read_text()
    assert outputs.count("comment-status<<") == 2
    assert "\nupdated\n" in outputs


def test_a_key_that_is_missing_from_the_start_begins_a_comment(project: Project, fake: FakeGitHub):
    project.config(WITH_JUDGE)
    assert project.ci_eval("run", "--comment", "update").code == 4
    [body] = fake.bodies()
    assert "shop was not evaluated" in body
    assert "set it in the environment" in body
    assert "forks" not in body


@pytest.mark.parametrize(
    ("name", "value"),
    [("repeats", "three"), ("repeats", "0"), ("failed", "yes"), ("comment", "updated")],
)
def test_a_wrong_input_of_the_action_leaves_no_older_verdict(
    project: Project, fake: FakeGitHub, monkeypatch: pytest.MonkeyPatch, name: str, value: str
):
    project.config(WITH_AGENT.replace("env: [SHOP_KEY]", "env: {SHOP_KEY: x}"))
    (project.folder / "shop.py").write_text("def answer(_):\n    return 'Hello, how can I help?'\n")
    monkeypatch.setenv("INPUT_COMMENT", "update")
    assert action.main() == 0
    assert "was not evaluated" not in fake.bodies()[0]

    (project.folder / "step-outputs").unlink()
    monkeypatch.setenv("GITHUB_RUN_ID", "78")
    monkeypatch.setenv(f"INPUT_{name.upper()}", value)
    assert action.main() == 4
    [body] = fake.bodies()
    assert "shop was not evaluated" in body
    assert name in body
    assert "was not evaluated" in (project.folder / "step-summary.md").read_text()
    outputs = (project.folder / "step-outputs").read_text()
    assert "usage-error" in outputs
    assert "\nupdated\n" in outputs
    assert not (project.folder / "ci-eval-report/report.json").exists()


def test_a_merge_without_reports_leaves_no_older_verdict(
    project: Project, fake: FakeGitHub, monkeypatch: pytest.MonkeyPatch
):
    project.config(WITH_AGENT.replace("env: [SHOP_KEY]", "env: {SHOP_KEY: x}"))
    (project.folder / "shop.py").write_text("def answer(_):\n    return 'Hello, how can I help?'\n")
    monkeypatch.setenv("INPUT_COMMENT", "update")
    assert action.main() == 0

    monkeypatch.setenv("GITHUB_RUN_ID", "78")
    monkeypatch.setenv("INPUT_COMMAND", "merge")
    assert action.main() == 4
    assert "**shop was not evaluated:** Missing argument" in fake.bodies()[0]


def test_that_nothing_was_selected_begins_no_comment(project: Project, fake: FakeGitHub):
    project.config(WITH_AGENT)
    assert project.ci_eval("run", "--comment", "update", "--tag", "none").code == 5
    assert fake.bodies() == []


def test_a_configuration_that_cannot_be_read_is_of_no_suite(project: Project, fake: FakeGitHub):
    project.config("name: shop\nagents: {}\nnonsense: 1\n")
    assert project.ci_eval("run", "--comment", "update").code == 4
    assert fake.bodies() == []
    summary = (project.folder / "step-summary.md").read_text()
    assert summary.startswith("> [!WARNING]\n> **Not evaluated:** ")
    assert "more problem" in summary


def test_a_configuration_that_can_no_longer_be_read_leaves_no_older_verdict(
    project: Project, fake: FakeGitHub, monkeypatch: pytest.MonkeyPatch
):
    project.config(WITH_AGENT.replace("env: [SHOP_KEY]", "env: {SHOP_KEY: x}"))
    project.ci_eval("run", "--comment", "update")
    project.ci_eval("run", "--comment", "update", "--section", "other")

    monkeypatch.setenv("GITHUB_RUN_ID", "78")
    project.config("name: shop\nagents: {}\nnonsense: 1\n")
    assert project.ci_eval("run", "--comment", "update").code == 4
    [body] = fake.bodies()
    assert "> **Not evaluated:** " in body
    outcomes = {each.job: each.outcome for each in read("shop", body)}
    assert outcomes == {"": "incomplete", "other": "failed"}


def test_what_is_wrong_is_told_without_a_secret(
    project: Project, fake: FakeGitHub, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SHOP_KEY", "k3y-0f-the-sh0p")
    project.config(WITH_AGENT)
    project.ci_eval("run", "--comment", "update", "--case", "k3y-0f-the-sh0p")
    assert "was not evaluated" in (project.folder / "step-summary.md").read_text()
    assert "k3y-0f-the-sh0p" not in (project.folder / "step-summary.md").read_text()


@pytest.mark.slow
def test_a_run_that_is_cancelled_leaves_no_verdict_of_an_older_commit(
    project: Project, fake: FakeGitHub
):
    project.config(WITH_AGENT.replace("env: [SHOP_KEY]", "env: {SHOP_KEY: x}"))
    project.ci_eval("run", "--comment", "update")
    (project.folder / "shop.py").write_text(
        "import pathlib, time\n\n\ndef answer(message):\n"
        "    pathlib.Path('asked').touch()\n    time.sleep(600)\n"
    )
    env: dict[str, Any] = dict(os.environ) | {"GITHUB_RUN_ID": "78"}
    command = [sys.executable, "-m", "ci_eval", "run", "--comment", "update"]
    with subprocess.Popen(command, env=env, cwd=project.folder, stderr=subprocess.PIPE) as running:
        assert waits_for((project.folder / "asked").exists)
        running.send_signal(signal.SIGTERM)
        _, err = running.communicate(timeout=LONG_S)
    assert running.returncode == 2, err
    [body] = fake.bodies()
    assert "> **shop was not evaluated:** the run was interrupted" in body
