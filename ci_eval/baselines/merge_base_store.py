"""No stored runs: the agents of the merge base are run in the same job."""

from collections.abc import Sequence
from typing import ClassVar

from ci_eval.forge.lineage import Lineage
from ci_eval.plugins.baseline_store import BaselineStore
from ci_eval.plugins.points import baseline
from ci_eval.records.errors import UsageError
from ci_eval.records.results import Run
from ci_eval.run_files.score_table import Past
from ci_eval.runtime.context import RunContext


@baseline("merge_base")
class MergeBaseStore(BaselineStore):
    """Stores nothing.  Each run also runs the agents of the merge base and compares with them.

    As soon as the base branch has the configuration, pull requests are compared.  This needs no
    data branch, write permission or history, but each run takes about twice as many trials.
    """

    stores: ClassVar[bool] = False

    def load(self, lineage: Lineage, suite: str, context: RunContext) -> Sequence[Past]:
        """Return nothing."""
        del lineage, suite, context
        return ()

    def save(self, run: Run, context: RunContext) -> bool:
        """Refuse to store `run`.

        Raises:
            UsageError: always.

        """
        del run, context
        message = "not stored: the store 'merge_base' stores nothing"
        raise UsageError(message, hint="leave out `--baseline-save`, or choose another store")
