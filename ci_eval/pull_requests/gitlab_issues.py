"""Issues of a GitLab project.

https://docs.gitlab.com/api/issues/
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ci_eval.forge.gitlab import GitLab, connected
from ci_eval.pull_requests.comment_thread import (
    Comment,
    IssueThread,
    NewIssue,
    PostingError,
    is_marked,
    posting_errors,
)
from ci_eval.pull_requests.gitlab_thread import User
from ci_eval.records.cases import Json, Stored
from ci_eval.runtime.context import RunContext


class _Issue(Stored):
    iid: int
    web_url: str
    description: str | None = None
    author: User

    @property
    def comment(self) -> Comment:
        return Comment(str(self.iid), self.description or "", self.web_url)


class GitLabIssues(IssueThread):
    """The open issues that the token's user wrote."""

    def __init__(self, gitlab: GitLab, new: NewIssue) -> None:
        self._gitlab = gitlab
        self._new = new

    async def own(self) -> list[Comment]:
        """Return our open issues, recognised by author and first line, oldest first."""
        with posting_errors():
            me = await self._gitlab.one("/user", User)
            listing = self._gitlab.listed(
                "issues",
                _Issue,
                state="opened",
                scope="all",
                author_id=me.id,
                order_by="created_at",
                sort="asc",
            )
            return [
                each.comment
                async for each in listing
                if each.author == me and is_marked(each.description or "")
            ]

    async def add(self, body: str) -> Comment:
        """Open an issue.

        Raises:
            PostingError: it was not opened, or may not have been; or an assignee does not exist.

        """
        with posting_errors():
            sent = {
                "title": self._new.title,
                "description": body,
                "labels": ",".join(self._new.labels),
                "assignee_ids": [await self._user(name) for name in self._new.assignees],
            }
            return (await self._gitlab.post("issues", sent, _Issue)).comment

    async def edit(self, comment: Comment, body: str) -> None:
        """Replace the text of an issue."""
        await self._change(comment, {"description": body})

    async def remove(self, comment: Comment) -> None:
        """Close an issue, because only owners can delete it."""
        await self._change(comment, {"state_event": "close"})

    async def close(self, issue: Comment, said: str) -> None:
        """Close an issue after a last comment `said`."""
        with posting_errors():
            await self._gitlab.post(f"issues/{issue.id}/notes", {"body": said}, Stored)
        await self.remove(issue)

    async def _user(self, name: str) -> int:
        async for each in self._gitlab.listed("/users", User, username=name):
            return each.id
        raise PostingError(f"GitLab has no user {name!r}; correct `assignees` in the configuration")

    async def _change(self, issue: Comment, change: Json) -> None:
        with posting_errors(is_edit=True):
            await self._gitlab.put(f"issues/{issue.id}", change)


@asynccontextmanager
async def opened(context: RunContext, new: NewIssue) -> AsyncIterator[GitLabIssues]:
    """Connect to the project of the job.

    Raises:
        PostingError: there is no valid token.

    """
    with posting_errors():
        async with connected(context, context.env.get("CI_PROJECT_ID", "")) as gitlab:
            yield GitLabIssues(gitlab, new)
