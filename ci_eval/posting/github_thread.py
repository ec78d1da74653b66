"""The conversation on a pull request of GitHub."""

from typing import Literal

from ci_eval.github import GitHub
from ci_eval.posting.thread import Comment
from ci_eval.records import Stored

_NEEDS = "pull-requests: write"


class _Comment(Stored):
    id: int
    html_url: str
    body: str = ""


class GitHubThread:
    """The comments on a pull request."""

    limit = 65_536

    def __init__(self, github: GitHub, number: int) -> None:
        self._github = github
        self._at = f"issues/{number}/comments"

    async def own(self, first_line: str) -> list[Comment]:
        """Return the comments that we wrote and that begin with this line, the oldest first."""
        listed = self._github.listed(self._at, _Comment, needs=_NEEDS)
        return [
            Comment(str(each.id), each.body, each.html_url)
            async for each in listed
            if each.body.splitlines()[:1] == [first_line]
        ]

    async def add(self, body: str) -> Comment:
        """Write a comment, the newest."""
        made = await self._github.post(self._at, {"body": body}, _Comment, needs=_NEEDS)
        return Comment(str(made.id), body, made.html_url)

    async def edit(self, comment: Comment, body: str) -> None:
        """Write a comment anew, in its place."""
        await self._github.patch(f"issues/comments/{comment.id}", {"body": body}, needs=_NEEDS)

    async def retire(self, comment: Comment, reason: Literal["OUTDATED", "DUPLICATE"]) -> None:
        """Put a comment out of sight, without taking it away from who looks for it."""
        raise NotImplementedError

    async def remove(self, comment: Comment) -> None:
        """Take a comment away."""
        await self._github.delete(f"issues/comments/{comment.id}", needs=_NEEDS)
