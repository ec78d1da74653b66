"""The baseline in a file, as it is at a commit."""

from pathlib import Path

import pytest
from support.git_repositories import ENV, Repo, clone
from support.run_language import make_run

from ci_eval.baselines import git_store as store_module
from ci_eval.baselines.file_store import FileStore
from ci_eval.baselines.git_store import GitStore
from ci_eval.records.errors import BaselineError
from ci_eval.runtime.context import RunContext

pytestmark = pytest.mark.processes

STORE = GitStore(path="base.json")


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo(tmp_path / "repo")
    made.commit("first")
    return made


def context(folder: Path, **env: str) -> RunContext:
    return RunContext(env=ENV | env, root=folder, now=lambda: 0.0, folder=folder.name)


def save(repo: Repo, run_id: str, store: GitStore = STORE) -> str:
    """Store a run in the work tree and commit it."""
    assert store.save(make_run("greets 1", run_id), context(repo.folder)) is True
    return repo.commit(run_id)


def ids(folder: Path, store: GitStore = STORE) -> list[str]:
    here = context(folder)
    loaded = [past.meta.run_id for past in store.load(store.lineage(here), "suite", here)]
    assert loaded == [each.run_id for each in store.history("suite", here)][: store.window]
    return loaded


def refusal(folder: Path, store: GitStore = STORE) -> str:
    here = context(folder)
    with pytest.raises(BaselineError) as caught:
        store.load(store.lineage(here), "suite", here)
    return f"{caught.value} ({caught.value.hint})" if caught.value.hint else str(caught.value)


def test_nothing_was_committed_yet(repo: Repo) -> None:
    repo.on("change").commit("d")
    assert ids(repo.folder) == []


def test_in_a_repository_without_commits_nothing_is_stored(tmp_path: Path) -> None:
    assert ids(Repo(tmp_path / "new").folder) == []


def test_it_is_read_where_the_change_began_whatever_is_in_the_work_tree(repo: Repo) -> None:
    save(repo, "on-main")
    repo.on("change")
    save(repo, "brought-along")
    repo.write("base.json", "{} broken")
    before = repo.state()

    assert ids(repo.folder) == ["on-main"]
    assert repo.state() == before


def test_who_stores_a_run_is_told_to_commit_it_and_that_git_ignores_it(repo: Repo) -> None:
    assert STORE.place(context(repo.folder)).startswith("repo/base.json; commit it: ")

    repo.write(".gitignore", "*.json\n")
    told = STORE.place(context(repo.folder))
    assert told.startswith("repo/base.json; remove it from .gitignore, then commit it: ")


def test_main_goes_on_and_the_change_does_not_notice(repo: Repo) -> None:
    save(repo, "old")
    repo.on("change").commit("d")
    repo.git("checkout", "--quiet", "main")
    save(repo, "new")
    repo.git("checkout", "--quiet", "change")

    assert ids(repo.folder) == ["old"]


def test_where_it_was_removed_the_nearest_ancestor_that_has_it_counts(repo: Repo) -> None:
    save(repo, "kept")
    (repo.folder / "base.json").unlink()
    repo.commit("removed")
    repo.commit("later")
    repo.on("change").commit("d")

    assert ids(repo.folder) == ["kept"]
    assert ids(repo.folder, STORE.model_copy(update={"search": 2})) == []
    assert ids(repo.folder, STORE.model_copy(update={"search": 3})) == ["kept"]


def test_on_main_it_is_the_one_of_the_commit_before(repo: Repo) -> None:
    save(repo, "before")
    save(repo, "this")
    assert ids(repo.folder) == ["before"]


def test_a_ref_is_read_instead_of_the_merge_base(repo: Repo) -> None:
    save(repo, "old")
    repo.git("tag", "v1")
    repo.on("change").commit("d")
    repo.git("checkout", "--quiet", "main")
    save(repo, "new")
    repo.git("checkout", "--quiet", "change")

    assert ids(repo.folder, STORE.model_copy(update={"ref": "main"})) == ["new", "old"]
    assert ids(repo.folder, STORE.model_copy(update={"ref": "v1"})) == ["old"]


@pytest.mark.parametrize("ref", ["nowhere", "--output=x", "HEAD:base.json", "a\0b"])
def test_a_ref_that_is_not_there_is_an_error(repo: Repo, ref: str) -> None:
    save(repo, "old")
    found = refusal(repo.folder, STORE.model_copy(update={"ref": ref}))
    assert found.startswith(
        f"the baseline was not loaded: there is no {ref!r} in this clone (check out"
    )


def test_as_many_are_compared_with_as_the_window_takes(repo: Repo) -> None:
    for number in range(4):
        save(repo, f"run{number}")
    repo.on("change").commit("d")
    assert ids(repo.folder, STORE.model_copy(update={"window": 2})) == ["run3", "run2"]


@pytest.mark.slow
def test_the_configuration_may_be_in_a_folder(repo: Repo) -> None:
    folder = repo.folder / "evals" / "shop"
    folder.mkdir(parents=True)
    for store in (STORE, GitStore(), GitStore(path="../base.json"), GitStore(path="a b.json")):
        assert store.save(make_run("greets 1", store.path), context(folder)) is True
        repo.commit(store.path)
        repo.commit("later")
        assert ids(folder, store) == [store.path]


