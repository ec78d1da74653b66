"""The attacks of tests/container where agents run as we do: on a laptop, or by `host/`."""

import shutil
from pathlib import Path

import pytest
from container import attacker
from support.git_repositories import Repo, make_hub
from support.project import CONFIG, Project

SCRIPT = Path(attacker.__file__)


@pytest.mark.slow
@pytest.mark.parametrize(
    "attack", ["git_folder", "git_file", "git_link", "git_pipe", "bare", "submodule", "worktree"]
)
def test_git_starts_nothing_that_an_agent_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, attack: str
) -> None:
    for name in ("GITHUB_ACTIONS", "GITLAB_CI", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    hub = make_hub(tmp_path)
    repo = Repo(tmp_path / "repo")
    suite = repo.folder / "suite"
    suite.mkdir()
    project = Project(suite, capsys)
    agent = f"{{command: [python3, attacker.py, {attack}]}}"
    project.config(CONFIG.replace("{recorded: traces.jsonl}", agent))
    project.add("baseline: {store: branch}\n")
    shutil.copy(SCRIPT, suite / "attacker.py")
    repo.commit("a suite")
    if attack == "submodule":
        repo.git("update-index", "--add", "--cacheinfo", f"160000,{repo.head},suite/lib")
        (suite / "lib").mkdir()
        repo.git("commit", "--quiet", "-m", "a submodule")
    repo.git("remote", "add", "origin", hub.as_uri())
    repo.git("push", "--quiet", "origin", "main")
    monkeypatch.chdir(suite)

    ended = project.ci_eval("run", "--baseline-save")

    assert ended.code == 1, ended.err  # the answers are wrong
    assert project.run_json()["meta"]["commit"] == repo.head
    assert Repo(hub).git("rev-parse", "--verify", "ci-eval-data")
    # Where agents are the same user, what they left may be taken for the repository next time:
    # nothing of it runs all the same.
    project.ci_eval("run", "--baseline-save")
    assert not (suite / "ran").exists()


def test_an_agent_that_is_not_kept_apart_gets_neither_tokens_nor_command_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not told of them; what it finds as the same user is not held back."""
    project = Project(tmp_path, capsys)
    (tmp_path / "agent.py").write_text(
        "import json, os, sys\n"
        "for line in sys.stdin:\n"
        "    print(json.dumps({'response': ' '.join(sorted(os.environ))}), flush=True)\n"
    )
    agent = "{command: [python3, agent.py], env: ['*']}"
    project.config(CONFIG.replace("{recorded: traces.jsonl}", agent))
    hidden = ("INPUT_GITHUB-TOKEN", "ACTIONS_RUNTIME_TOKEN", "GITHUB_TOKEN", "GITHUB_ENV")
    for name in hidden:
        monkeypatch.setenv(name, str(tmp_path / "x"))
    monkeypatch.setenv("SHOP_KEY", "x")
    monkeypatch.chdir(tmp_path)
    project.ci_eval("run", "--record", "record.jsonl")
    said = (tmp_path / "record.jsonl").read_text()
    assert "SHOP_KEY" in said
    assert not [name for name in hidden if name in said]
