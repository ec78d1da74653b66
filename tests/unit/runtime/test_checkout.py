"""The files of a commit as a checkout of the clone writes them: submodules, filters, Git LFS."""

import hashlib
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
from support.git_repositories import ENV, Repo

from ci_eval.runtime.checkout import check_out, copy_untracked, untracked
from ci_eval.runtime.clone import Clone
from ci_eval.runtime.git import GitError

pytestmark = pytest.mark.processes

ALLOWED = ("-c", "protocol.file.allow=always")


@pytest.fixture
def lib(tmp_path: Path) -> Repo:
    """Return a repository that has a submodule itself."""
    inner = Repo(tmp_path / "inner")
    inner.commit("inner", word="deep")
    lib = Repo(tmp_path / "lib")
    lib.git(*ALLOWED, "submodule", "--quiet", "add", inner.folder.as_uri(), "inner")
    lib.commit("first", word="said")
    return lib


@pytest.fixture
def repo(tmp_path: Path, lib: Repo) -> Repo:
    """Return a clone whose submodule was checked out with those in it."""
    repo = Repo(tmp_path / "repo")
    repo.git(*ALLOWED, "submodule", "--quiet", "add", lib.folder.as_uri(), "sub/lib")
    repo.git(*ALLOWED, "submodule", "--quiet", "update", "--init", "--recursive")
    repo.commit("base", **{"a.txt": "a"})
    return repo


def written(repo: Repo, commit: str, tree: Path) -> Path:
    check_out(Clone(repo.folder, ENV), commit, tree)
    return tree


def test_submodules_are_those_of_the_commit(repo, lib, tmp_path):
    base = repo.head
    lib.commit("second", word="new")
    repo.git("-C", "sub/lib", *ALLOWED, "pull", "--quiet", "origin", "main")
    repo.commit("change")
    assert (repo.folder / "sub/lib/word").read_text() == "new"

    tree = written(repo, base, tmp_path / "tree")

    assert (tree / "sub/lib/word").read_text() == "said"
    assert (tree / "sub/lib/inner/word").read_text() == "deep"


def test_a_removed_submodule_is_found_in_the_clone(repo, tmp_path):
    base = repo.head
    repo.git("rm", "--quiet", "sub/lib")
    repo.commit("change")

    assert (written(repo, base, tmp_path / "tree") / "sub/lib/word").read_text() == "said"


def test_a_submodule_that_the_clone_lacks_is_named(repo, lib, tmp_path):
    base = repo.head
    lib.commit("second", word="new")
    shallow = Repo(tmp_path / "shallow")
    shallow.git("fetch", "--quiet", repo.folder.as_uri(), "main")
    shallow.git("reset", "--quiet", "--hard", "FETCH_HEAD")
    assert not [*written(shallow, base, tmp_path / "unused").glob("sub/lib/*")]

    options = ("--quiet", "--init", "--depth=1", "--remote")
    shallow.git(*ALLOWED, "submodule", "update", *options)
    with pytest.raises(GitError, match=r"lacks commit \w{7} of the submodule 'sub/lib'; check out"):
        written(shallow, base, tmp_path / "tree")


@pytest.mark.slow
def test_what_a_filter_made_of_a_file_is_copied_if_it_is_the_same(repo, tmp_path):
    repo.git("config", "filter.up.smudge", "tr a-z A-Z")
    repo.git("config", "filter.up.clean", "tr A-Z a-z")
    base = repo.commit("base", **{".gitattributes": "*.up filter=up\n", "x.up": "x", "y.up": "y"})
    repo.commit("change", **{"a.txt": "b"})
    for name in ("x.up", "y.up"):
        (repo.folder / name).unlink()
        repo.git("checkout", "--", name)
    assert (written(repo, base, tmp_path / "tree") / "x.up").read_text() == "X"

    repo.commit("change", **{"y.up": "z"})
    with pytest.raises(GitError, match=r"y\.up needs git's filter 'up', which ci-eval does not"):
        written(repo, base, tmp_path / "other")


def kept(repo: Repo, content: str) -> str:
    """Return the pointer of a content that Git LFS keeps, and put the content where it does."""
    digest = hashlib.sha256(content.encode()).hexdigest()
    folder = repo.folder / ".git/lfs/objects" / digest[:2] / digest[2:4]
    folder.mkdir(parents=True)
    (folder / digest).write_text(content)
    size = len(content)
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {size}\n"


