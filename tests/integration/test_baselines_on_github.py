"""Baselines on GitHub as a workflow meets them: the command, a repository, and GitHub's API."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from servers.github import TOKEN, FakeGitHub, github, refusal
from support.project import GREETS, REFUNDS, TRACKS, Project, changed


@pytest.fixture
def fake() -> Iterator[FakeGitHub]:
    with github() as found:
        yield found


class Repo:
    """A project in a repository with two commits on `main`."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self._git("init", "--quiet", "--initial-branch=main")
        self.commit()
        self.base = self.commit()

    def commit(self) -> str:
        self._git("add", "--all", ":!ci-eval-report", ":!.ci-eval")
        self._git("commit", "--quiet", "--allow-empty", "--message=m")
        return self._git("rev-parse", "HEAD")

    def branch(self) -> None:
        self._git("checkout", "--quiet", "-b", "change")
        self.commit()

    def _git(self, *arguments: str) -> str:
        named = ("-c", "user.name=me", "-c", "user.email=me@example.com")
        command = ["git", *named, *arguments]
        done = subprocess.run(
            command, cwd=self.project.folder, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()


@pytest.fixture
def repo(
    fake: FakeGitHub,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Repo:
    for name in os.environ:
        if name.startswith(("GITHUB_", "GH_", "CI", "INPUT_")):
            monkeypatch.delenv(name)
    ours = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    for name, value in (fake.env | ours).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return Repo(Project(tmp_path, capsys))


def uploaded(fake: FakeGitHub, repo: Repo) -> None:
    """Do what a step with `actions/upload-artifact` does."""
    (path,) = (repo.project.folder / ".ci-eval/artifact").iterdir()
    fake.add_artifact({path.name: path.read_bytes()}, repo.base)


@pytest.mark.parametrize("store", ["artifact", "check_run"])
def test_what_main_saved_a_change_is_compared_with(
    fake: FakeGitHub, repo: Repo, store: str
) -> None:
    ci_eval = repo.project.ci_eval
    repo.project.add(f"baseline: {{store: {store}}}\n")
    assert ci_eval("run", "--baseline-save").code == 0
    if store == "artifact":
        uploaded(fake, repo)
    repo.branch()

    shown = ci_eval("baseline", "show", "--json")
    assert shown.code == 0, shown.err
    assert [each["commit"] for each in shown.json] == [repo.base]

    repo.project.traces(GREETS, changed(REFUNDS, "No."), TRACKS)
    ended = ci_eval("run", "--json")
    deltas = ended.json["comparison"]["deltas"]
    assert {each["group"]["criterion"] for each in deltas} == {
        "tool_trajectory_avg_score",
        "response_match_score",
    }
    assert TOKEN not in "".join(
        path.read_text() for path in (repo.project.folder / "ci-eval-report").iterdir()
    )


@pytest.mark.parametrize(
    ("store", "needs"), [("artifact", "actions: read"), ("check_run", "checks: read")]
)
def test_who_may_not_read_learns_it_before_anything_is_run(
    fake: FakeGitHub, repo: Repo, store: str, needs: str
) -> None:
    repo.project.add(f"baseline: {{store: {store}}}\n")
    fake.permissions = frozenset()
    ended = repo.project.ci_eval("run")
    assert ended.code == 6
    assert "Resource not accessible by integration" in ended.err
    assert f"the token needs `permissions: {{{needs}}}`" in ended.err
    assert TOKEN not in ended.err + ended.out
    assert not (repo.project.folder / "ci-eval-report" / "run.json").exists()


def test_a_wrong_token_is_not_repeated(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    repo.project.add("baseline: {store: check_run}\n")
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_of-somebody-else")
    ended = repo.project.ci_eval("baseline", "show", "--json")
    assert ended.code == 6
    assert "GitHub does not accept the token: Bad credentials" in ended.out
    assert "ghp_" not in ended.out + ended.err


def test_a_limit_is_waited_for_and_said(fake: FakeGitHub, repo: Repo) -> None:
    repo.project.add("baseline: {store: artifact}\n")
    fake.script.append(refusal(403, "Slow \x1b[31mdown", **{"Retry-After": "0"}))
    ended = repo.project.ci_eval("baseline", "show")
    assert ended.code == 0
    assert ended.err.startswith("GitHub rate limit exceeded: Slow down; retrying in 0 s\n")


def test_a_run_keeps_its_verdict_where_it_may_not_be_stored(fake: FakeGitHub, repo: Repo) -> None:
    repo.project.add("baseline: {store: check_run}\n")
    fake.permissions = frozenset({"checks: read", "contents: read"})
    fake.branches["main"] = [repo.base]
    ended = repo.project.ci_eval("run", "--baseline-save")
    assert ended.code == 0
    assert "not stored: GitHub refuses " in ended.err


def test_a_broken_store_is_no_verdict(fake: FakeGitHub, repo: Repo) -> None:
    repo.project.add("baseline: {store: artifact}\n")
    fake.add_artifact(b"garbage", repo.base)
    repo.branch()
    ended = repo.project.ci_eval("run")
    assert ended.code == 6
    assert ended.err.splitlines()[-3:-1] == [
        "artifact 100: is not a readable ZIP archive",
        "delete artifact 100, or store the baseline under another `name`",
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("{store: artifact, nam: x}", "unknown key"),
        ("{store: artifact, name: ''}", "must not be empty"),
        ("{store: check_run, app: 5}", "expected text, found 5"),
        ("{store: check_run, window: 0}", "must be at least 1, found 0"),
    ],
)
def test_wrong_options_have_a_line(repo: Repo, options: str, said: str) -> None:
    repo.project.add(f"baseline: {options}\n")
    ended = repo.project.ci_eval("baseline", "show")
    assert ended.code == 4
    assert ended.err.startswith("ci-eval.yaml:10: baseline")
    assert said in ended.err
