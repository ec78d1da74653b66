"""The baseline on a branch of its own: what is stored is there for all, and the clone is left."""

import base64
import json
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.git_repositories import ENV, Repo, clone, make_hub
from support.run_language import meta, results

from ci_eval.baselines import _data_branch, branch_store
from ci_eval.baselines._runs_index import folder_of
from ci_eval.baselines.branch_store import BranchStore
from ci_eval.forge.git_remote import Remote, permanent_error_hint
from ci_eval.records.errors import BaselineError, CiEvalError, UsageError
from ci_eval.records.results import Run
from ci_eval.runtime.clone import Clone
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.retry import Backoff

pytestmark = pytest.mark.processes

STORE = BranchStore()
DATA = "ci-eval-data"
NOON = "2026-01-01T12:00:{:02}+00:00"


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_data_branch, "BACKOFF", Backoff(0.001, 3.0, jitter=1.0))


@pytest.fixture(scope="module")
def pushed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a hub, and with a clone that no test may change."""
    folder = tmp_path_factory.mktemp("pushed")
    made = clone(make_hub(folder), folder / "repo")
    made.commit("first")
    made.commit("second")
    made.git("push", "--quiet", "origin", "main")
    made.on("change").commit("third")
    return folder


def copied(pushed: Path, folder: Path) -> Repo:
    """Return a copy of the clone, beside a copy of the hub."""
    shutil.copytree(pushed, folder, dirs_exist_ok=True)
    repo = Repo(folder / "repo")
    repo.git("remote", "set-url", "origin", (folder / "hub.git").as_uri())
    return repo


@pytest.fixture
def repo(pushed: Path, tmp_path: Path) -> Repo:
    """A clone with two commits on main, which are pushed, and one of a change."""
    return copied(pushed, tmp_path)


@pytest.fixture
def hub(repo: Repo) -> Path:
    return repo.folder.with_name("hub.git")


def context(repo: Repo, **env: str) -> RunContext:
    return RunContext(env=ENV | env, root=repo.folder, now=lambda: 0.0)


def made(run_id: str, commit: str | None, text: str = "greets 1", **more: object) -> Run:
    told: dict[str, object] = {"commit": commit, "branch": "main", **more}
    return Run(meta(run_id, **told), lambda: results(text))


def save(repo: Repo, run: Run, store: BranchStore = STORE) -> bool:
    return store.save(run, context(repo))


def ids(repo: Repo, store: BranchStore = STORE, suite: str = "suite") -> list[str]:
    here = context(repo)
    return [past.meta.run_id for past in store.load(store.lineage(here), suite, here)]


def noted(repo: Repo, store: BranchStore = STORE) -> list[str]:
    return [each.run_id for each in store.history("suite", context(repo))]


def held(hub: Path, path: str, name: str = DATA) -> str:
    return Repo(hub).git("cat-file", "blob", f"{name}:{path}")


def files(hub: Path, name: str = DATA) -> list[str]:
    return Repo(hub).git("ls-tree", "-r", "--name-only", name).split("\n")


def put(hub: Path, tmp_path: Path, path: str, text: str | None) -> None:
    """Change a file of the branch by hand."""
    by_hand = clone(hub, tmp_path / "by-hand", f"--branch={DATA}")
    if text is None:
        (by_hand.folder / path).unlink()
    else:
        by_hand.write(path, text)
    by_hand.commit("by hand")
    by_hand.git("push", "--quiet", "origin", DATA)


def refusal(repo: Repo, store: BranchStore = STORE) -> CiEvalError:
    with pytest.raises(CiEvalError) as caught:
        ids(repo, store)
    return caught.value


# --- Saving and loading ---------------------------------------------------------------------


def test_nothing_was_stored_yet(repo: Repo) -> None:
    assert (ids(repo), noted(repo)) == ([], [])


def test_what_is_saved_is_loaded(repo: Repo) -> None:
    run = made("one", repo.git("rev-parse", "main"), "greets 1 0.5\nrefunds error")
    assert save(repo, run) is True
    here = context(repo)
    (past,) = STORE.load(STORE.lineage(here), "suite", here)
    assert past.meta == run.meta
    column = past.columns.groups["a", "e", "c"]
    assert (column["greets"].value, column["refunds"].errors) == (0.75, 1)


def test_the_branch_looks_as_it_is_documented(repo: Repo, hub: Path) -> None:
    commit = repo.git("rev-parse", "main")
    save(repo, made("one", commit))
    assert files(hub) == [
        "README.md",
        "suites/suite/badge.json",
        "suites/suite/badge.svg",
        "suites/suite/index.json",
        f"suites/suite/runs/{commit}.json",
    ]
    index = json.loads(held(hub, "suites/suite/index.json"))
    assert (index["schema_version"], index["suite"]) == (1, "suite")
    assert [(each["run_id"], each["commit"]) for each in index["runs"]] == [("one", commit)]
    assert json.loads(held(hub, "suites/suite/badge.json"))["message"] == "1/1 passed"
    assert Repo(hub).git("log", "-1", "--format=%an %s%n%b", DATA) == (
        f"ci-eval suite: run one of {commit}\n[skip ci]"
    )


def test_the_clone_is_left_as_it_is(repo: Repo) -> None:
    repo.write("not-committed.txt", "x")
    repo.write("staged.txt", "x")
    repo.git("add", "staged.txt")
    before = repo.state()
    save(repo, made("one", repo.head))
    ids(repo)
    noted(repo)
    STORE.prune("suite", 0, context(repo))
    assert repo.state() == before


def test_a_run_is_stored_once(repo: Repo, hub: Path) -> None:
    save(repo, made("one", repo.head))
    tip = Repo(hub).git("rev-parse", DATA)
    assert save(repo, made("one", repo.head, "greets 0")) is False
    assert Repo(hub).git("rev-parse", DATA) == tip


@pytest.mark.slow
def test_the_runs_of_the_merge_base_come_first_and_those_of_the_change_never(repo: Repo) -> None:
    first, second = repo.git("rev-parse", "main~1"), repo.git("rev-parse", "main")
    save(repo, made("of-first", first, created=NOON.format(9)))
    save(repo, made("of-second", second, created=NOON.format(1)))
    save(repo, made("again", second, created=NOON.format(2)))
    save(repo, made("own", repo.head, created=NOON.format(8)))
    save(repo, made("elsewhere", "e" * 40, created=NOON.format(9)))
    assert ids(repo) == ["again", "of-second", "of-first"]
    assert ids(repo, STORE.model_copy(update={"window": 2})) == ["again", "of-second"]


@pytest.mark.slow
def test_without_a_run_of_an_ancestor_the_newest_of_main_are_taken(repo: Repo) -> None:
    save(repo, made("old", "d" * 40, created=NOON.format(1)))
    save(repo, made("new", "e" * 40, created=NOON.format(2)))
    save(repo, made("other", "f" * 40, created=NOON.format(3), branch="other"))
    assert ids(repo) == ["new", "old"]


def test_the_history_has_every_run_newest_first(repo: Repo) -> None:
    for number in (2, 0, 1):
        save(repo, made(f"run{number}", f"{number:040x}", created=NOON.format(number)))
    assert noted(repo) == ["run2", "run1", "run0"]


@pytest.mark.slow
def test_suites_do_not_meet(repo: Repo) -> None:
    commit = repo.git("rev-parse", "main")
    save(repo, made("one", commit))
    save(repo, made("two", commit, suite="Suite"))
    assert (ids(repo), ids(repo, suite="Suite")) == (["one"], ["two"])
    assert ids(repo, suite="suite/") == []


@given(st.lists(st.text(max_size=80), min_size=2, max_size=2, unique=True))
def test_no_two_suites_share_a_folder(names: list[str]) -> None:
    one, two = map(folder_of, names)
    assert one.lower() != two.lower()
    for folder in (one, two):
        assert folder.startswith("suites/")
        name = folder.removeprefix("suites/")
        assert not set(name) & set('/\\:*?"<>| ')
        assert name not in ("", ".", "..")
        assert len(name) < 120


@pytest.mark.parametrize("suite", ["shop", "shop-1.0", "the_shop", "7"])
def test_a_plain_name_is_the_name_of_the_folder(suite: str) -> None:
    assert folder_of(suite) == f"suites/{suite}"


@pytest.mark.parametrize(
    "suite", ["..", ".git", "a/b", "", "Shop", "sh op", "x" * 101, "-x", "a\n"]
)
def test_another_name_is_told_apart_by_a_digest(suite: str) -> None:
    assert "+" in folder_of(suite)


@pytest.mark.slow
def test_a_commit_keeps_only_so_many_runs(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(branch_store, "MAX_PER_COMMIT", 2)
    commit = repo.git("rev-parse", "main")
    for number in range(3):
        save(repo, made(f"run{number}", commit, created=NOON.format(number)))
    assert ids(repo) == noted(repo) == ["run2", "run1"]


@pytest.mark.slow
def test_the_badge_shows_the_newest_run_of_the_base_branch(repo: Repo, hub: Path) -> None:
    def message() -> str:
        return str(json.loads(held(hub, "suites/suite/badge.json"))["message"])

    save(repo, made("a", "a" * 40, "x 1\ny 0", created=NOON.format(5)))
    assert message() == "1/2 passed"
    save(repo, made("b", "b" * 40, "x 1\ny 1", created=NOON.format(4)))
    assert message() == "1/2 passed"
    save(repo, made("c", "c" * 40, "x 0\ny 0", created=NOON.format(6), branch="change"))
    assert message() == "1/2 passed"
    save(repo, made("d", "d" * 40, "x 1\ny 1", created=NOON.format(7)))
    assert message() == "2/2 passed"


def test_the_page_about_the_branch_may_be_changed(repo: Repo, hub: Path, tmp_path: Path) -> None:
    save(repo, made("a", "a" * 40))
    put(hub, tmp_path, "README.md", "ours")
    save(repo, made("b", "b" * 40))
    assert held(hub, "README.md") == "ours"


def test_the_place_names_the_branch_and_where_it_is(repo: Repo) -> None:
    assert STORE.place(context(repo)).startswith(f"branch '{DATA}' of ")


@pytest.mark.parametrize("commit", [None, "HEAD", "abc", "../../x", "A" * 40])
def test_a_run_without_a_commit_is_not_stored(repo: Repo, hub: Path, commit: str | None) -> None:
    with pytest.raises(UsageError, match="the run has no commit"):
        save(repo, made("one", commit))
    assert Repo(hub).git("for-each-ref", "refs/heads/ci*") == ""


def test_a_repository_that_names_objects_by_sha256_will_do(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "hub")
    repo.git("init", "--quiet", "--bare", "--object-format=sha256", "../hub.git")
    copy = Repo(tmp_path / "copy")
    (copy.folder / ".git").rename(tmp_path / "gone")
    copy.git("init", "--quiet", "--object-format=sha256", "--initial-branch=main")
    copy.git("remote", "add", "origin", "../hub.git")
    first = copy.commit("a")
    copy.commit("b")
    assert save(copy, made("one", first)) is True
    assert ids(copy) == ["one"]
    assert STORE.prune("suite", 0, context(copy)) == 1


# --- Without a remote -----------------------------------------------------------------------


def test_without_the_remote_the_branch_is_one_of_the_clone(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "alone")
    first = repo.commit("a")
    repo.commit("b")
    (repo.folder / "evals").mkdir()
    here = RunContext(env=ENV, root=repo.folder / "evals", now=lambda: 0.0)
    assert STORE.save(made("one", first), here) is True
    assert ids(repo) == ["one"]
    assert repo.git("branch", "--format=%(refname:short)") == f"{DATA}\nmain"
    assert repo.git("status", "--porcelain") == ""


@pytest.mark.slow
def test_runs_that_were_stored_before_there_was_a_remote_are_pushed_with_the_next(
    tmp_path: Path, hub: Path
) -> None:
    repo = Repo(tmp_path / "alone")
    first = repo.commit("a")
    save(repo, made("one", first))
    save(repo, made("two", first))
    repo.git("remote", "add", "origin", hub.as_uri())

    assert STORE.first_push("suite", context(repo)) == f"branch '{DATA}' of 'origin'"
    assert sorted(noted(repo)) == ["one", "two"]
    assert save(repo, made("three", repo.commit("b"))) is True

    assert STORE.first_push("suite", context(repo)) == ""
    repo.git("branch", "--quiet", "-D", DATA)
    assert sorted(noted(repo)) == ["one", "three", "two"]
    assert Repo(hub).git("rev-list", "--count", DATA) == "3"


def test_a_copy_of_a_branch_that_the_remote_no_longer_has_is_not_pushed_again(
    repo: Repo, hub: Path
) -> None:
    save(repo, made("one", repo.git("rev-parse", "main")))
    repo.git("fetch", "--quiet", "origin")
    repo.git("branch", "--quiet", "--track", DATA, f"origin/{DATA}")
    Repo(hub).git("branch", "--quiet", "-D", DATA)

    assert ids(repo) == []


def test_a_remote_that_is_misspelt_is_an_error(repo: Repo) -> None:
    repo.git("remote", "add", "upstream", "/nowhere")
    found = refusal(repo, BranchStore(remote="orign"))
    assert str(found) == "there is no remote 'orign'; found 'origin', 'upstream'"


def test_a_branch_that_is_checked_out_is_not_changed_under_somebody(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "alone")
    first = repo.commit("a")
    save(repo, made("one", first))
    repo.git("checkout", "--quiet", DATA)
    with pytest.raises(UsageError, match="checked out branch") as caught:
        save(repo, made("two", first))
    assert caught.value.hint == "choose a branch that is not checked out on the remote"


def test_outside_of_a_repository_there_is_no_branch(tmp_path: Path) -> None:
    here = RunContext(env=ENV, root=tmp_path, now=lambda: 0.0)
    with pytest.raises(BaselineError, match=r"^a baseline in a branch needs a git repository: "):
        STORE.load(STORE.lineage(here), "suite", here)


@pytest.mark.parametrize("name", ["a b", "-x", "x..y", "a\0b", "refs/heads/", "@{-1}", "x.lock"])
def test_a_name_that_no_branch_can_have_is_refused(repo: Repo, name: str) -> None:
    assert str(refusal(repo, BranchStore(branch=name))) == f"{name!r} is not a valid branch name"


# --- Several at once ------------------------------------------------------------------------


@pytest.mark.slow
def test_several_save_at_the_same_time_and_none_is_lost(repo: Repo) -> None:
    commits = [f"{number % 3:040x}" for number in range(6)]
    threads = [
        threading.Thread(target=save, args=(repo, made(f"run{number}", commit)))
        for number, commit in enumerate(commits)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(noted(repo)) == [f"run{number}" for number in range(6)]


@pytest.mark.slow
def test_two_clones_without_a_common_commit_store_in_one_branch(repo: Repo, hub: Path) -> None:
    other = Repo(repo.folder.parent / "other", "trunk")
    other.git("remote", "add", "origin", hub.as_uri())
    first = other.commit("another beginning")
    other.commit("goes on")
    save(repo, made("one", repo.git("rev-parse", "main")))
    save(other, made("two", first))
    assert (ids(repo), ids(other)) == (["one"], ["two"])


def refuse(hub: Path, times: int, said: str = "not now") -> None:
    """Let the remote refuse so many pushes."""
    hook = hub / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(
        f"#!/bin/sh\necho x >> {hub}/pushes\n"
        f'test $(wc -l < {hub}/pushes) -gt {times} || {{ echo "{said}" >&2; exit 1; }}\n'
    )
    hook.chmod(0o755)


def pushes(hub: Path) -> int:
    return (hub / "pushes").read_text().count("x")


def test_a_push_that_is_refused_twice_goes_through(repo: Repo, hub: Path) -> None:
    refuse(hub, 2)
    assert save(repo, made("one", repo.head)) is True
    assert pushes(hub) == 3
    assert noted(repo) == ["one"]


@pytest.mark.slow
def test_a_push_is_not_tried_for_ever(
    repo: Repo, hub: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_data_branch, "BACKOFF", Backoff(0.0, 0.0))
    refuse(hub, 1000)
    with pytest.raises(UsageError, match="was not changed after 16 attempts: ") as caught:
        save(repo, made("one", repo.head))
    assert "not now" in str(caught.value)
    assert pushes(hub) == 16


def test_what_is_protected_is_tried_once(repo: Repo, hub: Path) -> None:
    refuse(hub, 1000, "error: GH006: Protected branch update failed for refs/heads/x.")
    with pytest.raises(UsageError, match=r"GH006") as caught:
        save(repo, made("one", repo.head))
    assert caught.value.hint == "exempt the branch from the rules that protect branches"
    assert pushes(hub) == 1


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        (
            "fatal: unable to access 'https://host/o/r/': The requested URL returned error: 403",
            "give the job `permissions: {contents: write}`",
        ),
        (
            "remote: Write access to repository not granted.",
            "give the job `permissions: {contents: write}`",
        ),
        (
            "fatal: could not read Username for 'https://github.com': terminal prompts disabled",
            "check out with `persist-credentials: true`, or set `GITHUB_TOKEN`",
        ),
        (
            "fatal: '/nowhere' does not appear to be a git repository",
            "check the address that `git remote -v` shows",
        ),
        (
            "remote: error: denying non-fast-forward refs/heads/x (you should pull first)",
            "remove `squash`, or allow the remote to rewrite the branch",
        ),
        ("! [rejected] 4030401 -> x (stale info)", None),
        ("fatal: unable to access: Could not resolve host: github.com", None),
        ("error: cannot lock ref 'refs/heads/x': is at 401403 but expected 0", None),
    ],
)
def test_what_git_says_tells_whether_to_try_again(said: str, hint: str | None) -> None:
    assert permanent_error_hint(said, writing=True) == hint


def test_who_only_reads_is_not_told_to_ask_for_more() -> None:
    found = permanent_error_hint("The requested URL returned error: 403", writing=False)
    assert found == "give the job `permissions: {contents: read}`"


# --- What cannot be read --------------------------------------------------------------------


def test_a_remote_that_is_not_there_is_an_error(repo: Repo, hub: Path) -> None:
    hub.rename(hub.with_name("moved"))
    found = refusal(repo)
    assert isinstance(found, BaselineError)
    assert str(found).startswith("the branch 'ci-eval-data' of 'origin' cannot be read: fatal: ")


def test_a_branch_of_something_else_is_left_as_it_is(repo: Repo, hub: Path) -> None:
    store = BranchStore(branch="main")
    tip = Repo(hub).git("rev-parse", "main")
    repo.git("checkout", "--quiet", "main")
    repo.commit("a file", **{"app.py": ""})
    repo.git("push", "--quiet", "origin", "main")
    tip = repo.head
    found = refusal(repo, store)
    assert "the branch 'main' of 'origin' holds other data than runs" in str(found)
    with pytest.raises(BaselineError):
        save(repo, made("one", repo.head), store)
    assert Repo(hub).git("rev-parse", "main") == tip


INDEX = "suites/suite/index.json"
GOOD = {"run_id": "x", "created": "", "commit": "a" * 40}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", f"{DATA}:{INDEX}:1: is not JSON: expecting value"),
        pytest.param(
            "[]", f"{DATA}:{INDEX}:1: expected an object, found a list", marks=pytest.mark.slow
        ),
        ('{"schema_version": 2}', f"{DATA}:{INDEX}:1: has schema version 2; "),
        pytest.param(
            '{"runs": []}', f"{DATA}:{INDEX}:1: 'schema_version' is missing", marks=pytest.mark.slow
        ),
        (
            json.dumps({"schema_version": 1, "suite": "other", "runs": []}),
            f"{DATA}:{INDEX}:1: suite: is the index of another suite, 'other'",
        ),
        (
            json.dumps(
                {"schema_version": 1, "suite": "suite", "runs": [GOOD | {"commit": "../x"}]}
            ),
            f"{DATA}:{INDEX}:1: runs[0].commit: is not a commit hash",
        ),
        pytest.param(
            json.dumps({"schema_version": 1, "suite": "suite", "runs": [GOOD | {"commit": None}]}),
            f"{DATA}:{INDEX}:1: runs[0].commit: is not a commit hash",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            json.dumps({"schema_version": 1, "suite": "suite", "runs": [GOOD | {"run_id": 5}]}),
            f"{DATA}:{INDEX}:1: runs[0].run_id: ",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_an_index_that_is_broken_is_refused_and_never_overwritten(
    repo: Repo, hub: Path, tmp_path: Path, text: str, said: str
) -> None:
    save(repo, made("one", "a" * 40))
    put(hub, tmp_path, INDEX, text)
    tip = Repo(hub).git("rev-parse", DATA)
    found = refusal(repo)
    assert str(found).startswith(said)
    assert isinstance(found, BaselineError)
    assert found.hint.startswith("restore the last good version of the file")
    with pytest.raises(BaselineError):
        save(repo, made("two", "b" * 40))
    with pytest.raises(BaselineError):
        STORE.prune("suite", 0, context(repo))
    assert Repo(hub).git("rev-parse", DATA) == tip


@pytest.mark.parametrize("instead", [None, f"{INDEX}/file"], ids=["nothing", "a folder"])
def test_an_index_that_is_gone_from_a_suite_with_runs_is_not_made_anew(
    repo: Repo, hub: Path, tmp_path: Path, instead: str | None
) -> None:
    save(repo, made("one", "a" * 40))
    put(hub, tmp_path, INDEX, None)
    if instead:
        put(hub, tmp_path / "again", instead, "x")
    tip = Repo(hub).git("rev-parse", DATA)

    said = f"{DATA}:{INDEX}: is missing or not a file, but its folder has others"
    assert list(damaged(repo)) == [said, said]
    assert Repo(hub).git("rev-parse", DATA) == tip


def damaged(repo: Repo) -> Iterator[str]:
    """Yield what is said of a run's file when loading, and when a run of its commit is stored."""
    yield str(refusal(repo))
    try:
        save(repo, made("two", "a" * 40))
    except BaselineError as exc:
        yield str(exc)


