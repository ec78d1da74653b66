"""A commit that a shallow clone lacks."""

from pathlib import Path

import pytest
from support.git_repositories import ENV, Repo

from ci_eval.forge.missing_commit import fetch_missing
from ci_eval.runtime.checkout import check_out
from ci_eval.runtime.clone import Clone

pytestmark = pytest.mark.processes
MISSING = "0123456789" * 4


@pytest.fixture
def shallow(tmp_path: Path) -> Repo:
    """A clone of the newest of two commits."""
    whole = Repo(tmp_path / "whole")
    whole.commit("first", **{"a.txt": "old"})
    whole.commit("second", **{"a.txt": "new"})
    found = Repo(tmp_path / "shallow")
    found.git("remote", "add", "origin", whole.folder.as_uri())
    found.git("fetch", "--quiet", "--depth=1", "origin", "main")
    found.git("reset", "--quiet", "--hard", "FETCH_HEAD")
    return found


def test_its_files_are_in_our_view_alone(shallow: Repo, tmp_path: Path) -> None:
    commit = Repo(tmp_path / "whole").git("rev-parse", "HEAD~1")
    clone = Clone(shallow.folder, ENV)
    assert clone.view.commit(commit) is None

    assert fetch_missing(clone, commit) == ""

    check_out(clone, commit, tmp_path / "tree")
    assert (tmp_path / "tree/a.txt").read_text() == "old"
    assert Clone(shallow.folder, ENV).view.commit(commit) is None


@pytest.mark.parametrize("name", ["refs/heads/main", "--upload-pack=touch x", "", "main:x"])
def test_what_a_commit_object_may_name_as_its_parent_is_not_fetched(
    shallow: Repo, name: str
) -> None:
    assert fetch_missing(Clone(shallow.folder, ENV), name) == "its name is not a commit hash"


def test_one_that_the_remote_lacks_is_an_error_in_its_words(shallow: Repo) -> None:
    assert MISSING in fetch_missing(Clone(shallow.folder, ENV), MISSING)
