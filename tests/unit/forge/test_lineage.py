"""Which commits a run is compared with, in real repositories."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.git_repositories import ENV, Repo, clone
from support.slow_params import some

from ci_eval.forge.lineage import (
    Lineage,
    Origin,
    base_branch,
    began,
    current_branch,
    default_branch,
    own_branch,
    trace,
)
from ci_eval.runtime.clone import Clone

pytestmark = pytest.mark.processes

PULL_REQUEST = {"GITHUB_BASE_REF": "main", "GITHUB_HEAD_REF": "change", "GITHUB_REF_TYPE": "branch"}


def traced(repo: Repo, *, base: str | None = None, search: int = 50, **env: str) -> Lineage:
    return trace(Clone(repo.folder, ENV | env), base=base, search=search)


def event(folder: Path, **payload: Any) -> dict[str, str]:
    """Return the variable that tells of an event."""
    path = folder / "event.json"
    path.write_text(json.dumps(payload))
    return {"GITHUB_EVENT_PATH": str(path)}


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository with three commits on main."""
    made = Repo(tmp_path / "repo")
    for name in "abc":
        made.commit(name)
    return made


def commits(repo: Repo, name: str = "HEAD") -> tuple[str, ...]:
    """Return a commit and its ancestors along first parents, nearest first."""
    return tuple(repo.git("rev-list", "--first-parent", name).split())


# --- What is checked out --------------------------------------------------------------------


def test_a_branch_is_compared_with_the_commit_it_left_main_at(repo: Repo) -> None:
    began = commits(repo)
    head = repo.on("change").commit("d")
    repo.git("checkout", "--quiet", "main")
    repo.commit("main goes on")
    repo.git("checkout", "--quiet", "change")

    assert traced(repo) == Lineage(began, "main", head, shallow=False)


def test_a_branch_that_merged_main_is_compared_with_what_it_merged(repo: Repo) -> None:
    repo.on("change").commit("d")
    repo.git("checkout", "--quiet", "main")
    merged = repo.commit("main goes on")
    repo.git("checkout", "--quiet", "change")
    repo.merge("main")

    assert traced(repo).ancestors[0] == merged


def test_of_two_merge_bases_that_on_the_base_branch_counts(repo: Repo) -> None:
    began = repo.head
    mine = repo.on("change").commit("mine")
    repo.git("checkout", "--quiet", "main")
    theirs = repo.commit("theirs")
    repo.git("checkout", "--quiet", "change")
    repo.merge(theirs)
    repo.git("checkout", "--quiet", "main")
    repo.merge(mine)
    repo.commit()
    repo.git("checkout", "--quiet", "change")
    repo.commit()

    assert {*repo.git("merge-base", "--all", "main", "change").split()} == {mine, theirs}
    assert traced(repo).ancestors[:2] == (theirs, began)


def test_only_so_many_commits_are_looked_at(repo: Repo) -> None:
    expected = commits(repo)[:2]
    repo.on("change").commit("d")

    assert traced(repo, search=2).ancestors == expected


def test_commits_that_a_merge_brought_in_are_not_in_the_line(repo: Repo) -> None:
    repo.on("feature").commit("of a feature")
    repo.git("checkout", "--quiet", "main")
    merge = repo.merge("feature")
    repo.on("change").commit("d")

    found = traced(repo).ancestors
    assert found == commits(repo, "main")
    assert found[0] == merge
    assert repo.git("rev-parse", "feature") not in found


def test_on_main_itself_the_commit_of_the_run_is_left_out(repo: Repo) -> None:
    assert traced(repo) == Lineage(commits(repo)[1:], "main", repo.head, changes=False)


def test_a_change_that_begins_on_main_is_compared_with_its_newest_commit(repo: Repo) -> None:
    found = traced(repo).of_next_change

    assert found == Lineage(commits(repo), "main")
    assert found.of_next_change == found


def test_with_changes_that_are_not_committed_the_commit_counts(repo: Repo) -> None:
    repo.commit("a file", **{"agent.py": "1"})
    repo.write("agent.py", "2")

    found = traced(repo)
    assert (found.ancestors, found.own) == (commits(repo), None)


