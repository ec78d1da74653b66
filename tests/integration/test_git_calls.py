"""What a whole run asks of git, and when: told by a `git` that writes down how it is called."""

import json
import os
import shutil
from pathlib import Path

import pytest
from support.git_repositories import Repo, make_hub
from support.project import CASES, CONFIG, Project

AGENT = """\
import json, pathlib, subprocess, sys

folder = pathlib.Path("hidden")
folder.mkdir(exist_ok=True)
for line in sys.stdin:
    pathlib.Path("agent-ran").touch()
    # It makes itself a repository of the folder of the configuration, with programs in it.
    if not pathlib.Path(".git").exists():
        for name in ("objects", "refs/heads", "hooks"):
            pathlib.Path(".git", name).mkdir(parents=True, exist_ok=True)
        pathlib.Path(".git/HEAD").write_text("ref: refs/heads/main")
        pathlib.Path(".git/config").write_text(
            "[core]\\n\\tfsmonitor = touch ../it-ran\\n\\tsshCommand = touch ../it-ran\\n"
            '[remote "origin"]\\n\\turl = ssh://localhost/x\\n'
        )
    # And, as it runs as we do, it changes the real one.
    with open("../.git/config", "a") as file:
        file.write("[core]\\n\\tfsmonitor = touch ../it-ran\\n")
        file.write('[remote "origin"]\\n\\tpushurl = ssh://localhost/x\\n')
    print(json.dumps({"response": "Hello"}), flush=True)
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a `git` first on the path that writes down where it is called, and after which events."""
    real = shutil.which("git")
    log, program = tmp_path / "calls.jsonl", tmp_path / "bin" / "git"
    program.parent.mkdir()
    agent_ran = tmp_path / "repo/suite/agent-ran"
    program.write_text(
        f"""#!/bin/sh
ran=false; [ -e {agent_ran} ] && ran=true
printf '{{"git_dir": "%s", "after": %s, "config": "%s"}}\\n' \\
  "$GIT_DIR" $ran "$GIT_CONFIG_GLOBAL" >>{log}
exec {real} "$@"
"""
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    for name in ("GITHUB_ACTIONS", "GITLAB_CI", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    return log


def test_after_an_agent_ran_git_is_asked_nothing_of_what_it_could_change(
    tmp_path: Path, calls: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = make_hub(tmp_path)
    repo = Repo(tmp_path / "repo")
    suite = repo.folder / "suite"
    suite.mkdir()
    project = Project(suite, capsys)
    project.config(CONFIG.replace("{recorded: traces.jsonl}", "{command: [python3, agent.py]}"))
    project.add("baseline: {store: branch}\ngate: {mode: regression, on_missing: pass}\n")
    (suite / "agent.py").write_text(AGENT)
    repo.commit("a suite")
    repo.git("remote", "add", "origin", hub.as_uri())
    repo.git("push", "--quiet", "origin", "main")
    monkeypatch.chdir(suite)

    ended = project.ci_eval("run", "--baseline-save")

    assert (suite / "agent-ran").exists()
    assert (suite / ".git/config").exists()
    assert not (repo.folder / "it-ran").exists()
    assert "stored" in ended.err
    assert project.run_json()["meta"]["commit"] == repo.head
    assert Repo(hub).git("ls-tree", "-r", "--name-only", "ci-eval-data")
    rows = [json.loads(line) for line in calls.read_text().splitlines()]
    own = str(repo.folder / ".git")
    assert all(row["git_dir"] for row in rows)
    assert {row["after"] for row in rows} == {True, False}
    assert [row for row in rows if row["after"] and row["git_dir"].startswith(own)] == []
    assert len(project.run_json()["results"]) == len(CASES)
