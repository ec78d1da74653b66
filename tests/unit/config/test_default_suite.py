"""The default name of a suite: independent of the folder of a clone, and distinct for each file."""

import os
from pathlib import Path

import pytest
from support.git_repositories import Repo

from ci_eval.config.default_suite import default_suite
from ci_eval.runtime.clone import Clone


def suite_of(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    return default_suite(path, Clone(path.parent, dict(os.environ)))


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/octo/shop",
        "https://gitlab-ci-token:secret@gitlab.example/group/shop.git",
        "git@github.com:octo/shop.git",
        "git@example.com:shop.git",
        "file:///srv/git/shop.git/",
        "../shop",
    ],
)
def test_at_the_top_of_a_clone_it_is_that_of_the_repository(tmp_path: Path, url: str) -> None:
    repo = Repo(tmp_path / "workspace")
    repo.git("remote", "add", "origin", url)
    assert suite_of(repo.folder / "ci-eval.yaml") == "shop"


def test_elsewhere_it_is_that_of_the_folder(tmp_path: Path) -> None:
    assert suite_of(tmp_path / "plain" / "ci-eval.yaml") == "plain"
    repo = Repo(tmp_path / "local")
    assert suite_of(repo.folder / "ci-eval.yaml") == "local"
    repo.git("remote", "add", "origin", "https://github.com/octo/shop")
    assert suite_of(repo.folder / "agents" / "weather" / "ci-eval.yaml") == "weather"


def test_configurations_of_one_folder_have_suites_of_their_own(tmp_path: Path) -> None:
    names = ("ci-eval.yaml", "ci-eval.yml", "nightly.yaml", "x" * 200 + ".yaml")
    found = [suite_of(tmp_path / "shop" / name) for name in names]
    assert found[:3] == ["shop", "shop", "shop-nightly"]
    assert len(found[3]) == 100