def test_a_new_file_is_no_change(repo: Repo) -> None:
    repo.write("report.json", "{}")
    assert traced(repo).own == repo.head


def test_looking_writes_nothing(repo: Repo) -> None:
    repo.commit("a file", **{"agent.py": "1"})
    (repo.folder / "agent.py").touch()  # git would note in the index that it is the same
    before = repo.state()
    traced(repo)
    assert repo.state() == before


def test_the_first_commit_has_nothing_to_be_compared_with(tmp_path: Path) -> None:
    repo = Repo(tmp_path / "repo")
    head = repo.commit("first")
    assert traced(repo) == Lineage((), "main", head, changes=False)


def test_a_repository_without_commits_has_no_lineage(tmp_path: Path) -> None:
    assert traced(Repo(tmp_path / "repo")) == Lineage()


def test_outside_a_repository_there_is_no_lineage(tmp_path: Path) -> None:
    assert trace(Clone(tmp_path, ENV), base=None, search=50) == Lineage()


def test_without_git_there_is_no_lineage(repo: Repo) -> None:
    assert traced(repo, PATH=str(repo.folder)) == Lineage()


def test_a_detached_head_is_compared_as_if_it_had_a_branch(repo: Repo) -> None:
    began = commits(repo)
    repo.on("change").commit("d")
    repo.git("checkout", "--quiet", "--detach")

    assert traced(repo).ancestors == began
    assert current_branch(Clone(repo.folder, ENV)) is None


def test_an_older_commit_of_main_is_compared_with_those_before(repo: Repo) -> None:
    repo.git("checkout", "--quiet", "HEAD~1")
    assert traced(repo) == Lineage(commits(repo)[1:], "main", repo.head, changes=False)


def test_a_folder_inside_of_the_repository_will_do(repo: Repo) -> None:
    (repo.folder / "evals").mkdir()
    assert trace(Clone(repo.folder / "evals", ENV), base=None, search=50) == traced(repo)


def test_variables_that_name_another_repository_mislead_nobody(repo: Repo, tmp_path: Path) -> None:
    other = Repo(tmp_path / "other")
    other.commit("elsewhere")
    env = {"GIT_DIR": str(other.folder / ".git"), "GIT_WORK_TREE": str(other.folder)}
    assert traced(repo, **env) == traced(repo)


# --- Which branch ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["feature/ünï", "a'b\"c$(x)", "#1", "release-1.0", "+x", "%s", "a@b", "main"]
)
def test_a_base_branch_may_have_any_name(repo: Repo, name: str) -> None:
    if name != "main":
        repo.on(name)
    began = repo.commit("on the base")
    repo.on("change").commit("d")

    found = traced(repo, base=name)
    assert (found.base, found.ancestors[0]) == (name, began)


@pytest.mark.parametrize("name", ["--output=stolen", "-x", "", ":/", "a..b", "@{", "\0", "\ud800"])
def test_a_base_that_is_no_branch_is_found_nowhere_and_harms_nothing(repo: Repo, name: str) -> None:
    repo.on("change").commit("d")
    before = repo.state()
    found = traced(repo, base=name)
    assert found.own == repo.head
    assert repo.state() == before
    assert not list(repo.folder.glob("*stolen*"))


def test_a_branch_called_like_an_option_is_a_branch(repo: Repo) -> None:
    began = repo.head
    repo.git("update-ref", "refs/heads/--all", began)
    repo.on("change").commit("d")
    assert traced(repo, base="--all").ancestors[0] == began


def test_the_branch_of_the_remote_counts_before_the_local_one(repo: Repo, tmp_path: Path) -> None:
    copy = clone(repo.folder, tmp_path / "copy")
    began = commits(copy)
    copy.commit("not pushed")
    assert traced(copy) == Lineage(began, "main", copy.head)


