"""Real git repositories in temporary folders."""

import hashlib
import os
import subprocess
from pathlib import Path

ENV = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
}
"""What a command gets of the environment: nothing of the user's settings, and no CI."""
_WHO = {
    f"GIT_{role}_{kind}": "tests@example.com"
    for role in ("AUTHOR", "COMMITTER")
    for kind in ("NAME", "EMAIL")
}


class Repo:
    """A repository with a work tree."""

    def __init__(self, folder: Path, branch: str = "main") -> None:
        self.folder = folder
        if not folder.exists():
            folder.mkdir(parents=True)
            self.git("init", "--quiet", f"--initial-branch={branch}")

    def git(self, *args: str) -> str:
        """Return the output of a git command."""
        done = subprocess.run(
            # Newer ones tidy up in the background, which others would see.
            ["git", "-c", "maintenance.auto=false", *args],
            cwd=self.folder,
            env=ENV | _WHO,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def commit(self, name: str = "a change", **files: str) -> str:
        """Commit, with these files changed, and return the commit."""
        for path, text in files.items():
            self.write(path, text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", name)
        return self.head

    def write(self, path: str, text: str) -> None:
        """Write a file of the work tree."""
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(text)

    @property
    def head(self) -> str:
        return self.git("rev-parse", "HEAD")

    def on(self, branch: str, start: str = "HEAD") -> "Repo":
        """Check out a new branch."""
        self.git("checkout", "--quiet", "-b", branch, start)
        return self

    def merge(self, name: str) -> str:
        """Merge `name` with a commit of its own, and return that."""
        self.git("merge", "--quiet", "--no-ff", "-m", f"merge {name}", name)
        return self.head

    def state(self) -> str:
        """Return a digest of everything in the folder: every file, those of `.git` too."""
        digest = hashlib.sha256()
        for path in sorted(self.folder.rglob("*")):
            digest.update(str(path).encode())
            if path.is_file():
                digest.update(path.read_bytes())
        return digest.hexdigest()


def git_init(folder: Path) -> None:
    """Make a repository without a commit of a folder, which need not be there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    Repo(folder).git("init", "--quiet", "--initial-branch=main")


def make_hub(folder: Path) -> Path:
    """Return a new bare repository, which sends what it is asked for, as GitHub's do."""
    hub = Repo(folder / "made")
    hub.git("init", "--quiet", "--bare", "--initial-branch=main", str(folder / "hub.git"))
    hub.git("-C", str(folder / "hub.git"), "config", "uploadpack.allowFilter", "true")
    return folder / "hub.git"


def clone(source: Path, folder: Path, *options: str) -> Repo:
    """Return a clone; of a path as of any other address, so that it can be a shallow one."""
    source_repo = Repo(source)
    source_repo.git("clone", "--quiet", *options, source.as_uri(), str(folder))
    return Repo(folder)
