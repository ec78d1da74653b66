"""What all baseline stores are, wherever they keep the runs to compare with."""

from abc import abstractmethod
from collections.abc import Sequence

from pydantic import Field

from ci_eval.forge import lineage
from ci_eval.forge.lineage import Lineage
from ci_eval.plugins.plugin import Plugin
from ci_eval.records.errors import UsageError
from ci_eval.records.findings import Noted
from ci_eval.records.results import Run
from ci_eval.run_files.score_table import Past
from ci_eval.runtime.context import RunContext


class BaselineStore(Plugin):
    """A place that keeps the runs to compare with."""

    window: int = Field(default=5, ge=1, le=100)
    """How many runs are pooled; together they show how much a case varies."""
    base: str | None = Field(default=None, min_length=1)
    """The branch to compare with; left out, that which a pull request is to get into, or which
    was pushed, else the default branch."""
    branches: tuple[str, ...] = ()
    """The branches on which CI stores its runs, by name or pattern such as `release/*`; left out,
    `base`, else the default branch."""
    search: int = Field(default=50, ge=1, le=10_000)
    """How many commits are looked at, from the merge base on, for one that has a run."""

    @property
    def work_tree_file(self) -> str:
        """The file of the work tree that runs are read from, which a change can bring along."""
        return ""

    def lineage(self, context: RunContext) -> Lineage:
        """Return the commits that what is checked out descends from."""
        return lineage.trace(context.clone, base=self.base, search=self.search)

    @abstractmethod
    def load(self, lineage: Lineage, suite: str, context: RunContext) -> Sequence[Past]:
        """Return the runs of `suite` to compare with, nearest first, as many as the window takes.

        There are none where nothing was stored for the lineage.

        Raises:
            BaselineError: what is stored cannot be read, or the store not be reached.

        """

    @abstractmethod
    def save(self, run: Run, context: RunContext) -> bool:
        """Store `run`; say `False` where a run with this id was there already.

        Raises:
            BaselineError: what is stored already cannot be read; it is left as it is.
            UsageError: it cannot be stored.

        """

    def history(self, suite: str, context: RunContext) -> Sequence[Noted]:
        """Return the stored runs of `suite` in short, newest first; none where nobody knows.

        Raises:
            BaselineError: what is stored cannot be read, or the store not be reached.

        """
        del suite, context
        return ()

    def prune(self, suite: str, keep: int, context: RunContext) -> int:
        """Remove the stored runs of `suite` but the newest `keep`, and say how many went.

        Raises:
            UsageError: nothing can be removed there.

        """
        del suite, keep, context
        raise UsageError(f"nothing was removed: the store {self.type_name!r} cannot do that")
