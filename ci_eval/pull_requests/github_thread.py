"""Comments on a GitHub pull request, and issues of its repository.

https://docs.github.com/en/rest/issues/issues
"""

from collections.abc import AsyncIterator
from typing import Literal

from pydantic import AliasPath, Field

from ci_eval.forge.github import MAX_PAGES, GitHub
from ci_eval.forge.rest import HostError
from ci_eval.pull_requests.comment_thread import (
    LIMIT,
    Comment,
    IssueThread,
    NewIssue,
    Thread,
    is_marked,
    posting_errors,
)
from ci_eval.records.cases import Json, Stored

_NEEDS = "pull-requests: write"
"""The permission for comments on pull requests; `issues: write` would also do."""
_BOT = "github-actions[bot]"

_LIST = """
query($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      comments(first: 100, after: $after) {
        pageInfo { hasNextPage endCursor }
        nodes { id fullDatabaseId body url viewerDidAuthor isMinimized }
      }
    }
  }
}
"""
_EARLIER = """
query($id: ID!) {
  node(id: $id) {
    ... on IssueComment { userContentEdits(first: 20) { nodes { diff } } }
  }
}
"""
_MINIMIZE = """
mutation($id: ID!, $reason: ReportedContentClassifiers!) {
  minimizeComment(input: {subjectId: $id, classifier: $reason}) {
    minimizedComment { isMinimized }
  }
}
"""


# --- Responses of GraphQL -----------------------------------------------------------------------


class _Node(Stored):
    id: str
    number: str = Field(alias="fullDatabaseId")
    body: str
    url: str
    is_ours: bool = Field(alias="viewerDidAuthor")
    is_hidden: bool = Field(alias="isMinimized")


_COMMENTS = ("repository", "pullRequest", "comments")


class _Page(Stored):
    nodes: tuple[_Node | None, ...] = Field(validation_alias=AliasPath(*_COMMENTS, "nodes"))
    has_next: bool = Field(validation_alias=AliasPath(*_COMMENTS, "pageInfo", "hasNextPage"))
    end: str | None = Field(validation_alias=AliasPath(*_COMMENTS, "pageInfo", "endCursor"))


class _Edit(Stored):
    diff: str | None = None
    """The whole body, despite the name."""


_EDITS = AliasPath("node", "userContentEdits", "nodes")


class _History(Stored):
    edits: tuple[_Edit | None, ...] = Field(default=(), validation_alias=_EDITS)


# --- Responses of REST --------------------------------------------------------------------------


class User(Stored):
    """A user, or an app."""

    login: str
    type: str = ""


class _Comment(Stored):
    id: int
    node_id: str
    html_url: str
    body: str = ""
    user: User | None = None
    minimized: Json = None


class GitHubThread(Thread):
    """The comments on a pull request."""

    def __init__(self, github: GitHub, number: int) -> None:
        self._github = github
        self._number = number
        self._at = f"issues/{number}/comments"
        self._newest = ""
        """URL of the comment that was written last."""
        self._has_graphql = True

    async def own(self) -> list[Comment]:
        """Return our own comments, recognised by author and first line, oldest first."""
        with posting_errors():
            found = await self._by_graphql()
            if found is None:
                found = [each async for each in self._by_rest()]
        return sorted(found, key=lambda each: int(each.id))

    async def add(self, body: str) -> Comment:
        """Add a comment at the end."""
        with posting_errors():
            made = await self._github.post(self._at, {"body": body}, _Comment, needs=_NEEDS)
        return Comment(str(made.id), body, made.html_url, node=made.node_id)

    async def edit(self, comment: Comment, body: str) -> None:
        """Replace the text of a comment."""
        await self._edit(comment, body)
        self._newest = comment.url

    async def earlier(self, comment: Comment) -> list[str]:
        """Return earlier texts of a comment, newest first; none if GraphQL fails."""
        if not self._has_graphql or not comment.node:
            return []
        variables = {"id": comment.node}
        try:
            found = await self._github.graphql(_EARLIER, variables, _History, needs=_NEEDS)
        except HostError:
            self._has_graphql = False
            return []
        return [each.diff for each in found.edits if each and each.diff and len(each.diff) <= LIMIT]

    async def retire(self, comment: Comment, reason: Literal["OUTDATED", "DUPLICATE"]) -> None:
        """Minimize a comment."""
        if self._has_graphql and comment.node:
            variables = {"id": comment.node, "reason": reason}
            try:
                await self._github.graphql(_MINIMIZE, variables, Stored, needs=_NEEDS)
            except HostError:
                self._has_graphql = False
            else:
                return
        where = f"in [another comment]({self._newest})" if self._newest else "in another comment"
        await self._edit(comment, f"*ci-eval continues {where}.*")

    async def remove(self, comment: Comment) -> None:
        """Delete a comment."""
        with posting_errors():
            await self._github.delete(f"issues/comments/{comment.id}", needs=_NEEDS)

    async def _edit(self, comment: Comment, body: str) -> None:
        with posting_errors(is_edit=True):
            at = f"issues/comments/{comment.id}"
            await self._github.patch(at, {"body": body}, needs=_NEEDS)

    async def _by_graphql(self) -> list[Comment] | None:
        """Return our comments; `None` if GraphQL fails, to fall back to REST."""
        owner, _, name = self._github.repository.partition("/")
        variables: dict[str, Json] = {"owner": owner, "name": name, "number": self._number}
        found: list[Comment] = []
        for _ in range(MAX_PAGES if self._has_graphql else 0):
            try:
                page = await self._github.graphql(_LIST, variables, _Page, needs=_NEEDS)
            except HostError:
                break
            found += (
                Comment(each.number, each.body, each.url, each.is_hidden, each.id)
                for each in page.nodes
                if each and each.is_ours and is_readable(each.body)
            )
            if not page.has_next:
                return found
            variables["after"] = page.end
        self._has_graphql = False
        return None

    async def _by_rest(self) -> AsyncIterator[Comment]:
        """Yield our comments."""
        me = await identity(self._github)
        async for each in self._github.listed(self._at, _Comment, needs=_NEEDS):
            if each.user == me and is_readable(each.body):
                hidden = each.minimized is not None
                yield Comment(str(each.id), each.body, each.html_url, hidden, each.node_id)


async def identity(github: GitHub) -> User:
    """Return the user of the token; the token of a workflow cannot look it up.

    Raises:
        HostError: the request failed.

    """
    try:
        return await github.one("/user", User, needs="metadata: read")
    except HostError as exc:
        if exc.status not in (403, 404):
            raise
        return User(login=_BOT, type="Bot")


def is_readable(body: str) -> bool:
    """Return True if a body begins like ours, and is not too long."""
    return len(body) <= LIMIT and is_marked(body)


# --- Issues -------------------------------------------------------------------------------------

_ISSUES_NEED = "issues: write"


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
                needs=_ISSUES_NEED,
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
            return (await self._github.post("issues", sent, _Issue, needs=_ISSUES_NEED)).comment

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
            await self._github.post(at, {"body": said}, Stored, needs=_ISSUES_NEED)
        await self._change(issue, {"state": "closed", "state_reason": "completed"})

    async def _change(self, issue: Comment, change: Json) -> None:
        with posting_errors(is_edit=True):
            at = f"issues/{issue.id}"
            await self._github.patch(at, change, needs=_ISSUES_NEED)
