"""What is on GitHub: one repository, its pull requests, comments, commits, runs and artifacts."""

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

REPOSITORY = "octo/shop"
REPOSITORY_ID = 4711
FORK = "stranger/shop"
FORK_ID = 4712
MAX_COMMENT = 65_536
"""The longest body of a comment, in characters."""


def sha(number: int) -> str:
    """Return the name of a commit."""
    return f"{number:040x}"


def zipped(members: Mapping[str, bytes]) -> bytes:
    """Return an archive."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


@dataclass(frozen=True)
class Author:
    """Who wrote something."""

    login: str
    """As REST has it: that of an app ends with `[bot]`."""
    id: int
    type: str = "User"


ACTIONS = Author("github-actions[bot]", 41_898_282, "Bot")
"""Whom `GITHUB_TOKEN` stands for."""
OTHER_BOT = Author("dependabot[bot]", 49_699_333, "Bot")
HUMAN = Author("mona", 2)


@dataclass
class Comment:
    """A comment under a pull request."""

    id: int
    number: int
    """Of the pull request."""
    body: str
    author: Author | None
    """`None`: the account was deleted."""
    created: int
    """When it was made, in changes since the first of all."""
    updated: int
    """When it was written last, in the same."""
    minimized: str | None = None
    """Why it is folded, such as `outdated`; `None` where it is not."""
    edits: list[str] = field(default_factory=list)
    """All that it said, the oldest first; none where it was never edited."""

    def edit(self, body: str, now: int) -> None:
        """Write it anew; what it said is kept."""
        self.edits += [body] if self.edits else [self.body, body]
        self.body, self.updated = body, now

    @property
    def node_id(self) -> str:
        return f"IC_kwDO{self.id}"


@dataclass
class PullRequest:
    """A pull request."""

    number: int
    head: str
    """The commit."""
    branch: str
    base: str = "main"
    base_sha: str = sha(0)
    repository: str | None = REPOSITORY
    """Where its branch is; `None` where that was deleted."""
    state: str = "open"
    merged: bool = False
    merge_commit: str | None = None
    commits: tuple[str, ...] = ()
    """Its other commits."""
    locked: bool = False

    @property
    def node_id(self) -> str:
        return f"PR_kwDO{self.number}"

    @property
    def owner(self) -> str:
        return (self.repository or "ghost/").partition("/")[0]


@dataclass
class Issue:
    """An issue."""

    number: int
    title: str
    body: str
    author: Author
    labels: list[str] = field(default_factory=list)
    assignees: list[str] = field(default_factory=list)
    state: str = "open"
    reason: str | None = None
    """Why it was closed."""


@dataclass
class WorkflowRun:
    """A run of a workflow."""

    id: int
    head: str
    """The commit."""
    branch: str | None = "main"
    event: str = "push"
    path: str = ".github/workflows/evaluate.yml"
    name: str = "evaluate"
    attempt: int = 1
    status: str = "completed"
    conclusion: str | None = "success"
    repository: str | None = REPOSITORY
    """Where the commit comes from: a fork, for its pull requests."""
    pull_requests: tuple[int, ...] = ()
    """Those that it says it was for; it never says so of those from forks."""
    jobs: list[dict[str, Any]] = field(default_factory=list)


class State:
    """One repository, as it is on GitHub."""

    def __init__(self) -> None:
        self.pulls: dict[int, PullRequest] = {}
        self.comments: list[Comment] = []
        """The oldest first."""
        self.issues: dict[int, Issue] = {}
        self.collaborators = {"mona"}
        """The people to whom an issue can be assigned."""
        self.artifacts: list[dict[str, Any]] = []
        """The newest first."""
        self.files: dict[str, bytes] = {}
        """Where artifacts are, on the other host."""
        self.runs: dict[int, WorkflowRun] = {}
        self.check_runs: list[dict[str, Any]] = []
        """The newest first."""
        self.annotations: dict[int, list[dict[str, Any]]] = {}
        """Of check runs, by their ids."""
        self.branches: dict[str, list[str]] = {"main": []}
        """The commits of branches, the newest first."""
        self.merges: dict[str, list[str]] = {}
        """The parents of merges that are on no branch."""
        self.missing: set[str] = set()
        """Commits that were not pushed."""
        self.me = ACTIONS
        """Whom the token stands for."""
        self.finds_forks_by_commit = False
        """Whether the pull requests of a fork's commit are found."""
        self._ticks = 0

    def tick(self) -> int:
        self._ticks += 1
        return self._ticks

    # --- Pull requests and comments -----------------------------------------------------------

    def add_pull(self, number: int = 1, head: str = sha(10), **more: Any) -> PullRequest:
        """Add a pull request, from the branch `change` of the repository itself."""
        found = PullRequest(number, head, **{"branch": "change", **more})
        self.pulls[number] = found
        return found

    def add_fork(self, number: int = 1, head: str = sha(10), **more: Any) -> PullRequest:
        """Add a pull request from a fork."""
        return self.add_pull(number, head, **{"repository": FORK, **more})

    def add_issue(self, body: str, *, author: Author = ACTIONS, **more: Any) -> Issue:
        """Add an issue."""
        number = 1 + max([*self.pulls, *self.issues], default=0)
        made = self.issues[number] = Issue(
            number, **{"title": "t", **more}, body=body, author=author
        )
        return made

    def add_comment(
        self, body: str, *, number: int = 1, author: Author | None = ACTIONS, **more: Any
    ) -> Comment:
        """Add a comment under a pull request."""
        now = self.tick()
        made = Comment(3_000_000_000 + now, number, body, author, now, now, **more)
        self.comments.append(made)
        return made

    def comment(self, number: int) -> Comment | None:
        """Return the comment with an id."""
        return next((each for each in self.comments if each.id == number), None)

    def bodies(self, number: int = 1, *, shown: bool = True) -> list[str]:
        """Return our comments under a pull request, without those that are folded."""
        return [
            each.body
            for each in self.comments
            if (each.number, each.author) == (number, self.me) and not (shown and each.minimized)
        ]

    # --- Runs and artifacts -------------------------------------------------------------------

    def add_run(self, number: int, head: str, **more: Any) -> WorkflowRun:
        """Add a run of a workflow."""
        found = self.runs[number] = WorkflowRun(number, head, **more)
        return found

    def add_artifact(
        self,
        content: bytes | Mapping[str, bytes],
        head_sha: str,
        *,
        name: str = "ci-eval-baseline",
        branch: str = "main",
        repository: int = REPOSITORY_ID,
        workflow: str = ".github/workflows/evaluate.yml",
        run: int | None = None,
        **more: Any,
    ) -> int:
        """Add an artifact, the newest, of `run` or of a run of its own, and return its id."""
        number = 100 + len(self.artifacts)
        run = 1000 + number if run is None else run
        archive = content if isinstance(content, bytes) else zipped(content)
        self.files[f"/{number}.zip"] = archive
        origin = REPOSITORY if repository == REPOSITORY_ID else FORK
        if run not in self.runs:
            self.add_run(run, head_sha, branch=branch, path=workflow, repository=origin)
        made = {
            "id": number,
            "name": name,
            "size_in_bytes": len(archive),
            "expired": False,
            "created_at": f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z",
            "workflow_run": {
                "id": run,
                "repository_id": REPOSITORY_ID,
                "head_repository_id": repository,
                "head_branch": branch,
                "head_sha": head_sha,
            },
        }
        self.artifacts.insert(0, {**made, **more})
        return number

    # --- Check runs ---------------------------------------------------------------------------

    def add_check_run(
        self,
        commit: str,
        text: str | None,
        *,
        name: str = "ci-eval baseline",
        slug: str = "github-actions",
        **more: Any,
    ) -> int:
        """Add a check run that somebody made, and return its id."""
        output = {"title": None, "summary": None, "text": text}
        sent = {"name": name, "head_sha": commit, "output": output, **more}
        return self.made_check_run(sent, slug)

    def made_check_run(self, sent: dict[str, Any], slug: str) -> int:
        """Keep a check run as it was sent, and return its id."""
        number = 500 + len(self.check_runs)
        kept = {"id": number, "status": "queued", "conclusion": None, "external_id": ""}
        self.annotations[number] = []
        self.check_runs.insert(0, kept | {"app": {"slug": slug, "name": "GitHub Actions"}})
        self.changed_check_run(self.check_runs[0], sent)
        return number

    def changed_check_run(self, kept: dict[str, Any], sent: dict[str, Any]) -> None:
        """Change a check run; annotations are added to those that are there."""
        output = {"title": None, "summary": None, "text": None, **kept.get("output", {})}
        told = dict(sent.get("output", {}))
        self.annotations[kept["id"]] += told.pop("annotations", [])
        kept |= sent
        if kept.get("conclusion"):
            kept["status"] = "completed"
        kept["output"] = output | told

    # --- Commits ------------------------------------------------------------------------------

    def parents(self, commit: str) -> list[str]:
        return self.merges.get(commit) or (self.history(commit) or [])[1:2]

    def history(self, name: str) -> list[str] | None:
        """Return a branch or a commit and what is behind it; nothing where there is no such."""
        if name in self.branches:
            return self.branches[name]
        if name in self.merges:
            return [name]
        for commits in self.branches.values():
            if name in commits:
                return commits[commits.index(name) :]
        return None
