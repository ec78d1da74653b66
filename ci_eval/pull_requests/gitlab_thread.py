"""Notes on a GitLab merge request, and issues of its project.

https://docs.gitlab.com/api/issues/
"""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Literal, NamedTuple

from ci_eval.forge.gitlab import GitLab, connected
from ci_eval.pull_requests.comment_thread import (
    Comment,
    IssueThread,
    NewIssue,
    PostingError,
    Thread,
    is_marked,
    posting_errors,
)
from ci_eval.records.cases import Json, Stored
from ci_eval.runtime.context import RunContext

_RETIRED = "<!-- ci-eval:retired -->"
"""The first line of a folded note, so that it is not mistaken for the current one."""
_MAX_SHOWN = 500
"""Maximum number of characters of a variable that a message quotes."""
_SUMMARIES = {"OUTDATED": "Outdated report", "DUPLICATE": "Duplicate report"}


class MergeRequest(NamedTuple):
    """The merge request of a job."""

    project: str
    """The number or the path of the target project."""
    number: str
    """Its number in that project."""
    url: str
    """URL of its page."""
    commit: str
    """Its head commit."""


class User(Stored):
    """A user of GitLab."""

    id: int


class _Note(Stored):
    id: int
    body: str
    author: User
    system: bool = False
    """Whether GitLab itself wrote it."""


class GitLabThread(Thread):
    """The notes on a merge request."""

    def __init__(self, gitlab: GitLab, merge_request: MergeRequest) -> None:
        self._gitlab = gitlab
        self._url = merge_request.url
        self._at = f"merge_requests/{merge_request.number}/notes"
        self._me: int | None = None

    async def own(self) -> list[Comment]:
        """Return our own notes, recognised by author and first line, oldest first."""
        with posting_errors():
            me = await self._identity()
            listed = self._gitlab.listed(
                self._at, _Note, sort="asc", order_by="created_at", activity_filter="only_comments"
            )
            return [
                self._comment(each)
                async for each in listed
                if each.author.id == me and not each.system and is_marked(each.body)
            ]

    async def add(self, body: str) -> Comment:
        """Add a note at the end."""
        with posting_errors():
            return self._comment(await self._gitlab.post(self._at, {"body": body}, _Note))

    async def edit(self, comment: Comment, body: str) -> None:
        """Replace the text of a note."""
        with posting_errors(is_edit=True):
            await self._gitlab.put(f"{self._at}/{comment.id}", {"body": body})

    async def retire(self, comment: Comment, reason: Literal["OUTDATED", "DUPLICATE"]) -> None:
        """Fold a note under one line, because GitLab cannot minimize notes."""
        summary = f"<details><summary>{_SUMMARIES[reason]}</summary>"
        await self.edit(comment, f"{_RETIRED}\n{summary}\n\n{comment.body}\n\n</details>")

    async def remove(self, comment: Comment) -> None:
        """Delete a note."""
        with posting_errors():
            await self._gitlab.delete(f"{self._at}/{comment.id}")

    async def _identity(self) -> int:
        """Return the id of the token's user, which may be a bot."""
        if self._me is None:
            self._me = (await self._gitlab.one("/user", User)).id
        return self._me

    def _comment(self, note: _Note) -> Comment:
        return Comment(str(note.id), note.body, f"{self._url}#note_{note.id}")


@asynccontextmanager
async def opened(
    context: RunContext, number: int | None = None
) -> AsyncIterator[tuple[GitLabThread, MergeRequest] | None]:
    """Open the thread of the job's merge request, or of merge request `number` of its project.

    Yields `None` if the job has no merge request.

    Raises:
        PostingError: there is no valid token, or the job belongs to several merge requests.

    """
    found = merge_request(context.env, number)
    if found is None:
        yield None
        return
    with posting_errors():
        async with connected(context, found.project) as gitlab:
            yield GitLabThread(gitlab, found), found


def merge_request(env: Mapping[str, str], number: int | None = None) -> MergeRequest | None:
    """Return the merge request that the variables of a job name.

    For a branch pipeline, GitLab lists the open merge requests of the branch; if there is exactly
    one, it is used.

    Raises:
        PostingError: there are several.

    """
    project = env.get("CI_MERGE_REQUEST_PROJECT_ID") or env.get("CI_PROJECT_ID", "")
    url = env.get("CI_MERGE_REQUEST_PROJECT_URL") or env.get("CI_PROJECT_URL", "")
    named = str(number or "") or env.get("CI_MERGE_REQUEST_IID", "")
    if not named:
        wanted = env.get("CI_OPEN_MERGE_REQUESTS", "")
        if "," in wanted:
            message = f"this branch has several merge requests: {wanted[:_MAX_SHOWN]}"
            raise PostingError(message, hint="select one with --pr NUMBER")
        wanting = re.fullmatch(r"([\w./-]+)!([0-9]+)", wanted)
        if not wanting:
            return None
        project, named = wanting.groups()
        url = f"{env.get('CI_SERVER_URL', '')}/{project}"
    if not project or not re.fullmatch("[0-9]{1,12}", named):
        return None
    # The commit of a merged-results pipeline is not on any branch.
    commit = env.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA") or env.get("CI_COMMIT_SHA", "")
    return MergeRequest(project, named, f"{url}/-/merge_requests/{named}", commit)


# --- Issues -------------------------------------------------------------------------------------


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
async def opened_issues(context: RunContext, new: NewIssue) -> AsyncIterator[GitLabIssues]:
    """Connect to the project of the job.

    Raises:
        PostingError: there is no valid token.

    """
    with posting_errors():
        async with connected(context, context.env.get("CI_PROJECT_ID", "")) as gitlab:
            yield GitLabIssues(gitlab, new)
