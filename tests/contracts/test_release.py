"""A release: its version, its text, its commit and its tags, on a real repository."""

import itertools
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.git_repositories import Repo, clone, make_hub

import ci_eval

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / ".github"))  # where it lies, out of the package

from release import sources, tags  # noqa: E402  # these are found from here on
from release.__main__ import main  # noqa: E402  # as above
from release.version import ReleaseError, Version  # noqa: E402  # as above

pytestmark = pytest.mark.processes

IMAGE = "ghcr.io/octo-org/ci-eval@sha256:" + "a1" * 32
OTHER_IMAGE = "ghcr.io/octo-org/ci-eval@sha256:" + "b2" * 32
ACTION = """\
name: ci-eval # the image: below
runs:
  using: docker
  image: Dockerfile # a release names it by its digest
"""
PINNED = ACTION.replace("image: Dockerfile", f"image: docker://{IMAGE}")
PYPROJECT = """\
[project]
name = "ci-eval"
dynamic = ["version"]
[tool.hatch.version]
path = "ci_eval/__init__.py"
"""
CHANGELOG = """\
# Changes

## Unreleased

## 1.2.0

- It counts to three.

### Fixed

- It stopped at two.

## 1.1.0

"""
VERSIONS = st.builds(
    Version,
    st.integers(0, 2),
    st.integers(0, 2),
    st.integers(0, 2),
    st.one_of(st.none(), st.integers(1, 3)),
)


class Published:
    """A remote repository, and the clone in which releases are made of `main`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hub = make_hub(folder)
        self.here = clone(self.hub, folder / "here")
        self._clones = itertools.count()
        self.change("the beginning", **{"action.yml": ACTION, "ci_eval/code.py": "one"})

    def change(self, name: str, **files: str) -> str:
        """Commit to main, and return the commit."""
        commit = self.here.commit(name, **files)
        self.here.git("push", "--quiet", "origin", "HEAD:main")
        return commit

    def release(self, version: str, source: str = "HEAD", image: str = IMAGE) -> str:
        """Release from a fresh clone, as a job does."""
        job = clone(self.hub, self.folder / f"job{next(self._clones)}")
        source = self.here.git("rev-parse", source)
        return tags.publish(
            job.folder, Version.read(version), source=source, image=image, pause_s=0
        )

    def refs(self) -> dict[str, str]:
        """Return the commit of each branch and tag of the remote."""
        form = "%(refname:lstrip=1) %(*objectname) %(objectname)"
        lines = Repo(self.hub).git("for-each-ref", f"--format={form}").splitlines()
        return {line.split()[0]: line.split()[1] for line in lines}

    def show(self, what: str) -> str:
        return Repo(self.hub).git("show", what)


@pytest.fixture
def published(tmp_path: Path) -> Published:
    return Published(tmp_path)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a folder with what is checked before a release."""
    repo = Repo(tmp_path / "tree")
    repo.write("pyproject.toml", PYPROJECT)
    repo.write("ci_eval/__init__.py", '"""It."""\n\n__version__ = "1.2.0"\n')
    repo.write("CHANGELOG.md", CHANGELOG)
    repo.write("action.yml", ACTION)
    return repo.folder


def problems(function: Any, *args: Any, **named: Any) -> tuple[str, ...]:
    with pytest.raises(ReleaseError) as caught:
        function(*args, **named)
    return caught.value.problems


# -- Versions


@pytest.mark.parametrize("text", ["1.2.3", "0.1.0", "10.0.12", "1.0.0rc1"])
def test_a_version_is_written_as_it_was_read(text: str) -> None:
    assert str(Version.read(text)) == text


@pytest.mark.parametrize(
    "text", ["", "1.2", "v1.2.3", "01.2.3", "1.2.3-rc1", "1.2.3rc0", "1.2.3\n", "1.2.3;id", "1.2.٣"]
)
def test_what_is_no_version_is_refused(text: str) -> None:
    assert problems(Version.read, text) == (
        f"{text!r} is no version such as '1.2.3' or '1.2.3rc1'.",
    )


def test_a_candidate_comes_before_its_version() -> None:
    texts = ["1.0.0rc2", "0.9.9", "1.0.0", "1.0.0rc10", "1.0.1rc1"]

    ordered = sorted(map(Version.read, texts), key=lambda each: each.order)
    assert [str(each) for each in ordered] == [
        "0.9.9",
        "1.0.0rc2",
        "1.0.0rc10",
        "1.0.0",
        "1.0.1rc1",
    ]


