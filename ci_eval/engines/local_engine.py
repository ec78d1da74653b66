"""Trials on this machine."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from ci_eval.plugins.engine import Engine
from ci_eval.plugins.points import engine
from ci_eval.runtime.context import RunContext


@engine("local")
class Local(Engine):
    """Trials run on this machine, in processes that ci-eval starts."""

    @asynccontextmanager
    async def start(
        self, context: RunContext, folders: Sequence[Path], *, left_out: Path
    ) -> AsyncIterator[None]:
        """Connect to nothing."""
        del context, folders, left_out
        yield None