FILE = f"suites/suite/runs/{'a' * 40}.json"


@pytest.mark.slow
def test_a_file_of_runs_that_is_broken_is_never_overwritten(
    repo: Repo, hub: Path, tmp_path: Path
) -> None:
    save(repo, made("one", "a" * 40))
    put(hub, tmp_path, FILE, '{"schema_version": 1,\n"runs": [5]}')
    said = f"{DATA}:{FILE}:2: expected an object, found 5"
    assert list(damaged(repo)) == [said, said]
    assert noted(repo) == ["one"]


def test_a_file_that_lacks_a_run_is_an_error(repo: Repo, hub: Path, tmp_path: Path) -> None:
    save(repo, made("one", "a" * 40))
    text = '{"schema_version": 1, "runs": [], "results": []}'
    put(hub, tmp_path, FILE, text)
    assert str(refusal(repo)) == f"{DATA}:{FILE}: lacks the run 'one', which the index lists"


def test_a_file_that_is_gone_is_an_error(repo: Repo, hub: Path, tmp_path: Path) -> None:
    save(repo, made("one", "a" * 40))
    put(hub, tmp_path, FILE, None)
    said = f"{DATA}:{FILE}: is missing, but the index lists its run 'one'"
    assert list(damaged(repo)) == [said, said]
    assert FILE not in files(hub)