@pytest.mark.slow
def test_files_of_git_lfs_come_from_where_it_keeps_them(repo, tmp_path):
    pointer, new = kept(repo, "old"), kept(repo, "new")
    files = {".gitattributes": "*.bin filter=lfs -text\n", "x.bin": pointer}
    base = repo.commit("base", **files)
    repo.commit("change", **{"x.bin": new})
    repo.git("config", "filter.lfs.smudge", "git-lfs smudge -- %f")
    unused = written(repo, base, tmp_path / "unused")
    assert (unused / "x.bin").read_text() == pointer  # as in the change

    (repo.folder / "x.bin").write_text("new")
    assert (written(repo, base, tmp_path / "tree") / "x.bin").read_text() == "old"

    (stored,) = repo.folder.glob(f".git/lfs/objects/*/*/{pointer.split(':')[2][:64]}")
    stored.write_text("forged")
    with pytest.raises(GitError, match=r"lacks x\.bin, which Git LFS keeps; run `git lfs fetch"):
        written(repo, base, tmp_path / "lacking")


def test_what_git_does_not_track_is_listed_without_what_tools_write(repo):
    top = repo.folder
    repo.commit("ignores", **{".gitignore": "data/\n.env\n", "src/bot.py": ""})
    for name in (".env", "data/index", "src/extra", "src/__pycache__/a.pyc", "out/run.json"):
        (top / name).parent.mkdir(exist_ok=True)
        (top / name).write_text("x")
    (top / ".venv").mkdir()
    (top / ".venv/pyvenv.cfg").write_text("")

    clone = Clone(top, ENV)
    names = untracked(clone, top / "out")
    assert names == (".env", "data/", "src/extra")
    assert untracked(Clone(top.parent, ENV), top) == ()


def test_what_git_does_not_track_is_copied_where_it_is_missing(repo, tmp_path):
    top, tree = repo.folder, tmp_path / "tree"
    for name in (".env", "data/index", "kept", "led/out"):
        repo.write(name, "new")
    (top / "data/link").symlink_to("index")
    tree.mkdir()
    (tree / "kept").write_text("old")
    (tree / "led").symlink_to(tmp_path / "elsewhere")
    clone = Clone(top, ENV)

    copy_untracked(clone, untracked(clone, top / "out"), tree)

    assert (tree / ".env").read_text() == (tree / "data/link").read_text() == "new"
    assert (tree / "data/link").is_symlink()
    assert (tree / "kept").read_text() == "old"
    copy_untracked(clone, ["led/out"], tree)
    assert not (tmp_path / "elsewhere").exists()
    with pytest.raises(OSError, match="too many or too large"):
        copy_untracked(clone, [".env"] * 100, tree)


@pytest.mark.parametrize(
    ("target", "misleads"),
    [("../beside", True), ("{top}/a.txt", True), ("a.txt", False), ("../none", False)],
)
def test_a_link_that_would_lead_to_another_file_is_refused(repo, tmp_path, target, misleads):
    (tmp_path / "beside").write_text("")
    (repo.folder / "link").symlink_to(target.format(top=repo.folder))
    clone, tree = Clone(repo.folder, ENV), tmp_path / "copy"
    tree.mkdir()
    with expected(OSError if misleads else None):
        copy_untracked(clone, ["link"], tree)

    base = repo.commit("a link")
    with expected(GitError if misleads else None):
        written(repo, base, tmp_path / "tree")


def expected(error: type[Exception] | None) -> AbstractContextManager[object]:
    reason = "the link link leads to another file from there"
    return pytest.raises(error, match=reason) if error else nullcontext()


def test_attributes_outside_of_commits_name_filters_too(repo, tmp_path):
    repo.git("config", "filter.up.smudge", "tr a-z A-Z")
    repo.write(".git/info/attributes", "a.txt filter=up\n")
    base = repo.head
    repo.commit("change", **{"a.txt": "b"})

    with pytest.raises(GitError, match=r"a\.txt needs git's filter 'up'"):
        written(repo, base, tmp_path / "tree")
