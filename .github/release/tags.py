"""The commit and the tags of a release, on a remote repository that others push to as well.

What users run is a commit of its own: the tree that was tested, but for the line of `action.yml`
that names the image, which cannot be known before the image is built. It lies on the branch of
its minor version. Branch and tags get there in one push, all or none, and only where they still
are what was read: nothing is ever deleted, and whoever comes second looks again.
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from release.sources import pinned
from release.version import ReleaseError, Version

ATTEMPTS = 5
"""How often a push is tried: each time with what others have pushed by then."""
_BOT = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (
        ("NAME", "github-actions[bot]"),
        ("EMAIL", "41898282+github-actions[bot]@users.noreply.github.com"),
    )
}
"""The account to which GitHub ascribes what a workflow commits."""


@dataclass(frozen=True)
class Git:
    """The clone in `folder`."""

    folder: Path
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables beside those of this process."""

    def __call__(self, *args: str, given: str | None = None) -> str:
        """Return what a command prints; an error with what it said, if it fails."""
        done = subprocess.run(  # noqa: S603  # git itself; what is named is an argument
            ["git", "-C", str(self.folder), *args],  # noqa: S607  # the one in PATH
            env=os.environ | self.env,  # noqa: TID251  # a program of its own, which GitHub starts
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise ReleaseError(f"git {args[0]} failed: {done.stderr.strip()}")
        return done.stdout.removesuffix("\n")


@dataclass(frozen=True)
class Refs:
    """What the remote has."""

    named: Mapping[str, str]
    """The object of each ref."""
    commits: Mapping[str, str]
    """The commit of each ref, for annotated tags too."""

    @classmethod
    def read(cls, git: Git) -> "Refs":
        """Ask the remote."""
        lines = [line.split("\t") for line in git("ls-remote", "origin").splitlines()]
        named = {name: each for each, name in lines if not name.endswith("^{}")}
        peeled = {name.removesuffix("^{}"): each for each, name in lines if name.endswith("^{}")}
        return cls(named, named | peeled)

    def released(self) -> list[Version]:
        """Return the versions that are tagged."""
        tags = [name.removeprefix("refs/tags/") for name in self.named if "refs/tags/" in name]
        return [version for tag in tags if (version := Version.of_tag(tag))]


def check_new(folder: Path, version: Version) -> None:
    """Check that the version may be released next.

    Raises:
        ReleaseError: it is out already, or a later one of the same minor version is.

    """
    _check_new(Refs.read(Git(folder)), version)


def publish(folder: Path, version: Version, *, source: str, image: str, pause_s: float = 2) -> str:
    """Put the release on the remote `origin`, and return its commit.

    `source` is the commit that was tested and built, and `image` what was built of it. What is
    there already is left alone, so that a job can be run again after a failure. `pause_s` is how
    long it waits after a push that was refused.

    Raises:
        ReleaseError: the version is out with other content, a later one of its minor version is
            out, or the remote does not take it.

    """
    git = Git(folder)
    source = git("rev-parse", "--verify", f"{source}^{{commit}}")
    tree = _tree(git, source, image)
    for attempt in range(1, ATTEMPTS + 1):
        refs = Refs.read(git)
        commit, new = _commit(git, refs, version, source=source, tree=tree)
        new |= {
            f"refs/tags/{tag}": commit
            for tag in version.moved_tags(refs.released())
            if refs.commits.get(f"refs/tags/{tag}") != commit
        }
        if not new:
            return commit
        leases = [f"--force-with-lease={name}:{refs.named.get(name, '')}" for name in new]
        pushed = [f"{value}:{name}" for name, value in new.items()]
        try:
            git("push", "--quiet", "--atomic", *leases, "origin", *pushed)
        except ReleaseError:
            if attempt == ATTEMPTS:
                raise
            time.sleep(pause_s)
        else:
            return commit
    raise AssertionError  # the last attempt returned or raised


def _check_new(refs: Refs, version: Version) -> None:
    if f"refs/tags/{version.tag}" in refs.named:
        raise ReleaseError(
            f"{version.tag} is out, and a release is never changed: choose the next version. "
            "To finish a release that was cut off, run its failed jobs again."
        )
    later = [
        str(each)
        for each in sorted(refs.released(), key=lambda each: each.order)
        if each.branch == version.branch and each.order > version.order
    ]
    if later:
        raise ReleaseError(f"{version.tag} would come after v{later[-1]}, which is out.")


def _commit(
    git: Git, refs: Refs, version: Version, *, source: str, tree: str
) -> tuple[str, dict[str, str]]:
    """Return the commit of the release, and what the remote lacks for it: object by ref."""
    tag, branch = f"refs/tags/{version.tag}", f"refs/heads/{version.branch}"
    if there := refs.commits.get(tag):
        git("fetch", "--quiet", "--no-tags", "origin", tag)
        if git("rev-parse", f"{there}^{{tree}}") != tree or source not in _parents(git, there):
            raise ReleaseError(
                f"{version.tag} is out with other content (commit {there}), and a release is "
                "never changed: choose the next version."
            )
        return there, {}
    _check_new(refs, version)
    parents = [source]
    if tip := refs.named.get(branch):
        git("fetch", "--quiet", "--no-tags", "origin", branch)
        parents.insert(0, tip)
    # With the date of the source, so that the same release has the same commit each time.
    date = git("show", "--no-patch", "--format=%cI", source)
    dated = Git(git.folder, _BOT | {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date})
    said = f"ci-eval {version}"
    behind = [word for parent in parents for word in ("-p", parent)]
    commit = dated("commit-tree", *behind, "-m", said, tree)
    who = dated("var", "GIT_COMMITTER_IDENT")
    head = f"object {commit}\ntype commit\ntag {version.tag}\ntagger {who}\n\n{said}\n"
    return commit, {branch: commit, tag: git("mktag", given=head)}


def _parents(git: Git, commit: str) -> list[str]:
    return git("show", "--no-patch", "--format=%P", commit).split()


def _tree(git: Git, source: str, image: str) -> str:
    """Return the tree of `source` with the image in `action.yml`, and nothing else changed."""
    # Its last newline is no part of what is returned, see __call__.
    action = pinned(git("show", f"{source}:action.yml") + "\n", image)
    mode = git("ls-tree", source, "action.yml").split()[0]
    blob = git("hash-object", "-w", "--stdin", given=action)
    with tempfile.TemporaryDirectory() as scratch:
        indexed = Git(git.folder, {"GIT_INDEX_FILE": str(Path(scratch) / "index")})
        indexed("read-tree", source)
        indexed("update-index", "--cacheinfo", f"{mode},{blob},action.yml")
        return indexed("write-tree")
