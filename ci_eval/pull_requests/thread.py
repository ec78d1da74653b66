"""The conversation on a change, as far as we take part in it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, NamedTuple, Protocol

from ci_eval.forge.rest import HostError, LimitedError
from ci_eval.records.errors import CiEvalError, ExitCode

_MARKED = re.compile(r"<!-- ci-eval:v1 id=[^ ]{1,300} -->")
"""The first lines of comments, of whichever suite."""


class PostingError(CiEvalError):
    """Something was not posted, as the message says."""

    exit_code = ExitCode.USAGE_ERROR

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        is_refusal: bool = False,
        is_unsure: bool = False,
    ) -> None:
        super().__init__(message, hint=hint)
        self.is_refusal = is_refusal
        """Whether whoever keeps the conversation did not let us, and asking again is no use."""
        self.is_unsure = is_unsure
        """Whether only looking again tells what became of it: it may have been written."""


_GONE = (404, 410)
_REFUSALS = (401, 403, 404)


@contextmanager
def telling(*, is_edit: bool = False) -> Iterator[None]:
    """Say of a host's errors whether something may have been written all the same.

    What is gone before it is edited is no refusal: the next look tells what is there instead.
    """
    try:
        yield
    except HostError as exc:
        is_gone = is_edit and exc.status in _GONE
        raise PostingError(
            str(exc),
            hint=exc.hint,
            is_refusal=exc.status in _REFUSALS and not is_gone,
            is_unsure=is_gone or _may_be_written(exc),
        ) from exc


def _may_be_written(exc: HostError) -> bool:
    """Check whether the request may have been executed; what a limit refused was not."""
    if isinstance(exc, LimitedError):
        return False
    return exc.status is None or exc.status >= 500


class Comment(NamedTuple):
    """A comment that we wrote."""

    id: str
    body: str
    url: str
    hidden: bool = False
    """Whether it is minimised already."""

    @property
    def first_line(self) -> str:
        """The line that tells which suite it is about."""
        return first_line(self.body)


def first_line(body: str) -> str:
    """Return the first line of a body."""
    return body.partition("\n")[0].rstrip("\r")


def is_marked(body: str) -> bool:
    """Say whether a body begins as ours do; anybody can write that."""
    return bool(_MARKED.fullmatch(first_line(body)))


class Thread(Protocol):
    """A conversation, which others write in at the same time.

    All raise `PostingError` where the other side cannot be asked, or refuses.
    """

    limit: int
    """The longest body, in characters."""

    async def own(self) -> list[Comment]:
        """Return the comments that we wrote and that begin as ours do, the oldest first."""
        ...

    async def add(self, body: str) -> Comment:
        """Write a comment, the newest."""
        ...

    async def edit(self, comment: Comment, body: str) -> None:
        """Write a comment anew, in its place."""
        ...

    async def earlier(self, comment: Comment) -> list[str]:
        """Return what a comment said before, the newest bodies, as far as anybody keeps them."""
        ...

    async def retire(self, comment: Comment, reason: Literal["OUTDATED", "DUPLICATE"]) -> None:
        """Put a comment out of sight, without taking it away from who looks for it."""
        ...

    async def remove(self, comment: Comment) -> None:
        """Take a comment away."""
        ...
