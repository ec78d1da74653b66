"""The user's clone: which one it is, what is read of it, and that nothing of it is ever run."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from support.git_repositories import ENV, Repo, make_hub
from support.git_repositories import clone as cloned
from support.slow_params import some

from ci_eval.baselines import _data_branch
from ci_eval.baselines._data_branch import Change, opened
from ci_eval.forge.git_remote import Remote
from ci_eval.forge.lineage import current_branch, default_branch, trace
from ci_eval.records.errors import BaselineError, UsageError
from ci_eval.runtime import isolation
from ci_eval.runtime.clone import NO_CLONE, Clone, top_of
from ci_eval.runtime.git import GitError
from ci_eval.runtime.isolation import Account

pytestmark = pytest.mark.processes

as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away"
)
SOMEBODY = 58734


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A clone with a remote, two commits, and the folder `evals` of a configuration."""
    hub = make_hub(tmp_path)
    made = Repo(tmp_path / "repo")
    made.commit("a", **{"a.txt": "one", "evals/ci-eval.yaml": ""})
    made.commit("b")
    made.git("remote", "add", "origin", hub.as_uri())
    made.git("push", "--quiet", "origin", "main")
    made.git("remote", "set-head", "origin", "main")
    return made


def evals(repo: Repo, **env: str) -> Clone:
    """Return the clone as a configuration in `evals` finds it."""
    return Clone(repo.folder / "evals", ENV | env)


def commits(repo: Repo) -> tuple[str, ...]:
    return tuple(repo.git("rev-list", "HEAD").split())


# --- What is read -----------------------------------------------------------------------------


def test_the_view_has_commits_branches_and_tags(repo: Repo) -> None:
    repo.git("tag", "-a", "-m", "x", "v1")
    found = evals(repo)
    assert (found.top, found.common) == (repo.folder, repo.folder / ".git")
    assert (found.head, found.branch) == (repo.head, "main")
    for name in ("HEAD", "main", "origin/main", "origin/HEAD", "v1", "HEAD~1"):
        assert found.view.commit(name) == repo.git("rev-parse", f"{name}^{{commit}}")
    assert found.inside("ci-eval.yaml") == "evals/ci-eval.yaml"
    assert default_branch(found) == "main"


def test_the_clone_is_left_as_it_is(repo: Repo) -> None:
    before = repo.state()
    trace(evals(repo), base=None, search=50)
    assert repo.state() == before


def test_the_clone_is_read_once(repo: Repo) -> None:
    found = evals(repo)
    found.look()
    before = (found.head, found.view.commit("main"))
    repo.commit("later")
    repo.git("config", "remote.origin.url", "https://example.com/other.git")
    assert (found.head, found.view.commit("main")) == before
    assert not any("other.git" in each.value for each in found.settings)


def test_the_view_goes_with_the_clone(repo: Repo) -> None:
    found = evals(repo)
    view = found.view.git_dir
    assert view.stat().st_mode & 0o077 == 0
    del found
    assert not view.exists()


@pytest.mark.parametrize("options", [["--object-format=sha256"], []])
def test_a_clone_without_a_commit(tmp_path: Path, options: list[str]) -> None:
    repo = Repo(tmp_path)
    repo.git("init", "--quiet", "--initial-branch=main", *options)
    found = Clone(tmp_path, ENV)
    assert (found.top, found.head, found.branch) == (tmp_path, None, "main")
    commit = repo.commit("a")
    later = Clone(tmp_path, ENV)
    assert later.head == later.view.commit("main") == commit
    assert trace(later, base=None, search=5).own == commit


def test_a_linked_work_tree(repo: Repo, tmp_path: Path) -> None:
    repo.git("worktree", "add", "--quiet", "-b", "linked", str(tmp_path / "linked"))
    linked = Repo(tmp_path / "linked")
    commit = linked.commit("c", **{"c.txt": "c"})
    found = Clone(tmp_path / "linked" / "evals", ENV)
    assert (found.top, found.common) == (tmp_path / "linked", repo.folder / ".git")
    assert (found.head, found.branch) == (commit, "linked")
    assert trace(found, base="main", search=5).ancestors[0] == repo.head