@pytest.mark.parametrize(
    ("env", "payload", "expected"),
    [
        ({}, {}, None),
        (PULL_REQUEST, {}, "main"),
        ({"GITHUB_REF_TYPE": "branch", "GITHUB_REF_NAME": "release"}, {}, "release"),
        ({"GITHUB_REF_TYPE": "tag", "GITHUB_REF_NAME": "v1"}, {}, None),
        ({"CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main"}, {}, "main"),
        ({"CI_COMMIT_BRANCH": "main"}, {}, "main"),
        (
            {"GITHUB_REF_TYPE": "branch", "GITHUB_REF_NAME": "gh-readonly-queue/main/pr-7-abc"},
            {"merge_group": {"base_ref": "refs/heads/main"}},
            "main",
        ),
        ({}, {"merge_group": {"base_ref": 5}}, None),
        ({}, {"merge_group": "main"}, None),
    ],
)
def test_ci_says_which_branch_is_compared_with(
    tmp_path: Path, env: dict[str, str], payload: dict[str, Any], expected: str | None
) -> None:
    assert base_branch(env | event(tmp_path, **payload)) == expected


@pytest.mark.parametrize(
    ("env", "payload", "expected"),
    [
        ({}, {"repository": {"default_branch": "trunk"}}, "trunk"),
        ({"CI_DEFAULT_BRANCH": "trunk"}, {}, "trunk"),
        ({}, {"repository": {"default_branch": 5}}, "main"),
        ({}, {"repository": []}, "main"),
    ],
)
def test_the_default_branch_is_what_ci_calls_so(
    repo: Repo, tmp_path: Path, env: dict[str, str], payload: dict[str, Any], expected: str
) -> None:
    told = ENV | env | event(tmp_path, **payload)
    assert default_branch(Clone(repo.folder, told)) == expected


def test_the_default_branch_is_that_of_the_remote(tmp_path: Path) -> None:
    origin = Repo(tmp_path / "origin", "some/trunk")
    origin.commit("a")
    copy = clone(origin.folder, tmp_path / "copy")
    copy.on("change").commit("b")
    assert traced(copy).base == "some/trunk"


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 10_000, '{"a": "\\ud800"}', "\ufeff{}"])
def test_an_event_that_cannot_be_read_says_nothing(repo: Repo, tmp_path: Path, text: str) -> None:
    path = tmp_path / "event.json"
    path.write_text(text)
    assert traced(repo, GITHUB_EVENT_PATH=str(path)) == traced(repo)


# --- In CI ----------------------------------------------------------------------------------


@pytest.fixture
def origin(repo: Repo) -> Repo:
    """A repository with a pull request, which GitHub merged into main at `refs/pull/1/merge`."""
    repo.on("change").commit("d")
    repo.git("checkout", "--quiet", "main")
    repo.commit("main goes on")
    repo.git("checkout", "--quiet", "--detach")
    repo.merge("change")
    repo.git("update-ref", "refs/pull/1/merge", "HEAD")
    repo.git("checkout", "--quiet", "main")
    return repo


def checkout(origin: Repo, folder: Path, ref: str, depth: int) -> Repo:
    """Check out as actions/checkout does."""
    made = Repo(folder)
    made.git("remote", "add", "origin", origin.folder.as_uri())
    target = f"+{ref}:refs/remotes/{ref.removeprefix('refs/').replace('heads/', 'origin/')}"
    made.git("fetch", "--quiet", "--no-tags", f"--depth={depth}", "origin", target)
    made.git("checkout", "--quiet", "--detach", "FETCH_HEAD")
    return made


def test_the_merge_of_a_pull_request_is_compared_with_what_it_merged_into(
    origin: Repo, tmp_path: Path
) -> None:
    main = commits(origin, "main")
    deep = checkout(origin, tmp_path / "deep", "refs/pull/1/merge", 100)
    assert traced(deep, **PULL_REQUEST) == Lineage(main, "main", deep.head)