@pytest.mark.parametrize(
    ("version", "released", "moved"),
    [
        ("1.2.3", [], ["v1", "v1.2"]),
        ("1.2.3", ["1.2.2", "1.1.9", "2.0.0"], ["v1", "v1.2"]),
        ("1.1.10", ["1.1.9", "1.2.0", "2.0.0"], ["v1.1"]),
        ("1.2.3", ["1.3.0rc1", "1.2.3rc1"], ["v1", "v1.2"]),
        ("1.2.3rc1", [], []),
        ("1.2.3", ["1.2.3"], ["v1", "v1.2"]),
    ],
)
def test_a_moved_tag_means_the_newest_of_its_line(
    version: str, released: list[str], moved: list[str]
) -> None:
    assert Version.read(version).moved_tags([Version.read(each) for each in released]) == moved


@given(st.sets(VERSIONS, min_size=1))
def test_in_any_order_of_releases_a_moved_tag_ends_at_the_newest(versions: set[Version]) -> None:
    where: dict[str, Version] = {}
    released: list[Version] = []
    for version in versions:
        where |= dict.fromkeys(version.moved_tags(released), version)
        released.append(version)

    final = [each for each in versions if each.candidate is None]
    for tag, version in where.items():
        line = [each for each in final if f"v{each}.".startswith(f"{tag}.")]
        assert version == max(line, key=lambda each: each.order)
    assert {f"v{each.major}" for each in final} <= set(where)


# -- What the sources say


def test_sources_of_the_version_are_in_order(tree: Path) -> None:
    sources.check(tree, Version.read("1.2.0"))


def test_all_that_is_not_of_the_version_is_said_at_once(tree: Path) -> None:
    assert problems(sources.check, tree, Version.read("1.3.0")) == (
        "ci_eval/__init__.py: __version__ is 1.2.0, not 1.3.0.",
        "CHANGELOG.md: there is no section '## 1.3.0'.",
    )


def test_sources_that_were_taken_from_a_release_are_refused(tree: Path) -> None:
    """What their tests ran would be the image of that release."""
    (tree / "action.yml").write_text(PINNED)

    assert problems(sources.check, tree, Version.read("1.2.0")) == (
        "action.yml: the image is not 'Dockerfile': only a release names another.",
    )


def test_a_second_place_for_the_version_is_refused(tree: Path) -> None:
    path = tree / "pyproject.toml"
    path.write_text(PYPROJECT.replace('dynamic = ["version"]', 'version = "1.2.0"'))

    assert problems(sources.check, tree, Version.read("1.2.0")) == (
        "pyproject.toml: the version is not taken from a file of the package.",
    )


def test_a_section_is_what_stands_under_its_heading(tree: Path) -> None:
    assert sources.changes(tree, Version.read("1.2.0")) == (
        "- It counts to three.\n\n### Fixed\n\n- It stopped at two."
    )


@pytest.mark.parametrize(
    ("version", "added", "problem"),
    [
        ("1.1.0", "", "CHANGELOG.md: the section '## 1.1.0' is empty."),
        ("1.2", "", "'1.2' is no version such as '1.2.3' or '1.2.3rc1'."),
        ("1.2.0", "## 1.2.0\n", "CHANGELOG.md: there is more than one section '## 1.2.0'."),
        ("1.2.0rc1", "", "CHANGELOG.md: there is no section '## 1.2.0rc1'."),
    ],
)
def test_a_section_that_says_nothing_is_no_text_for_a_release(
    tree: Path, version: str, added: str, problem: str
) -> None:
    (tree / "CHANGELOG.md").write_text(CHANGELOG + added)

    assert problems(lambda: sources.changes(tree, Version.read(version))) == (problem,)


def test_the_text_of_a_release_says_what_to_pin(tree: Path) -> None:
    text = sources.notes(tree, Version.read("1.2.0"), commit="c" * 40, image=IMAGE)

    assert text.startswith("- It counts to three.")
    assert f"\nPin this release as `ci-eval@{'c' * 40} # v1.2.0`.\n" in text
    assert f"\nIts image is `{IMAGE}`.\n" in text


def test_these_sources_could_be_released() -> None:
    sources.check(ROOT, Version.read(ci_eval.__version__))