def test_a_submodule_is_a_clone_of_its_own_but_not_what_a_job_is_about(
    repo: Repo, tmp_path: Path
) -> None:
    outer = Repo(tmp_path / "outer")
    outer.git(
        *("-c", "protocol.file.allow=always", "submodule", "--quiet", "add"),
        *((tmp_path / "hub.git").as_uri(), "deps/lib"),
    )
    outer.commit("with a submodule")
    found = Clone(outer.folder / "deps/lib/evals", ENV)
    assert (found.top, found.head) == (outer.folder / "deps/lib", repo.head)
    assert Clone(outer.folder / "deps", ENV).head == outer.head
    job = Clone(outer.folder / "deps/lib/evals", ENV | {"CI": "true"})
    assert (job.top, job.head) == (outer.folder, outer.head)


def test_a_clone_that_borrows_objects(repo: Repo, tmp_path: Path) -> None:
    shared = cloned(repo.folder, tmp_path / "shared", "--shared", "--no-local")
    Repo(repo.folder).git("clone", "--quiet", "--shared", str(repo.folder), str(tmp_path / "s"))
    for folder in (shared.folder, tmp_path / "s"):
        assert trace(Clone(folder, ENV), base=None, search=5).own == repo.head


def test_a_shallow_clone_says_so(repo: Repo, tmp_path: Path) -> None:
    shallow = cloned(repo.folder, tmp_path / "shallow", "--depth=1")
    found = trace(Clone(shallow.folder, ENV), base=None, search=5)
    assert found.shallow
    assert found.ancestors == (commits(repo)[1],)


def test_a_changed_file_is_no_commit_and_one_with_other_line_ends_is(repo: Repo) -> None:
    repo.git("config", "core.autocrlf", "true")
    os.utime(repo.folder / "a.txt", (1, 1))
    assert trace(evals(repo), base=None, search=5).own == repo.head
    repo.write("a.txt", "two")
    assert trace(evals(repo), base=None, search=5).own is None


def test_without_a_clone_everything_is_nothing(tmp_path: Path) -> None:
    for nowhere in (Clone(tmp_path, ENV), NO_CLONE):
        assert (nowhere.top, nowhere.common, nowhere.head, nowhere.branch) == (None,) * 4
        assert nowhere.settings == ()
        with pytest.raises(GitError, match="is not in a git repository"):
            nowhere.view.run("status")
        with pytest.raises(GitError):
            nowhere.inside("x")


# --- What is hostile --------------------------------------------------------------------------


def trap(run: str, folder: Path) -> str:
    """Return settings in which everything that can name a program names `run`."""
    included = folder / "included"
    included.write_text(f"[core]\n\tsshCommand = {run}\n\tfsmonitor = {run}\n")
    return f"""
[core]
    repositoryformatversion = 1
    fsmonitor = {run}
    sshCommand = {run}
    hooksPath = {folder}/hooks
    pager = {run}
    editor = {run}
    askPass = {run}
    gitProxy = {run}
    alternateRefsCommand = {run}
    attributesFile = {folder}/attributes
[extensions]
    worktreeConfig = true
    partialClone = origin
[include]
    path = {included}
[filter "x"]
    clean = {run}
    smudge = {run}
    process = {run}
    required = true
[diff]
    external = {run}
[diff "x"]
    textconv = {run}
    command = {run}
[merge "x"]
    driver = {run}
[credential]
    helper = "!{run}"
[gpg]
    program = {run}
[uploadpack]
    packObjectsHook = {run}
[alias]
    status = "!{run}"
    merge-base = "!{run}"
[pager]
    status = {run}
[protocol "ext"]
    allow = always
[url "ext::sh -c {run}% "]
    insteadOf = file://
    pushInsteadOf = file://
[submodule "deps/lib"]
    update = "!{run}"
[remote "origin"]
    promisor = true
    uploadpack = {run}
    receivepack = {run}
    vcs = x
"""