def test_an_absolute_path_may_lead_into_the_repository(repo: Repo) -> None:
    store = GitStore(path=str(repo.folder / "evals" / "base.json"))
    save(repo, "run", store)
    repo.on("change").commit("d")
    assert ids(repo.folder, store) == ["run"]


@pytest.mark.parametrize("path", ["../base.json", "/base.json", "x/../../base.json", "."])
def test_what_is_outside_of_the_repository_has_no_versions(repo: Repo, path: str) -> None:
    found = refusal(repo.folder, GitStore(path=path))
    assert found.startswith(f"{path}: is outside of the repository, so git has no versions of it")


def test_outside_of_a_repository_there_is_nothing_to_read(tmp_path: Path) -> None:
    found = refusal(tmp_path)
    assert found == f"the baseline was not loaded: {tmp_path} is not in a git repository"


def test_what_is_broken_is_named_with_its_commit_and_line(repo: Repo) -> None:
    commit = repo.commit("broken", **{"base.json": '{"schema_version": 1,\n"runs": [5]}'})
    repo.on("change").commit("d")
    found = refusal(repo.folder)
    assert found.startswith(f"{commit[:12]}:base.json:2: expected an object, found 5 (this is read")


def test_a_file_that_a_partial_clone_lacks_is_fetched(repo: Repo, tmp_path: Path) -> None:
    began = save(repo, "on-main")
    repo.on("change").commit("d", **{"base.json": "[]"})
    repo.git("config", "uploadpack.allowFilter", "true")
    partial = clone(repo.folder, tmp_path / "partial", "--filter=blob:none", "--branch=change")
    store = GitStore(path="base.json", base="main")
    assert ids(partial.folder, store) == ["on-main"]

    partial.git("remote", "set-url", "origin", str(tmp_path / "gone"))
    said = refusal(partial.folder, store)
    lacks = f"the clone lacks files of the merge base {began[:7]}, and it cannot be fetched: "
    assert said.startswith(f"the baseline was not loaded: {lacks}")
    assert said.endswith("; check out without `filter`")


def test_a_submodule_is_no_baseline_of_a_partial_clone(repo: Repo, tmp_path: Path) -> None:
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},base.json")
    repo.git("commit", "--quiet", "-m", "a submodule")
    commit = repo.head
    repo.on("change").git("commit", "--quiet", "--allow-empty", "-m", "d")
    repo.git("config", "uploadpack.allowFilter", "true")
    partial = clone(repo.folder, tmp_path / "partial", "--filter=blob:none", "--branch=change")
    said = refusal(partial.folder, GitStore(path="base.json", base="main"))
    assert said.startswith(f"{commit[:12]}:base.json: is not a file")


def test_a_folder_is_no_baseline(repo: Repo) -> None:
    commit = repo.commit("a folder", **{"base.json/x": ""})
    repo.on("change").commit("d")
    (repo.folder / "base.json/x").unlink()
    assert refusal(repo.folder).startswith(f"{commit[:12]}:base.json: is not a file")


def test_a_link_is_not_followed(repo: Repo) -> None:
    (repo.folder / "base.json").symlink_to("secret.json")
    commit = repo.commit("a link")
    repo.on("change").commit("d")
    assert refusal(repo.folder).startswith(f"{commit[:12]}:base.json:1: ")


def test_what_is_too_long_is_not_read(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "MAX_BYTES", 2**20)
    commit = repo.commit("long", **{"base.json": "x" * (2**20 + 1)})
    repo.on("change").commit("d")
    found = f"{commit[:12]}:base.json: cannot be read from git: it is larger than 1 MiB"
    assert refusal(repo.folder).startswith(found)


def test_what_a_shallow_clone_lacks_is_fetched(repo: Repo, tmp_path: Path) -> None:
    began = save(repo, "on-main")
    repo.commit("d")
    shallow = clone(repo.folder, tmp_path / "shallow", "--depth=1")
    assert ids(shallow.folder) == ["on-main"]

    shallow.git("remote", "remove", "origin")
    lacks = f"the clone lacks the merge base {began[:7]}, and it cannot be fetched"
    assert refusal(shallow.folder) == (
        f"the baseline was not loaded: {lacks}: the clone has no remote; "
        "check out with `fetch-depth: 0`"
    )


def test_a_change_cannot_bring_its_own_runs_where_the_base_branch_is_missing(
    repo: Repo, tmp_path: Path
) -> None:
    repo.on("work").commit("breaks it")
    save(repo, "of-the-change")
    repo.commit("goes on")
    repo.git("checkout", "--quiet", "main")
    only = clone(repo.folder, tmp_path / "only", "--branch=work", "--single-branch")
    assert refusal(only.folder) == (
        "the baseline was not loaded: the merge base is unknown "
        "(fetch the base branch, and name it in `baseline.base`)"
    )


def test_saving_is_what_a_file_does(repo: Repo, tmp_path: Path) -> None:
    STORE.save(make_run("greets 1"), context(repo.folder))
    FileStore(path="base.json").save(make_run("greets 1"), context(tmp_path))
    assert (repo.folder / "base.json").read_bytes() == (tmp_path / "base.json").read_bytes()
    assert repo.git("status", "--porcelain") == "?? base.json"


def test_a_file_of_another_suite_is_not_compared_with(repo: Repo) -> None:
    save(repo, "r1")
    repo.commit()
    here = context(repo.folder)

    with pytest.raises(BaselineError, match=r"base\.json: holds runs of another suite, 'suite'"):
        STORE.load(STORE.lineage(here), "other", here)