def test_what_comes_next_has_its_place_in_the_changelog() -> None:
    """And is no part of what is said of the version before it."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    first, second, *_ = re.findall(r"^## (.*)$", text, re.MULTILINE)

    assert (first, second) == ("Unreleased", ci_eval.__version__)
    coming = text.partition("## Unreleased\n")[2].partition("\n## ")[0].strip()
    assert not coming or coming not in sources.changes(ROOT, Version.read(ci_eval.__version__))


# -- The image in action.yml


def test_nothing_but_the_name_of_the_image_changes() -> None:
    assert sources.pinned(ACTION, IMAGE) == PINNED


def test_an_image_that_was_named_before_is_named_anew() -> None:
    assert sources.pinned(PINNED, OTHER_IMAGE) == PINNED.replace(IMAGE, OTHER_IMAGE)


def test_our_own_action_names_its_image_on_one_line() -> None:
    text = (ROOT / "action.yml").read_text(encoding="utf-8")

    changed = [
        (before, after)
        for before, after in zip(
            text.splitlines(), sources.pinned(text, IMAGE).splitlines(), strict=True
        )
        if before != after
    ]
    assert changed == [("  image: Dockerfile", f"  image: docker://{IMAGE}")]


@pytest.mark.parametrize("count", [0, 2])
def test_an_action_with_more_or_less_than_one_image_is_refused(count: int) -> None:
    assert problems(sources.pinned, "runs:\n" + "  image: Dockerfile\n" * count, IMAGE) == (
        f"action.yml: {count} lines name an image, and one should.",
    )


@pytest.mark.parametrize(
    "image",
    [
        "ghcr.io/octo-org/ci-eval:1.2.0",
        "ghcr.io/octo-org/ci-eval@sha256:" + "a1" * 31,
        "ghcr.io/Octo-Org/ci-eval@sha256:" + "a1" * 32,
        "docker://" + IMAGE,
        IMAGE + "\nargs: [x]",
    ],
)
def test_an_image_without_its_digest_is_refused(image: str) -> None:
    assert problems(sources.pinned, ACTION, image) == (
        f"{image!r} is no image with its digest: host/owner/name@sha256:….",
    )


# -- Commit and tags


def test_a_release_is_the_source_with_its_image_and_nothing_else(published: Published) -> None:
    source = published.here.head

    commit = published.release("1.2.0")

    assert published.refs() == {
        "heads/main": source,
        "heads/releases/v1.2": commit,
        "tags/v1": commit,
        "tags/v1.2": commit,
        "tags/v1.2.0": commit,
    }
    assert published.show(f"{commit}:action.yml") + "\n" == PINNED
    assert Repo(published.hub).git("diff", "--name-only", source, commit) == "action.yml"
    assert published.show(f"{commit}^") == published.show(source)


def test_the_tag_of_a_version_says_who_made_it(published: Published) -> None:
    published.release("1.2.0")

    said = Repo(published.hub).git("cat-file", "-p", "v1.2.0")
    assert "\ntag v1.2.0\ntagger github-actions[bot] <" in said
    assert said.endswith("\n\nci-eval 1.2.0")


def test_the_clone_is_left_as_it_was(published: Published) -> None:
    job = clone(published.hub, published.folder / "job")
    job.write("action.yml", "somebody is at work here")

    tags.publish(job.folder, Version.read("1.2.0"), source=job.head, image=IMAGE)

    assert job.git("status", "--porcelain") == "M action.yml"
    assert (job.folder / "action.yml").read_text() == "somebody is at work here"


def test_releases_of_a_minor_version_follow_each_other_on_its_branch(published: Published) -> None:
    first = published.release("1.2.0")
    source = published.change("a fix", **{"ci_eval/code.py": "two"})

    second = published.release("1.2.1")

    assert published.refs()["heads/releases/v1.2"] == second
    assert Repo(published.hub).git("show", "-s", "--format=%P", second).split() == [first, source]
    assert published.show(f"{second}:ci_eval/code.py") == "two"


def test_a_patch_for_an_older_version_takes_no_tag_from_a_newer_one(published: Published) -> None:
    old = published.here.head
    published.release("1.2.0")
    published.change("more", **{"ci_eval/code.py": "two"})
    newest_1 = published.release("1.3.0")
    newest = published.release("2.0.0")

    patch = published.release("1.2.1", source=old)

    refs = published.refs()
    assert refs["tags/v1"] == newest_1
    assert refs["tags/v2"] == newest
    assert refs["tags/v1.2"] == refs["tags/v1.2.1"] == refs["heads/releases/v1.2"] == patch


def test_a_candidate_moves_no_tag(published: Published) -> None:
    commit = published.release("1.2.0")

    published.change("more", **{"ci_eval/code.py": "two"})
    published.release("1.3.0rc1")

    refs = published.refs()
    assert refs["tags/v1"] == refs["tags/v1.2"] == commit
    assert "tags/v1.3" not in refs
    assert "tags/v1.3.0rc1" in refs


def test_a_job_that_runs_again_changes_nothing(published: Published) -> None:
    commit = published.release("1.2.0")
    refs = published.refs()

    assert published.release("1.2.0") == commit
    assert published.refs() == refs


def test_a_job_that_runs_again_after_a_later_release_takes_nothing_back(
    published: Published,
) -> None:
    source = published.here.head
    first = published.release("1.2.0")
    published.change("a fix", **{"ci_eval/code.py": "two"})
    published.release("1.2.1")
    refs = published.refs()

    assert published.release("1.2.0", source=source) == first
    assert published.refs() == refs


def test_a_moved_tag_that_is_missing_is_put_back_when_the_job_runs_again(
    published: Published,
) -> None:
    commit = published.release("1.2.0")
    Repo(published.hub).git("update-ref", "-d", "refs/tags/v1")

    assert published.release("1.2.0") == commit
    assert published.refs()["tags/v1"] == commit


@pytest.mark.parametrize("change", ["image", "source"])
def test_a_version_is_never_released_with_other_content(published: Published, change: str) -> None:
    commit = published.release("1.2.0")
    published.change("more", **{"ci_eval/code.py": "two"})
    refs = published.refs()

    given = {"image": OTHER_IMAGE, "source": "HEAD^"} if change == "image" else {"source": "HEAD"}
    (said,) = problems(published.release, "1.2.0", **given)

    assert said == (
        f"v1.2.0 is out with other content (commit {commit}), and a release is never changed: "
        "choose the next version."
    )
    assert published.refs() == refs


def test_a_commit_with_the_same_files_is_other_content_all_the_same(published: Published) -> None:
    published.release("1.2.0")
    published.change("nothing")

    (said,) = problems(published.release, "1.2.0")
    assert said.startswith("v1.2.0 is out with other content")


def test_a_version_does_not_come_after_a_later_one_of_its_line(published: Published) -> None:
    published.release("1.2.3")

    assert problems(published.release, "1.2.2") == (
        "v1.2.2 would come after v1.2.3, which is out.",
    )
    assert problems(published.release, "1.2.3rc1") == (
        "v1.2.3rc1 would come after v1.2.3, which is out.",
    )


def test_tags_of_others_are_no_releases(published: Published) -> None:
    Repo(published.hub).git("tag", "v1.2.9-beta", "main")
    Repo(published.hub).git("tag", "nightly", "main")
    Repo(published.hub).git("branch", "v9.9.9", "main")

    commit = published.release("1.2.0")

    assert published.refs()["tags/v1"] == commit


def test_releases_at_once_all_get_there(
    published: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each starts from what the remote had before the others: whoever is late looks again."""
    monkeypatch.setattr(tags, "ATTEMPTS", 1000)  # nothing waits here, and locks take their time
    source = published.here.head
    published.release("1.0.0")
    versions = ["1.0.1", "1.1.0", "1.2.0", "2.0.0"]

    with ThreadPoolExecutor() as pool:
        made = list(pool.map(lambda each: published.release(each, source), versions))

    commits = dict(zip(versions, made, strict=True))
    refs = published.refs()
    assert {each: refs[f"tags/v{each}"] for each in versions} == commits
    assert refs["tags/v1"] == commits["1.2.0"]
    assert refs["tags/v2"] == commits["2.0.0"]
    assert refs["tags/v1.0"] == commits["1.0.1"]


