"""Interfaces of a conversation on a pull request or merge request, and of issues about a suite."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, NamedTuple

from ci_eval.forge.rest import GONE, HostError, LimitedError
from ci_eval.records.errors import CiEvalError, ExitCode

LIMIT = 65_536
"""Maximum length of a comment on GitHub, in characters; longer ones on GitLab would not be read."""
_MARKED = re.compile(r"<!-- ci-eval:v1 id=[^ ]{1,300} -->")
"""The first line of a comment of any suite."""


class PostingError(CiEvalError):
    """Something was not posted.

    What to do: grant the permission that the message names, or publish from a second
    workflow, as for [forks](../forks.md).
    """

    exit_code = ExitCode.USAGE_ERROR

    def __init__(
        self, message: str, *, hint: str = "", is_refusal: bool = False, is_unsure: bool = False
    ) -> None:
        super().__init__(message, hint=hint)
        self.is_refusal = is_refusal
        """Whether the host denied permission, so that a retry is useless."""
        self.is_unsure = is_unsure
        """Whether it may have been written; only another look can tell."""


_REFUSALS = (401, 403, 404)


@contextmanager
def posting_errors(*, is_edit: bool = False) -> Iterator[None]:
    """Turn errors of the host into `PostingError`s.

    If a comment was deleted before an edit, that is not a refusal: the next look finds its
    replacement.
    """
    try:
        yield
    except HostError as exc:
        is_gone = is_edit and exc.status in GONE
        raise PostingError(
            str(exc),
            hint=exc.hint,
            is_refusal=exc.status in _REFUSALS and not is_gone,
            is_unsure=is_gone or _may_be_written(exc),
        ) from exc


def _may_be_written(exc: HostError) -> bool:
    """Return True if the request may have been executed; never after a rate limit."""
    is_limited = isinstance(exc, LimitedError)
    return not is_limited and (exc.status is None or exc.status >= 500)


class Comment(NamedTuple):
    """A comment that we wrote."""

    id: str
    body: str
    url: str
    hidden: bool = False
    """Whether it is minimized."""
    node: str = ""
    """Its GraphQL id, on GitHub."""

    @property
    def first_line(self) -> str:
        """The line that identifies its suite."""
        return first_line(self.body)


def first_line(body: str) -> str:
    """Return the first line of a body."""
    return body.partition("\n")[0].rstrip("\r")


def is_marked(body: str) -> bool:
    """Return True if a body begins like ours; anybody can write such a body."""
    return bool(_MARKED.fullmatch(first_line(body)))


class Thread(ABC):
    """A conversation with concurrent writers.

    All methods raise `PostingError` if the host cannot be reached or refuses.
    """

    @abstractmethod
    async def own(self) -> list[Comment]:
        """Return our own comments, recognised by author and first line, oldest first."""

    @abstractmethod
    async def add(self, body: str) -> Comment:
        """Add a comment at the end."""

    @abstractmethod
    async def edit(self, comment: Comment, body: str) -> None:
        """Replace the text of a comment."""

    async def earlier(self, comment: Comment) -> list[str]:
        """Return earlier texts of a comment, newest first; none if the host does not keep them."""
        del comment
        return []

    @abstractmethod
    async def retire(self, comment: Comment, reason: Literal["OUTDATED", "DUPLICATE"]) -> None:
        """Minimize or fold a comment."""

    @abstractmethod
    async def remove(self, comment: Comment) -> None:
        """Delete a comment."""


class NewIssue(NamedTuple):
    """A new issue, apart from its text."""

    title: str
    labels: tuple[str, ...] = ()
    assignees: tuple[str, ...] = ()
    """User names."""


class IssueThread(Thread):
    """The open issues about a suite: adding a comment opens one, removing a comment closes it."""

    async def retire(self, comment: Comment, reason: Literal["OUTDATED", "DUPLICATE"]) -> None:
        """Close an issue that was replaced by another one."""
        del reason
        await self.remove(comment)

    @abstractmethod
    async def close(self, issue: Comment, said: str) -> None:
        """Close an issue after a last comment `said`."""
