"""Interface of the issues about a suite, which are written like the comments on a pull request."""

from typing import NamedTuple, Protocol

from ci_eval.pull_requests.comment_thread import Comment, Thread


class NewIssue(NamedTuple):
    """A new issue, apart from its text."""

    title: str
    labels: tuple[str, ...] = ()
    assignees: tuple[str, ...] = ()
    """User names."""


class IssueThread(Thread, Protocol):
    """The open issues of a repository: adding a comment opens one, retiring a comment closes it."""

    async def close(self, issue: Comment, said: str) -> None:
        """Close an issue after a last comment `said`.

        Raises:
            PostingError: it was not closed, or may not have been.

        """
        ...