def test_a_file_that_is_too_long_is_not_read(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    save(repo, made("one", "a" * 40))
    monkeypatch.setattr(_data_branch, "MAX_FILE", 10)
    assert str(refusal(repo)).endswith("cannot be read: it is larger than 0 MiB")


# --- Pruning --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def five_runs(pushed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hub with five runs, which no test may change."""
    folder = tmp_path_factory.mktemp("runs")
    repo = copied(pushed, folder)
    for number in range(5):
        save(repo, made(f"run{number}", f"{number // 2:040x}", created=NOON.format(number)))
    return folder / "hub.git"


@pytest.fixture
def five(repo: Repo, hub: Path, five_runs: Path) -> Repo:
    """Five runs of three commits are stored: 0 and 1 of the first, 2 and 3 of the second."""
    shutil.rmtree(hub)
    shutil.copytree(five_runs, hub)
    return repo


def run_files(hub: Path) -> list[int]:
    return [int(Path(each).stem, 16) for each in files(hub) if "/runs/" in each]


@pytest.mark.slow
def test_the_newest_stay(five: Repo, hub: Path) -> None:
    assert STORE.prune("suite", 2, context(five)) == 3
    assert noted(five) == ids(five) == ["run4", "run3"]
    assert run_files(hub) == [1, 2]


@pytest.mark.slow
def test_what_a_change_is_compared_with_stays_before_newer_runs(repo: Repo) -> None:
    repo.git("checkout", "--quiet", "main")
    for number, rev in enumerate(["main", "main~1", "change", "change", "change"]):
        branch = rev.partition("~")[0]
        commit, created = repo.git("rev-parse", rev), NOON.format(number)
        save(repo, made(f"run{number}", commit, branch=branch, created=created))
    assert STORE.prune("suite", 3, context(repo)) == 2
    assert noted(repo) == ["run4", "run1", "run0"]
    assert STORE.prune("suite", 1, context(repo)) == 2
    assert noted(repo) == ["run0"]


@pytest.mark.slow
def test_where_fewer_are_stored_none_goes(five: Repo, hub: Path) -> None:
    tip = Repo(hub).git("rev-parse", DATA)
    assert STORE.prune("suite", 5, context(five)) == 0
    assert STORE.prune("other", 0, context(five)) == 0
    assert Repo(hub).git("rev-parse", DATA) == tip


def test_when_all_are_gone_new_ones_can_be_stored(five: Repo, hub: Path) -> None:
    assert STORE.prune("suite", 0, context(five)) == 5
    assert (noted(five), run_files(hub)) == ([], [])
    assert save(five, made("run0", "0" * 40)) is True
    assert ids(five) == ["run0"]


@pytest.mark.parametrize(("squash", "commits"), [(False, 6), (True, 1)])
def test_what_was_removed_takes_room_or_does_not(
    five: Repo, hub: Path, squash: bool, commits: int
) -> None:
    store = BranchStore(squash=squash)
    store.prune("suite", 1, context(five))
    assert Repo(hub).git("rev-list", "--count", DATA) == str(commits)
    assert noted(five) == ["run4"]
    assert save(five, made("next", "f" * 40)) is True


# --- Credentials ----------------------------------------------------------------------------

TOKEN = "ghs_s3cret"
HEADER = "AUTHORIZATION: basic " + base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()


def settings(folder: Path, url: str, **env: str) -> list[tuple[str, str]]:
    """Return the settings that git gets for a remote."""
    repo = Repo(folder / "asked")
    repo.git("remote", "add", "origin", url)
    found = Remote.of(Clone(repo.folder, ENV | env), "origin").settings
    count = int(found["GIT_CONFIG_COUNT"])
    return [(found[f"GIT_CONFIG_KEY_{n}"], found[f"GIT_CONFIG_VALUE_{n}"]) for n in range(count)]


@pytest.mark.parametrize("name", ["GITHUB_TOKEN", "INPUT_GITHUB-TOKEN"])
def test_the_token_of_the_workflow_is_sent_to_github(tmp_path: Path, name: str) -> None:
    found = settings(tmp_path, "https://github.com/o/r.git", **{name: TOKEN})
    assert ("http.https://github.com/.extraheader", HEADER) in found


def test_the_token_is_sent_to_the_server_that_runs_the_workflow(tmp_path: Path) -> None:
    env = {"GITHUB_TOKEN": TOKEN, "GITHUB_SERVER_URL": "https://ghe.example:8443"}
    found = settings(tmp_path, "https://ghe.example:8443/o/r.git", **env)
    assert ("http.https://ghe.example:8443/.extraheader", HEADER) in found


@pytest.mark.parametrize(
    "url",
    [
        "http://github.com/o/r.git",
        "https://github.com.evil.example/o/r.git",
        "https://evil.example/github.com/o/r.git",
        "https://github.com@evil.example/o/r.git",
        "https://github.com:444/o/r.git",
        "git@github.com:o/r.git",
        "ssh://git@github.com/o/r.git",
        "file:///github.com/o/r.git",
        "https://[::1/o/r.git",
    ],
)
def test_the_token_is_sent_to_nobody_else(tmp_path: Path, url: str) -> None:
    found = settings(tmp_path, url, GITHUB_TOKEN=TOKEN)
    assert not any("extraheader" in key or TOKEN in value for key, value in found)


def test_what_the_clone_was_given_counts_before_the_token(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "asked")
    persisted = ("http.https://github.com/.extraheader", "AUTHORIZATION: basic persisted")
    (tmp_path / "elsewhere.config").write_text(
        f'[http "https://github.com/"]\n\textraheader = {persisted[1]}\n'
    )
    # As actions/checkout does: https://github.com/actions/checkout, `git-auth-helper.ts`.
    repo.git("config", f"includeIf.gitdir:{repo.folder}/.git.path", f"{tmp_path}/elsewhere.config")
    found = settings(tmp_path, "https://github.com/o/r.git", GITHUB_TOKEN=TOKEN)
    assert [each for each in found if "extraheader" in each[0]] == [persisted]


class _Refusing(BaseHTTPRequestHandler):
    """Refuses everything, and keeps what it was sent."""

    sent: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        self.sent.append(self.headers.get("Authorization"))
        self.send_error(403)

    def log_message(self, *args: object) -> None:
        pass


def test_what_the_clone_was_given_is_sent_and_a_refusal_names_the_permission(repo: Repo) -> None:
    with HTTPServer(("127.0.0.1", 0), _Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        repo.git("remote", "set-url", "origin", f"{address}/o/r.git")
        repo.git("config", f"http.{address}/.extraheader", "AUTHORIZATION: basic persisted")
        found = refusal(repo)
        server.shutdown()
    assert _Refusing.sent == ["basic persisted"]
    assert str(found).endswith("The requested URL returned error: 403")
    assert found.hint == "give the job `permissions: {contents: read}`"


def test_no_token_stands_in_a_command_line(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    real = ENV["PATH"]
    program.write_text(f'#!/bin/sh\necho "$@" >> {log}\nPATH={real}\nexec git "$@"\n')
    program.chmod(0o755)
    repo.git("remote", "set-url", "origin", "https://me:hunter22@localhost:1/o/r.git")
    env = {"PATH": f"{program.parent}:{real}", "GITHUB_TOKEN": TOKEN}
    env["GITHUB_SERVER_URL"] = "https://localhost:1"
    here = context(repo, **env)
    with pytest.raises(BaselineError) as caught:
        STORE.load(STORE.lineage(here), "suite", here)
    said = f"{caught.value} {caught.value.hint}"
    assert "localhost" in said
    for secret in ("hunter22", TOKEN, HEADER):
        assert secret not in log.read_text() + said
