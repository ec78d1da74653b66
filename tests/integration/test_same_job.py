"""Several evaluations of one suite by jobs of the same name: none hides what another found."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from servers.github import REPOSITORY, FakeGitHub
from support.project import GREETS, REFUNDS, Project, changed
from support.pull_request_step import pull_request_step

from ci_eval.pull_requests.comment_sections import read

CONFIG = """\
name: shop
agents: {good: {recorded: good.jsonl}, bad: {recorded: bad.jsonl}}
evalsets: {smoke: smoke.evalset.json}
criteria: {response_match_score: 0.5}
"""


@pytest.fixture
def project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Project:
    monkeypatch.chdir(tmp_path)
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    found = Project(tmp_path, capsys)
    found.evalset(GREETS, REFUNDS)
    found.traces(GREETS, REFUNDS, name="good.jsonl")
    found.traces(GREETS, changed(REFUNDS, "No."), name="bad.jsonl")
    for name, agent in (("ci-eval.yaml", ""), ("good.yaml", "bad"), ("bad.yaml", "good")):
        text = CONFIG.replace(f"{agent}: {{recorded: {agent}.jsonl}}", "").replace("{, ", "{")
        (tmp_path / name).write_text(text if agent else CONFIG)
    return found


@pytest.fixture
def fake(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGitHub]:
    """Return GitHub with a pull request of which a step here is."""
    ref = f"{REPOSITORY}/.github/workflows/ci.yml@refs/pull/1/merge"
    env = {"GITHUB_JOB": "evaluate", "GITHUB_WORKFLOW_REF": ref}
    with pull_request_step(project.folder, monkeypatch, **env) as found:
        yield found


def test_steps_of_a_job_keep_their_sections(
    project: Project, fake: FakeGitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ran(*arguments: str) -> dict[str, str]:
        project.ci_eval("run", "--comment", "update", *arguments)
        return {each.step: each.outcome for each in read("shop", fake.bodies(1)[0])}

    expected = {"ci.yml, bad.yaml": "failed"}
    assert ran("-c", "bad.yaml") == expected
    expected["ci.yml, good.yaml"] = "passed"
    assert ran("-c", "good.yaml") == expected
    expected["ci.yml, ci-eval.yaml, --agent good"] = "passed"
    assert ran("--agent", "good") == expected
    assert ran("-c", "bad.yaml") == expected
    assert ran("-c", "bad.yaml", "--failed") == expected
    ref = f"{REPOSITORY}/.github/workflows/nightly.yml@refs/pull/1/merge"
    monkeypatch.setenv("GITHUB_WORKFLOW_REF", ref)
    assert ran("-c", "bad.yaml") == {**expected, "nightly.yml, bad.yaml": "failed"}
    assert "shop failed in 2 of 4 jobs" in fake.bodies(1)[0]


def test_the_check_run_of_a_step_that_passes_does_not_hide_another_that_failed(
    project: Project, fake: FakeGitHub
) -> None:
    for config in ("bad.yaml", "good.yaml"):
        project.ci_eval("run", "--check-run", "-c", config)
    assert [(each["name"], each["conclusion"]) for each in fake.check_runs] == [
        ("ci-eval: shop · evaluate", "failure"),
        ("ci-eval: shop · evaluate", "failure"),
    ]


@pytest.mark.slow
def test_a_step_that_left_no_report_says_so_in_its_own_section(
    project: Project, fake: FakeGitHub
) -> None:
    project.ci_eval("run", "--comment", "update", "-c", "good.yaml")
    path = project.folder / "bad.yaml"
    path.write_text(path.read_text().replace("response_match_score", "final_response_match_v2"))
    assert project.ci_eval("run", "--comment", "update", "-c", "bad.yaml").code == 4
    sections = read("shop", fake.bodies(1)[0])
    assert [each.outcome for each in sections] == ["incomplete", "passed"]