class Attack:
    """What somebody left in a clone, and whether anything of it ran."""

    def __init__(self, repo: Repo, scratch: Path) -> None:
        self.repo = repo
        self.mark = scratch / "it-ran"
        self.program = scratch / "program"
        self.program.write_text(f"#!/bin/sh\ntouch {self.mark}\ncat\n")
        self.program.chmod(0o755)
        for name in (
            "pre-push",
            "reference-transaction",
            "post-index-change",
            "fsmonitor-watchman",
        ):
            hook = scratch / "hooks" / name
            hook.parent.mkdir(exist_ok=True)
            shutil.copy(self.program, hook)
        self.settings = trap(str(self.program), scratch)
        repo.write(".gitattributes", "* filter=x diff=x merge=x\n")
        repo.write("a.txt", "changed, so that a filter would be asked")

    def bare(self, at: Path) -> Path:
        """Make what git takes for a bare repository, as a commit can hold it."""
        at.mkdir(parents=True, exist_ok=True)
        for name in ("objects", "refs/heads", "hooks"):
            (at / name).mkdir(parents=True)
        (at / "HEAD").write_text("ref: refs/heads/main\n")
        # What its settings promise to be fetched, by a program of theirs.
        (at / "refs/heads/main").write_text(f"{'1' * 40}\n")
        (at / "config").write_text(self.settings + f"[core]\n\tworktree = {self.repo.folder}\n")
        for hook in (self.program.parent / "hooks").iterdir():
            shutil.copy(hook, at / "hooks")
        return at

    def everything(self, found: Clone) -> None:
        """Ask all that is ever asked, and store something on the remote."""
        trace(found, base=None, search=50)
        current_branch(found)
        found.view.query("diff-tree", "-r", "-p", "HEAD~1", "HEAD")
        found.view.query("cat-file", "--textconv", "HEAD:a.txt")
        if found.common:
            with suppress(BaselineError, UsageError):  # of a repository that lacks what it names
                self.store(found)
        assert not self.mark.exists()

    def store(self, found: Clone) -> None:
        with opened(found, "data", "origin") as branch:
            note = self.repo.folder.parent / "note"
            note.write_text("x")
            branch.update("seed", lambda _: Change("a note", {"suites/note": note}))


def in_git_of_the_top(attack: Attack) -> None:
    with (attack.repo.folder / ".git/config").open("a") as file:
        file.write(attack.settings)
    (attack.repo.folder / ".git/config.worktree").write_text(attack.settings)
    (attack.repo.folder / ".git/refs/heads/lost").write_text(f"{'1' * 40}\n")
    for hook in (attack.program.parent / "hooks").iterdir():
        shutil.copy(hook, attack.repo.folder / ".git/hooks")


def a_bare_repository(attack: Attack) -> None:
    attack.bare(attack.repo.folder / "evals")


def a_bare_repository_above(attack: Attack) -> None:
    attack.bare(attack.repo.folder)


def a_submodule_that_is_none(attack: Attack) -> None:
    repo = attack.repo
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{repo.head},evals/lib")
    (repo.folder / "evals/lib").mkdir()
    attack.bare(repo.folder / "evals/lib/.git")


def a_git_that_is_not_one(attack: Attack) -> None:
    (attack.repo.folder / "evals/.git").mkdir()


def a_git_file_that_leads_nowhere(attack: Attack) -> None:
    (attack.repo.folder / "evals/.git").write_text("gitdir: /dev/null\n")


def a_pipe(attack: Attack) -> None:
    os.mkfifo(attack.repo.folder / "evals/.git")


def a_git_of_another_case(attack: Attack) -> None:
    attack.bare(attack.repo.folder / "evals/.GIT")


HARMLESS = [
    in_git_of_the_top,
    a_bare_repository,
    a_bare_repository_above,
    a_submodule_that_is_none,
    a_git_that_is_not_one,
    a_git_file_that_leads_nowhere,
    a_pipe,
    a_git_of_another_case,
]


@pytest.fixture
def attack(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Attack]:
    for name in ("TRIES", "READ_TRIES"):
        monkeypatch.setattr(_data_branch, name, 1)
    scratch = tmp_path / "attack"
    scratch.mkdir()
    made = Attack(repo, scratch)
    assert not made.mark.exists()
    yield made
    assert not made.mark.exists()