def meanwhile(monkeypatch: pytest.MonkeyPatch, release: Callable[[], str]) -> list[str]:
    """Let somebody `release` between our look at the remote and our push; the list gets what."""
    released: list[str] = []
    read, others = tags.Refs.read, [release]

    def slow(git: tags.Git) -> tags.Refs:
        seen = read(git)
        if others:  # theirs reads, too
            released.append(others.pop()())
        return seen

    monkeypatch.setattr(tags.Refs, "read", slow)
    return released


def test_of_two_releases_of_one_version_at_once_one_is_refused(
    published: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = published.here.head
    theirs = meanwhile(monkeypatch, lambda: published.release("1.2.0", source, OTHER_IMAGE))
    (said,) = problems(published.release, "1.2.0", source)

    assert said.startswith(f"v1.2.0 is out with other content (commit {theirs[0]})")
    assert set(published.refs().values()) == {source, theirs[0]}


def test_a_tag_that_others_move_meanwhile_is_not_lost(
    published: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = published.here.head
    theirs = meanwhile(monkeypatch, lambda: published.release("1.3.0", source))
    ours = published.release("1.2.0", source)

    refs = published.refs()
    assert (refs["tags/v1"], refs["tags/v1.3"]) == (theirs[0], theirs[0])
    assert (refs["tags/v1.2"], refs["tags/v1.2.0"]) == (ours, ours)


def test_where_one_ref_is_refused_nothing_is_pushed(published: Published) -> None:
    hook = published.hub / "hooks" / "update"
    hook.write_text('#!/bin/sh\n[ "$1" != refs/tags/v1 ] || { echo protected >&2; exit 1; }\n')
    hook.chmod(0o755)
    refs = published.refs()

    (said,) = problems(published.release, "1.2.0")

    assert said.startswith("git push failed:")
    assert "protected" in said
    assert published.refs() == refs


# -- The commands


def test_the_commands_go_through_a_release(
    published: Published, tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("pyproject.toml", "ci_eval/__init__.py", "CHANGELOG.md"):
        published.here.write(name, (tree / name).read_text())
    source = published.change("1.2.0")
    here = published.here.folder

    assert main(["check", "1.2.0"], here) == 0
    assert main(["tag", "1.2.0", "--source", source, "--image", IMAGE], here) == 0
    commit = published.refs()["tags/v1.2.0"]
    assert capsys.readouterr().out == f"{commit}\n"
    assert main(["notes", "1.2.0", "--commit", commit, "--image", IMAGE], here) == 0
    assert commit in capsys.readouterr().out
    assert main(["check", "1.2.0"], here) == 1
    assert capsys.readouterr().err == (
        "v1.2.0 is out, and a release is never changed: choose the next version. "
        "To finish a release that was cut off, run its failed jobs again.\n"
    )


def test_pin_changes_the_action_in_place(published: Published) -> None:
    here = published.here.folder

    assert main(["pin", IMAGE], here) == 0
    assert (here / "action.yml").read_text() == PINNED


def test_elsewhere_than_in_the_repository_it_says_what_it_misses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pin", IMAGE], tmp_path) == 1
    assert capsys.readouterr().err == (
        f"{tmp_path / 'action.yml'}: No such file or directory; "
        "run it at the top of the repository.\n"
    )


def test_it_runs_with_nothing_but_python() -> None:
    """As the workflow runs it: no package of ours or of others is installed there."""
    command = [sys.executable, "-S", "-m", "release", "check", "1.2"]
    ended = subprocess.run(
        command, cwd=ROOT, env={"PYTHONPATH": ".github"}, capture_output=True, text=True
    )

    assert ended.returncode == 1
    assert ended.stderr == "'1.2' is no version such as '1.2.3' or '1.2.3rc1'.\n"


# -- The workflows


def test_every_action_is_named_by_its_commit_with_its_version() -> None:
    files = [*(ROOT / ".github" / "workflows").glob("*.yml"), *ROOT.glob("*/action.yml")]
    used = {
        line.strip()
        for path in files
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.match(r" *(- )?uses: (?!\./)", line)
    }

    assert len(used) > 5
    form = re.compile(r"(- )?uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert [line for line in sorted(used) if not form.fullmatch(line)] == []


def test_an_action_has_one_version_in_all_workflows() -> None:
    found: dict[str, set[str]] = {}
    for path in (*(ROOT / ".github" / "workflows").glob("*.yml"), *ROOT.glob("*/action.yml")):
        text = path.read_text(encoding="utf-8")
        for owner, at in re.findall(r"uses: ([\w.-]+/[\w.-]+)[\w./-]*@([0-9a-f]{40} # v\S+)", text):
            found.setdefault(owner, set()).add(at)

    assert {owner: at for owner, at in found.items() if len(at) > 1} == {}


def test_a_release_takes_nothing_from_a_cache_and_leaves_no_credentials() -> None:
    import yaml

    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))[
        "jobs"
    ]
    steps = [step for job in jobs.values() for step in job["steps"]]

    given = [step.get("with", {}) for step in steps if "/checkout@" in step.get("uses", "")]
    assert len(given) > 5
    assert [each for each in given if each.get("persist-credentials") is not False] == []
    assert [step for step in steps if "cache@" in step.get("uses", "")] == []
    node = [step["with"] for step in steps if "/setup-node@" in step.get("uses", "")]
    assert [each["package-manager-cache"] for each in node] == [False]
    assert all("${{" not in step.get("run", "") for step in steps)
    writing = {
        name: sorted(what for what, level in job["permissions"].items() if level == "write")
        for name, job in jobs.items()
        if "write" in job["permissions"].values()
    }
    assert writing == {
        "build": ["packages"],
        "sign": ["attestations", "id-token", "packages"],
        "publish": ["contents"],
        "pypi": ["id-token"],
    }
