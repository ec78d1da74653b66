"""Interface of baseline stores."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, TypeVar

from pydantic import Field

from ci_eval.forge import lineage
from ci_eval.forge.lineage import Lineage, Origin
from ci_eval.plugins.plugin import Plugin
from ci_eval.records.errors import UsageError
from ci_eval.records.findings import Noted
from ci_eval.records.results import Run
from ci_eval.run_files.score_table import Past
from ci_eval.runtime.context import RunContext

T = TypeVar("T")


class BaselineStore(Plugin):
    """Storage for the runs to compare with."""

    stores: ClassVar[bool] = True
    """Whether runs are stored at all."""
    by_commit: ClassVar[bool] = True
    """Whether a run is found by the commit that it was stored for."""

    window: int = Field(default=5, ge=1, le=100)
    """Number of baseline runs to pool; together they show how much a case varies."""
    base: str | None = Field(default=None, min_length=1)
    """Branch to compare with. Default: the target branch of the pull request, else the pushed
    branch if `branches` names it, else the default branch."""
    branches: tuple[str, ...] = ()
    """Branches on which CI stores its runs, as names or patterns such as `release/*`. Default:
    `base`, else the default branch."""
    search: int = Field(default=50, ge=1, le=10_000)
    """Number of commits to search for a stored run, from the merge base backwards."""

    @property
    def work_tree_file(self) -> str:
        """The file in the work tree that runs are read from; a pull request can change it."""
        return ""

    def lineage(
        self, context: RunContext, commit: str | None = None, *, without_change: bool = False
    ) -> Lineage:
        """Return the ancestors of `commit`, by default of the commit that is checked out.

        `without_change` is as for `lineage.trace`.
        """
        return lineage.trace(
            context.clone,
            base=self.base,
            search=self.search,
            commit=commit,
            tracked=self.branches,
            without_change=without_change,
        )

    @abstractmethod
    def load(self, lineage: Lineage, suite: str, context: RunContext) -> Sequence[Past]:
        """Return the runs of `suite` to compare with, nearest first, at most `window` of them.

        Empty if nothing is stored for the lineage.

        Raises:
            BaselineError: the store cannot be reached, or a stored run cannot be read.

        """

    @abstractmethod
    def save(self, run: Run, context: RunContext) -> bool:
        """Store `run`; return `False` if a run with this id is stored already.

        Raises:
            BaselineError: the stored runs cannot be read; they are left unchanged.
            UsageError: the run cannot be stored.

        """

    def place(self, context: RunContext) -> str:
        """Return the location of the stored runs, for a message."""
        del context
        return f"the store {self.type_name!r}"

    def first_push(self, suite: str, context: RunContext) -> str:
        """Return the branch or object that saving would create on a remote; empty if none.

        Raises:
            BaselineError: the store cannot be reached.

        """
        del suite, context
        return ""

    def history(self, suite: str, context: RunContext) -> Sequence[Noted]:
        """Return summaries of the stored runs of `suite`, newest first; empty if unknown.

        Raises:
            BaselineError: the store cannot be reached, or a stored run cannot be read.

        """
        del suite, context
        return ()

    def prune(self, suite: str, keep: int, context: RunContext) -> int:
        """Remove all stored runs of `suite` but `keep`; return the number removed.

        Kept are the first of `as_kept`.

        Raises:
            UsageError: the store does not support pruning.

        """
        del suite, keep, context
        raise UsageError(f"nothing removed: the store {self.type_name!r} does not support pruning")

    def as_kept(
        self, stored: Iterable[T], of: "Callable[[T], Origin]", context: RunContext
    ) -> list[T]:
        """Return the stored runs in the order in which pruning keeps them.

        First those that a change is compared with, nearest first, then the others, newest first.
        """
        newest = sorted(stored, key=lambda each: of(each).created, reverse=True)
        compared = self.lineage(context).of_next_change.choose(newest, of, self.window)
        return [*compared, *(each for each in newest if each not in compared)]
