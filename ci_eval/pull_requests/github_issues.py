"""Issues of a GitHub repository.

https://docs.github.com/en/rest/issues/issues
"""

from ci_eval.forge.github import GitHub
from ci_eval.pull_requests.comment_thread import Comment, IssueThread, NewIssue, posting_errors
from ci_eval.pull_requests.github_thread import User, identity, is_readable
from ci_eval.records.cases import Json, Stored

_NEEDS = "issues: write"


class _Issue(Stored):
    number: int
    html_url: str
    body: str | None = None
    user: User | None = None
    pull_request: Json = None
    """Set if it is a pull request."""

    @property
    def comment(self) -> Comment:
        return Comment(str(self.number), self.body or "", self.html_url)


class GitHubIssues(IssueThread):
    """The open issues that the token's user wrote."""

    def __init__(self, github: GitHub, new: NewIssue) -> None:
        self._github = github
        self._new = new

    async def own(self) -> list[Comment]:
        """Return our open issues, recognised by author and first line, oldest first."""
        with posting_errors():
            me = await identity(self._github)
            listing = self._github.listed(
                "issues",
                _Issue,
                needs=_NEEDS,
                state="open",
                creator=me.login,
                sort="created",
                direction="asc",
            )
            return [
                each.comment
                async for each in listing
                if each.user == me and each.pull_request is None and is_readable(each.body or "")
            ]

    async def add(self, body: str) -> Comment:
        """Open an issue."""
        sent = {
            "title": self._new.title,
            "body": body,
            "labels": list(self._new.labels),
            "assignees": list(self._new.assignees),
        }
        with posting_errors():
            return (await self._github.post("issues", sent, _Issue, needs=_NEEDS)).comment

    async def edit(self, comment: Comment, body: str) -> None:
        """Replace the text of an issue."""
        await self._change(comment, {"body": body})

    async def remove(self, comment: Comment) -> None:
        """Close an issue, because a workflow's token cannot delete it."""
        await self._change(comment, {"state": "closed", "state_reason": "not_planned"})

    async def close(self, issue: Comment, said: str) -> None:
        """Close an issue after a last comment `said`."""
        with posting_errors():
            at = f"issues/{issue.id}/comments"
            await self._github.post(at, {"body": said}, Stored, needs=_NEEDS)
        await self._change(issue, {"state": "closed", "state_reason": "completed"})

    async def _change(self, issue: Comment, change: Json) -> None:
        with posting_errors(is_edit=True):
            at = f"issues/{issue.id}"
            await self._github.patch(at, change, needs=_NEEDS)