def test_in_a_clone_of_depth_one_the_name_of_the_parent_is_known(
    origin: Repo, tmp_path: Path
) -> None:
    shallow = checkout(origin, tmp_path / "shallow", "refs/pull/1/merge", 1)
    found = traced(shallow, **PULL_REQUEST)
    assert found == Lineage((origin.head,), "main", shallow.head, shallow=True)
    assert shallow.git("rev-list", "--all", "HEAD").split() == [shallow.head]


@pytest.mark.parametrize("kind", ["tags", "heads"])
def test_a_tag_or_a_local_branch_called_like_the_base_branch_is_not_it(
    origin: Repo, tmp_path: Path, kind: str
) -> None:
    main = origin.head
    made = checkout(origin, tmp_path / "clone", "refs/pull/1/merge", 3)
    made.git("update-ref", f"refs/{kind}/main", "HEAD^2")
    assert traced(made, **PULL_REQUEST).ancestors[0] == main


def test_a_merge_by_the_author_is_not_that_of_the_pull_request(
    origin: Repo, tmp_path: Path
) -> None:
    main = origin.head
    origin.git("checkout", "--quiet", "change")
    origin.merge("main")
    made = checkout(origin, tmp_path / "clone", "refs/heads/change", 2)
    told = event(tmp_path, pull_request={"base": {"sha": main}, "head": {"sha": made.head}})
    assert traced(made, **PULL_REQUEST, **told).ancestors[0] == main


def test_the_head_of_a_pull_request_alone_is_compared_with_the_commit_of_the_event(
    origin: Repo, tmp_path: Path
) -> None:
    shallow = checkout(origin, tmp_path / "shallow", "refs/heads/change", 1)
    told = event(tmp_path, pull_request={"base": {"sha": origin.head}})
    assert traced(shallow, **PULL_REQUEST, **told).ancestors == (origin.head,)


@pytest.mark.parametrize(
    "payload",
    some(
        [{"pull_request": {"base": {"sha": sha}}} for sha in ("--all", "HEAD", "a" * 39, 5, None)]
        + [{"pull_request": 5}, {"pull_request": {"base": "main"}}],
        3,
    ),
)
def test_an_event_names_a_commit_or_nothing(
    origin: Repo, tmp_path: Path, payload: dict[str, Any]
) -> None:
    shallow = checkout(origin, tmp_path / "shallow", "refs/heads/change", 1)
    told = event(tmp_path, **payload)
    assert traced(shallow, **PULL_REQUEST, **told).ancestors == ()


@pytest.mark.parametrize("depth", [1, 2, 100])
def test_a_push_to_main_is_compared_with_the_commits_before(
    origin: Repo, tmp_path: Path, depth: int
) -> None:
    before = commits(origin)[1:]
    made = checkout(origin, tmp_path / "pushed", "refs/heads/main", depth)
    found = traced(made, GITHUB_REF_TYPE="branch", GITHUB_REF_NAME="main")
    assert found.own == origin.head
    assert found.ancestors == before[: max(1, depth - 1)]


@pytest.mark.parametrize("depth", [1, 100])
def test_a_merge_queue_is_compared_with_what_it_builds_on(
    origin: Repo, tmp_path: Path, depth: int
) -> None:
    made = checkout(origin, tmp_path / "queued", "refs/pull/1/merge", depth)
    env = {"GITHUB_REF_TYPE": "branch", "GITHUB_REF_NAME": "gh-readonly-queue/main/pr-1-abc"}
    group = {"base_ref": "refs/heads/main", "base_sha": origin.head}
    found = traced(made, **env, **event(tmp_path, merge_group=group))
    assert (found.base, found.ancestors[0]) == ("main", origin.head)


def test_a_merge_queue_builds_on_earlier_entries_that_main_lacks(
    origin: Repo, tmp_path: Path
) -> None:
    origin.git("checkout", "--quiet", "--detach")
    earlier = origin.commit("an earlier entry")
    origin.commit("this entry")
    group = {"base_ref": "refs/heads/main", "base_sha": earlier}
    found = traced(origin, **event(tmp_path, merge_group=group))
    assert (found.base, found.ancestors) == ("main", (earlier, *commits(origin, "main")))