@pytest.mark.parametrize("plant", some(HARMLESS, 6))
def test_nothing_that_was_planted_runs_or_hides_the_clone(
    attack: Attack, plant: Callable[[Attack], None]
) -> None:
    head = attack.repo.head
    plant(attack)
    found = evals(attack.repo)
    assert (found.top, found.head, found.branch) == (attack.repo.folder, head, "main")
    attack.everything(found)


def test_the_trap_is_one(attack: Attack) -> None:
    """Git itself, asked in the same place, runs what was planted."""
    a_bare_repository(attack)
    command = ["git", "status", "--porcelain"]
    subprocess.run(command, cwd=attack.repo.folder / "evals", env=ENV, capture_output=True)
    assert attack.mark.exists()
    attack.mark.unlink()


def a_repository(attack: Attack) -> Path:
    return attack.bare(attack.repo.folder / "evals/.git")


def a_git_file(attack: Attack) -> Path:
    there = attack.bare(attack.repo.folder / "evals/elsewhere")
    entry = attack.repo.folder / "evals/.git"
    entry.write_text(f"gitdir: {there}\n")
    return entry


def a_link(attack: Attack) -> Path:
    there = attack.bare(attack.repo.folder / "evals/elsewhere")
    entry = attack.repo.folder / "evals/.git"
    entry.symlink_to(there)
    return entry


@pytest.mark.parametrize("plant", [a_repository, a_git_file, a_link])
def test_what_an_agent_left_that_runs_as_we_do_runs_no_program(
    attack: Attack, plant: Callable[[Attack], Path]
) -> None:
    plant(attack)
    found = evals(attack.repo)
    assert found.top == attack.repo.folder / "evals"
    trace(found, base=None, search=50)
    attack.everything(found)


@as_root
@pytest.mark.parametrize("plant", [a_repository, a_git_file, a_link])
def test_what_belongs_to_another_user_than_its_folder_is_no_clone(
    attack: Attack, plant: Callable[[Attack], Path]
) -> None:
    entry = plant(attack)
    os.lchown(entry, SOMEBODY, SOMEBODY)
    assert top_of(attack.repo.folder / "evals") == attack.repo.folder
    found = evals(attack.repo)
    assert (found.top, found.head) == (attack.repo.folder, attack.repo.head)
    attack.everything(found)


@as_root
def test_nothing_that_agents_own_is_a_clone_even_in_a_folder_of_theirs(
    attack: Attack, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = a_repository(attack)
    for path in (entry, entry.parent):
        os.lchown(path, SOMEBODY, SOMEBODY)
    assert top_of(entry.parent) == entry.parent
    theirs = Account(SOMEBODY, SOMEBODY, "/home/a")
    monkeypatch.setattr(isolation, "_known_account", lambda _: theirs)
    assert top_of(entry.parent) == attack.repo.folder


@as_root
def test_a_clone_of_another_user_as_a_whole_is_one(repo: Repo) -> None:
    for path in (repo.folder, *repo.folder.rglob("*")):
        os.lchown(path, SOMEBODY, SOMEBODY)
    assert evals(repo).branch == "main"
    assert trace(evals(repo), base=None, search=5).own is not None


@pytest.mark.parametrize(
    "env",
    [
        {"GIT_DIR": "{evil}", "GIT_WORK_TREE": "{evil}"},
        {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "core.fsmonitor",
            "GIT_CONFIG_VALUE_0": "{run}",
        },
        {"GIT_CONFIG_PARAMETERS": "'core.fsmonitor={run}'"},
        {"GIT_CONFIG_GLOBAL": "{evil}/config"},
        {"GIT_EXTERNAL_DIFF": "{run}", "GIT_PAGER": "{run}", "GIT_EDITOR": "{run}"},
        {"GIT_ALTERNATE_OBJECT_DIRECTORIES": "{evil}", "GIT_COMMON_DIR": "{evil}"},
        {"GIT_EXEC_PATH": "{hooks}", "GIT_TEMPLATE_DIR": "{evil}"},
        {"GIT_CEILING_DIRECTORIES": "/", "GIT_DISCOVERY_ACROSS_FILESYSTEM": "0"},
    ],
)
def test_no_variable_of_the_job_leads_elsewhere(attack: Attack, env: dict[str, str]) -> None:
    scratch = attack.program.parent
    evil = attack.bare(scratch / "evil")
    given = {
        key: value.format(evil=evil, run=attack.program, hooks=scratch / "hooks")
        for key, value in env.items()
    }
    found = evals(attack.repo, **given)
    assert found.head == attack.repo.head
    # What the job's own environment says of how remotes are reached does count.
    trace(found, base=None, search=50)
    found.view.query("diff-tree", "-r", "-p", "HEAD~1", "HEAD")


@pytest.mark.parametrize("variable", ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "HOME"])
def test_a_file_in_the_work_tree_is_not_the_users(
    attack: Attack, tmp_path: Path, variable: str
) -> None:
    attack.repo.write("home/.gitconfig", attack.settings)
    home = attack.repo.folder / "home"
    (tmp_path / "link").symlink_to(home)
    env = {"PATH": ENV["PATH"], variable: str(tmp_path / "link/.gitconfig")}
    found = Clone(attack.repo.folder, env | ({"HOME": str(home)} if variable == "HOME" else {}))
    assert not [each for each in found.settings if str(attack.program) in each.value]
    attack.everything(found)


