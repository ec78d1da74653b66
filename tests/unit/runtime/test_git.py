"""Asking git: what it gets, what it may do, and how it fails."""

import os
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import pytest
from support.git_repositories import ENV, Repo

from ci_eval.runtime import git
from ci_eval.runtime.git import GitError, Repository


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo(tmp_path / "repo")
    made.commit("a", **{"a.txt": "one"})
    return made


def fake_git(folder: Path, script: str) -> Repository:
    """Return a repository whose git is a shell script."""
    program = folder / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return Repository(folder, {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"})


def refusal(repository: Repository, *args: str) -> str:
    with pytest.raises(GitError) as caught:
        repository.run(*args)
    return str(caught.value)


def test_git_gets_no_settings_and_no_variables_of_the_job(tmp_path: Path) -> None:
    asked = fake_git(tmp_path, "env")
    of_job = {
        "API_KEY": "s3cret",
        "HOME": "/home/me",
        "GIT_DIR": "/other",
        "GIT_WORK_TREE": "/other",
        "GIT_SSH_COMMAND": "ssh -v",
        "GIT_EXTERNAL_DIFF": "/other/program",
        "GIT_CONFIG_GLOBAL": "/other/config",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": "/other/program",
        "GIT_CONFIG_PARAMETERS": "'core.fsmonitor=/other/program'",
        "GIT_TRACE": "/other/trace",
    }
    env = {**asked.env, **of_job}
    got = dict(line.split("=", 1) for line in Repository(tmp_path, env).query("x").splitlines())
    assert got["GIT_DIR"] == str(tmp_path)
    assert (got["GIT_CONFIG_GLOBAL"], got["GIT_CONFIG_NOSYSTEM"]) == (os.devnull, "1")
    assert not {name for name, value in of_job.items() if got.get(name) == value}
    assert b"GIT_SSH_COMMAND=ssh -v" in Repository(tmp_path, env).run("x", remote=True)


@pytest.mark.parametrize("relative", ["", ".", "bin"])
def test_no_program_of_the_working_directory_is_taken_for_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, relative: str
) -> None:
    fake_git(tmp_path, f"touch {tmp_path}/started")
    (tmp_path / "git").symlink_to("bin/git")
    monkeypatch.chdir(tmp_path)
    Repository(tmp_path, {"PATH": f"{relative}:{os.environ['PATH']}"}).query("version")
    assert not (tmp_path / "started").exists()


def test_it_is_said_what_git_says_in_one_line_without_logins_and_advice(tmp_path: Path) -> None:
    said = r"hint: do\nfatal: no \033[31mway\033[0m to https://me:s3cret@host/x\n  at all\n"
    repository = fake_git(tmp_path, f"printf '{said}' >&2; exit 128")
    assert refusal(repository, "x") == "fatal: no  [31mway [0m to https://host/x at all"


def test_a_flood_is_cut(tmp_path: Path) -> None:
    repository = fake_git(tmp_path, "head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1")
    assert len(refusal(repository, "x")) == 500


def test_a_silent_failure_has_a_code(tmp_path: Path) -> None:
    assert refusal(fake_git(tmp_path, "exit 3"), "fetch") == "git fetch exited with code 3"


def test_git_that_is_not_there_is_named(tmp_path: Path) -> None:
    repository = Repository(tmp_path, {"PATH": str(tmp_path)})
    assert refusal(repository, "x") == "git is not installed, or not on the PATH"
    assert repository.query("rev-parse", "HEAD") == ""


def test_what_takes_too_long_ends_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git, "TIMEOUT_S", 0.01)
    told = tmp_path / "told"
    os.mkfifo(told)
    script = f"exec 9>{told}; (echo begun >&9; sleep 60; echo late >&9) & sleep 60; echo late >&9"
    repository = fake_git(tmp_path, script)
    with ExitStack() as stack:
        heard: list[IO[bytes]] = []
        communicate = subprocess.Popen.communicate

        def once_begun(*given: Any, **options: Any) -> Any:
            heard.append(stack.enter_context(told.open("rb")))
            assert heard[0].readline() == b"begun\n"
            return communicate(*given, **options)

        monkeypatch.setattr(subprocess.Popen, "communicate", once_begun)
        assert refusal(repository, "status") == "git status timed out after 0.01 s"
        # Who could still say something keeps this from its end.
        assert heard[0].read() == b""


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_a_name_that_no_command_line_can_have_is_no_commit(repo: Repo, name: str) -> None:
    repository = Repository(repo.folder / ".git", ENV)
    assert repository.commit(name) is None
    assert refusal(repository, "show", name) == "git show: the name has invalid characters"


def test_a_blob_is_copied_as_it_is(repo: Repo, tmp_path: Path) -> None:
    Repository(repo.folder / ".git", ENV).copy("HEAD:a.txt", tmp_path / "copy", most=3)
    assert (tmp_path / "copy").read_bytes() == b"one"


@pytest.mark.parametrize(("name", "said"), [("HEAD:a.txt", "larger than 0 MiB"), ("HEAD:b", "b")])
def test_a_blob_that_is_too_long_or_not_there_is_not_copied(
    repo: Repo, tmp_path: Path, name: str, said: str
) -> None:
    with pytest.raises(GitError, match=said):
        Repository(repo.folder / ".git", ENV).copy(name, tmp_path / "copy", most=2)
    assert not (tmp_path / "copy").exists()


def test_a_tree_is_no_blob(repo: Repo, tmp_path: Path) -> None:
    with pytest.raises(GitError):
        Repository(repo.folder / ".git", ENV).copy("HEAD^{tree}", tmp_path / "copy", most=10**6)