def test_a_merge_train_builds_on_earlier_entries_that_main_lacks(origin: Repo) -> None:
    origin.git("checkout", "--quiet", "--detach", "main")
    earlier = origin.commit("an earlier entry")
    origin.merge("change")
    found = traced(origin, **gitlab("merge_train", origin))
    assert (found.base, found.ancestors) == ("main", (earlier, *commits(origin, "main")))


def pushed(origin: Repo, folder: Path, before: str, *, forced: bool = False) -> Lineage:
    """Return the lineage of a push to main, as GitHub tells of it."""
    told = event(folder, before=before, after=origin.head, forced=forced)
    return traced(origin, GITHUB_REF_TYPE="branch", GITHUB_REF_NAME="main", **told)


def test_a_push_of_several_commits_is_compared_with_the_commit_before_all(
    origin: Repo, tmp_path: Path
) -> None:
    before = commits(origin)
    origin.commit("one")
    origin.commit("two")
    assert pushed(origin, tmp_path, before[0]).ancestors == before
    env = {"GITLAB_CI": "true", "CI_COMMIT_BRANCH": "main", "CI_COMMIT_SHA": origin.head}
    assert traced(origin, **env, CI_COMMIT_BEFORE_SHA=before[0]).ancestors == before


def test_a_push_that_replaced_commits_or_began_the_branch_is_compared_with_its_parent(
    origin: Repo, tmp_path: Path
) -> None:
    before = commits(origin)[1:]
    replaced = commits(origin, "change")[0]
    for commit in (replaced, origin.head, "0" * 40):
        assert pushed(origin, tmp_path, commit).ancestors == before
    assert pushed(origin, tmp_path, "a" * 40, forced=True).ancestors == before


@pytest.mark.parametrize("before", ["0" * 40, "HEAD^"])
@pytest.mark.parametrize("name", ["push", "workflow_dispatch"])
def test_a_branch_without_a_pull_request_is_compared_with_the_default_branch(
    origin: Repo, tmp_path: Path, before: str, name: str
) -> None:
    base = origin.git("merge-base", "main", "change")
    origin.git("checkout", "--quiet", "change")
    origin.commit("two")
    before = origin.git("rev-parse", before) if before == "HEAD^" else before
    payload = {"before": before, "after": origin.head, "repository": {"default_branch": "main"}}
    env = {"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": name, **event(tmp_path, **payload)}
    env |= {"GITHUB_REF_TYPE": "branch", "GITHUB_REF_NAME": "change"}
    found = traced(origin, **env)
    assert (found.base, found.ancestors[0], found.changes) == ("main", base, True)
    tracked = trace(Clone(origin.folder, ENV | env), base=None, search=50, tracked=("cha*",))
    assert (tracked.base, tracked.changes) == ("change", False)


@pytest.mark.parametrize("told", ["schedule", "workflow_dispatch", "repository_dispatch"])
def test_where_nothing_was_pushed_runs_of_the_same_commit_count(repo: Repo, told: str) -> None:
    env = {"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": told}
    same = Lineage(commits(repo), "main", changes=False)
    assert traced(repo, **env) == same
    assert same.of_next_change == same
    repo.on("change").commit("d")
    assert traced(repo, **env).changes


def test_such_a_run_is_compared_alike_where_it_is_reevaluated(repo: Repo) -> None:
    clone = Clone(repo.folder, ENV)
    found = trace(clone, base=None, search=50, commit=repo.head, without_change=True)
    assert found == Lineage(commits(repo), "main", changes=False)


@pytest.mark.parametrize("source", ["schedule", "web", "api", "pipeline", "trigger"])
def test_gitlab_says_so_by_the_source_of_the_pipeline(repo: Repo, source: str) -> None:
    env = {"GITLAB_CI": "true", "CI_COMMIT_BRANCH": "main", "CI_PIPELINE_SOURCE": source}
    assert traced(repo, **env).ancestors == commits(repo)
    assert traced(repo, **env | {"CI_PIPELINE_SOURCE": "push"}).ancestors == commits(repo)[1:]