def test_settings_of_the_user_say_how_remotes_are_reached(repo: Repo, tmp_path: Path) -> None:
    settings = tmp_path / "gitconfig"
    settings.write_text(
        '[url "https://a.example/"]\n\tinsteadOf = x:\n'
        '[url "https://b.example/"]\n\tinsteadOf = x:deep/\n'
        '[url "https://c.example/"]\n\tpushInsteadOf = x:\n'
        "[credential]\n\thelper = store\n"
    )
    repo.git("remote", "set-url", "origin", "x:deep/repo")
    repo.git("config", "url.https://evil.example/.insteadOf", "x:deep/repo")
    repo.git("config", "credential.helper", "evil")
    env = ENV | {"GIT_CONFIG_GLOBAL": str(settings)}
    found = Remote.of(Clone(repo.folder, env), "origin").settings
    values = {found[name]: found[name.replace("KEY", "VALUE")] for name in found if "KEY" in name}
    assert values["remote.data.url"] == "https://b.example/repo"
    assert values["remote.data.pushurl"] == "https://c.example/deep/repo"
    assert values["credential.helper"] == "store"
    # As git itself has it, were it not for the clone's own settings.
    repo.git("config", "--unset-all", "url.https://evil.example/.insteadOf")
    asked = ["git", "remote", "get-url", "origin"]
    for more, expected in (([], "remote.data.url"), (["--push"], "remote.data.pushurl")):
        said = subprocess.run([*asked[:3], *more, "origin"], env=env, cwd=repo.folder, stdout=-1)
        assert said.stdout.decode().strip() == values[expected]


def test_where_the_branch_is_stored_was_read_before(attack: Attack, tmp_path: Path) -> None:
    found = evals(attack.repo)
    found.look()
    other = make_hub(tmp_path / "other")
    attack.repo.git("remote", "set-url", "origin", other.as_uri())
    attack.repo.git("remote", "set-url", "--push", "origin", other.as_uri())
    attack.store(found)
    assert Repo(tmp_path / "hub.git").git("rev-parse", "--verify", "data")
    assert Repo(other).git("for-each-ref") == ""


def test_a_clone_without_a_remote_is_stored_in_without_its_hooks(attack: Attack) -> None:
    git_dir = attack.repo.folder / ".git"
    attack.repo.git("remote", "remove", "origin")
    attack.settings = attack.settings.partition('[remote "origin"]')[0]
    in_git_of_the_top(attack)
    for name in ("pre-receive", "update", "post-receive", "post-update"):
        shutil.copy(attack.program, git_dir / "hooks" / name)
    borrowed = attack.repo.folder.parent / "hub.git/objects"
    (git_dir / "objects/info/alternates").write_text(f"{borrowed}\n")
    (git_dir / "refs/heads/lost").unlink()
    attack.store(evals(attack.repo))
    assert (git_dir / "refs/heads/data").exists()
