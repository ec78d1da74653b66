"""Connections of the baseline stores on GitHub, with errors that name the baseline."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

from pydantic import StringConstraints

from ci_eval.forge.github import GitHub, connected
from ci_eval.forge.rest import HostError
from ci_eval.records.errors import BaselineError, UsageError
from ci_eval.runtime.context import RunContext

T = TypeVar("T")

Commit = Annotated[str, StringConstraints(pattern="^[0-9a-f]{40,64}$")]
"""A full commit hash."""


def with_github(
    work: Callable[[GitHub], Awaitable[T]], context: RunContext, *, writing: bool = False
) -> T:
    """Connect to GitHub, and return the result of `work`.

    Raises:
        BaselineError: a request to GitHub fails or is refused while reading.
        UsageError: the same while `writing`.

    """

    async def connect() -> T:
        async with connected(context) as github:
            return await work(github)

    try:
        return asyncio.run(connect())
    except HostError as exc:
        if writing:
            raise UsageError(f"not stored: {exc}", hint=exc.hint) from exc
        raise BaselineError(f"the baseline was not loaded: {exc}", hint=exc.hint) from exc