def gitlab(kind: str, origin: Repo) -> dict[str, str]:
    """Return the environment of a GitLab merge request job."""
    (base,) = origin.git("merge-base", "main", "change").split()
    return {
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": base,
        "CI_MERGE_REQUEST_EVENT_TYPE": kind,
        "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
    }


def as_gitlab_clones(origin: Repo, folder: Path, ref: str, depth: int) -> Repo:
    """Check out as GitLab's runner does, which gets the commits of the pipeline and no branch."""
    made = Repo(folder)
    made.git("remote", "add", "origin", origin.folder.as_uri())
    refspec = f"+{ref}:refs/pipelines/1"
    made.git("fetch", "--quiet", "--no-tags", f"--depth={depth}", "origin", refspec)
    made.git("checkout", "--quiet", "--detach", "refs/pipelines/1")
    return made


@pytest.mark.parametrize("depth", [1, 100])
def test_a_merge_request_is_compared_with_the_commit_that_its_branch_left(
    origin: Repo, tmp_path: Path, depth: int
) -> None:
    # The branch takes main in once more, so that its first parents do not lead there.
    origin.git("checkout", "--quiet", "change")
    origin.merge("main")
    made = as_gitlab_clones(origin, tmp_path / "builds", "refs/heads/change", depth)
    env = gitlab("detached", origin)
    found = traced(made, **env)
    assert (found.base, found.ancestors[0]) == ("main", env["CI_MERGE_REQUEST_DIFF_BASE_SHA"])
    assert found.ancestors[0] == commits(origin, "main")[0]


@pytest.mark.parametrize("kind", ["merged_result", "merge_train"])
@pytest.mark.parametrize("depth", [1, 100])
def test_a_merged_result_is_compared_with_what_it_was_merged_into(
    origin: Repo, tmp_path: Path, kind: str, depth: int
) -> None:
    made = as_gitlab_clones(origin, tmp_path / "builds", "refs/pull/1/merge", depth)
    found = traced(made, **gitlab(kind, origin))
    assert (found.base, found.ancestors[0]) == ("main", commits(origin, "main")[0])
    assert found.ancestors[0] != gitlab(kind, origin)["CI_MERGE_REQUEST_DIFF_BASE_SHA"]


def test_two_histories_without_a_common_commit_have_no_merge_base(repo: Repo) -> None:
    repo.git("checkout", "--quiet", "--orphan", "other")
    repo.commit("another beginning")
    repo.commit("goes on")
    assert traced(repo).ancestors == ()


@pytest.mark.parametrize(("base", "begins"), [(None, False), ("main", False), ("work", True)])
def test_where_only_a_change_was_fetched_its_parent_is_no_merge_base(
    repo: Repo, tmp_path: Path, base: str | None, *, begins: bool
) -> None:
    repo.on("work").commit("breaks it", **{"bot.py": "broken"})
    repo.commit("goes on")
    repo.git("checkout", "--quiet", "main")
    only = tmp_path / "only"
    url = f"file://{repo.folder}"
    repo.git("clone", "--quiet", "--depth=2", "--branch=work", "--single-branch", url, str(only))

    (only / "bot.py").write_text("changed")
    found = began(Clone(only, ENV), base, ())

    assert bool(found.ancestors) == begins
    assert found.changes


def test_the_branch_of_a_pull_request_is_nobodys(repo: Repo) -> None:
    repository = Clone(repo.folder, ENV | PULL_REQUEST)
    assert current_branch(repository) is None
    assert current_branch(Clone(repo.folder, ENV)) == "main"


# --- Which runs -----------------------------------------------------------------------------

LINE = Lineage(("c3", "c2", "c1"), base="main", own="own")


def chosen(*stored: Origin, lineage: Lineage = LINE, limit: int = 5) -> list[str]:
    """Return when the runs that are chosen began."""
    return [each.created for each in lineage.choose(stored, lambda each: each, limit)]


