"""What is said where GitHub keeps the baseline, and refuses."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

from pydantic import StringConstraints

from ci_eval.forge.github import GitHub, connected
from ci_eval.forge.github_errors import GitHubError
from ci_eval.records.errors import BaselineError, UsageError
from ci_eval.runtime.context import RunContext

T = TypeVar("T")

Commit = Annotated[str, StringConstraints(pattern="^[0-9a-f]{40,64}$")]
"""The name of a commit, as GitHub gives it."""


def loaded(work: Callable[[GitHub], Awaitable[T]], context: RunContext) -> T:
    """Return what `work` reads.

    Raises:
        BaselineError: GitHub cannot be asked, or refuses.

    """
    try:
        return asyncio.run(_connected(work, context))
    except GitHubError as exc:
        raise BaselineError(f"the baseline was not loaded: {exc}", hint=exc.hint) from exc


def saved(work: Callable[[GitHub], Awaitable[T]], context: RunContext) -> T:
    """Return what `work` says of what it stored.

    Raises:
        UsageError: GitHub cannot be asked, or refuses.

    """
    try:
        return asyncio.run(_connected(work, context))
    except GitHubError as exc:
        raise UsageError(f"not stored: {exc}", hint=exc.hint) from exc


async def _connected(work: Callable[[GitHub], Awaitable[T]], context: RunContext) -> T:
    async with connected(context) as github:
        return await work(github)