def test_the_runs_of_the_merge_base_come_first_then_those_of_its_ancestors() -> None:
    found = chosen(
        Origin("c1", "main", "9"),
        Origin("c3", "main", "1"),
        Origin("c2", "main", "5"),
        Origin("c3", "main", "2"),
    )
    assert found == ["2", "1", "5", "9"]


def test_no_more_are_taken_than_are_wanted() -> None:
    runs = [Origin("c1", "main", str(number)) for number in range(9)]
    assert chosen(*runs, limit=3) == ["8", "7", "6"]


def test_runs_of_elsewhere_are_left_out_where_an_ancestor_has_one() -> None:
    assert chosen(Origin("c1", "main", "1"), Origin("x", "main", "2")) == ["1"]


def test_where_no_ancestor_has_a_run_the_newest_of_the_base_branch_are_taken() -> None:
    found = chosen(
        Origin("x", "main", "1"),
        Origin("y", "main", "2"),
        Origin("z", "other", "3"),
        Origin("w", None, "4"),
    )
    assert found == ["2", "1"]


def test_where_the_base_branch_has_none_there_is_none() -> None:
    assert chosen(Origin("x", "other", "1"), Origin("x", None, "2")) == []
    assert chosen(Origin("x", None, "2"), lineage=Lineage(("c1",))) == []


def test_the_commit_of_the_run_is_never_compared_with_itself() -> None:
    assert chosen(Origin("own", "main", "2"), Origin("c1", "main", "1")) == ["1"]
    assert chosen(Origin("own", "main", "2")) == []


def test_outside_a_repository_the_newest_are_taken() -> None:
    runs = (Origin(None, None, "1"), Origin("x", "main", "2"))
    assert chosen(*runs, lineage=Lineage()) == ["2", "1"]


def test_where_the_merge_base_is_unknown_the_newest_of_the_base_branch_are_taken() -> None:
    runs = (Origin("x", "main", "1"), Origin("y", "release", "2"), Origin("z", "main", "3"))
    assert chosen(*runs, lineage=Lineage(base="main")) == ["3", "1"]


def test_the_distance_is_counted_from_the_merge_base() -> None:
    assert [LINE.distance(name) for name in ("c3", "c1", "x", None)] == [0, 2, None, None]


ORIGINS = st.builds(
    Origin,
    st.sampled_from(["c1", "c2", "c3", "x", "own", None]),
    st.sampled_from(["main", "other", None]),
    st.integers(0, 10**6).map(str),
)


@given(st.lists(ORIGINS, max_size=8, unique_by=lambda each: each.created), st.randoms())
def test_the_order_in_which_runs_are_stored_does_not_matter(stored, chance) -> None:
    shuffled = list(stored)
    chance.shuffle(shuffled)
    assert chosen(*shuffled) == chosen(*stored)
    assert "own" not in {each.commit for each in LINE.choose(stored, lambda each: each, 99)}


def test_a_pull_request_that_was_merged_is_on_the_branch_it_got_into(
    repo: Repo, tmp_path: Path
) -> None:
    def branch(*, merged: bool) -> str | None:
        told = event(tmp_path, pull_request={"merged": merged, "base": {"ref": "release"}})
        return current_branch(Clone(repo.folder, ENV | PULL_REQUEST | told))

    assert branch(merged=True) == "release"
    assert branch(merged=False) is None


@pytest.mark.parametrize(
    ("env", "branch"),
    [
        ({"GITHUB_REF_TYPE": "branch", "GITHUB_REF_NAME": "main"}, "main"),
        ({"GITHUB_REF": "refs/heads/fix/a"}, "fix/a"),
        ({"GITHUB_REF": "refs/heads/main", "GITHUB_HEAD_REF": "change"}, None),
        ({"GITHUB_REF": "refs/tags/v1"}, None),
        ({"CI_COMMIT_BRANCH": "main"}, "main"),
    ],
)
def test_the_branch_is_the_one_that_ci_names(env: dict[str, str], branch: str | None) -> None:
    assert own_branch(env) == branch
