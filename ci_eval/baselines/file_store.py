"""Baselines in a file of the repository: reviewed like code, available on every machine."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import PrivateAttr

from ci_eval.baselines._baseline_document import baseline_errors, fault, stored_runs, written
from ci_eval.forge.lineage import Lineage
from ci_eval.plugins.baseline_store import BaselineStore
from ci_eval.plugins.points import baseline
from ci_eval.records.findings import Noted
from ci_eval.records.results import Run
from ci_eval.run_files.run_file import alone_in
from ci_eval.run_files.run_summary import note
from ci_eval.run_files.score_table import Past
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.path_checks import PathText, contained


@baseline("file")
class FileStore(BaselineStore):
    """One file that holds the last runs, newest first.

    `{"schema_version", "runs": [meta, …], "results": [[run, result], …]}`: one line for the
    values of each case, without the evidence.  The runs in the file are the baseline, whichever
    commits they come from.
    """

    by_commit = False

    path: PathText = ".ci-eval/baseline.json"
    """Path of the file, relative to the folder of the configuration."""

    _loaded: list[Past] | None = PrivateAttr(default=None)
    """The runs that `load` read, so that `history` need not read them again."""

    @property
    def work_tree_file(self) -> str:
        """The baseline file."""
        return self.path

    def load(self, lineage: Lineage, suite: str, context: RunContext) -> Sequence[Past]:
        """Return the stored runs, newest first."""
        del lineage
        self._loaded = self._stored(suite, context)
        return self._loaded[: self.window]

    def save(self, run: Run, context: RunContext) -> bool:
        """Add `run` in front, and keep only the newest runs of the window."""
        path, shown = self._path(context), context.shown(self.path)
        with alone_in(context.root):
            stored = self._stored(run.meta.suite, context)
            if any(past.meta.run_id == run.meta.run_id for past in stored):
                return False
            written(run, stored, path, shown, window=self.window)
        self._loaded = None
        return True

    def place(self, context: RunContext) -> str:
        """Return the file."""
        return context.shown(self.path)

    def history(self, suite: str, context: RunContext) -> Sequence[Noted]:
        """Return the summaries of the stored runs, newest first."""
        loaded = self._stored(suite, context) if self._loaded is None else self._loaded
        self._loaded = None
        return [note(past) for past in loaded]

    def _stored(self, suite: str, context: RunContext) -> list[Past]:
        path, shown = self._path(context), context.shown(self.path)
        return of_suite(stored_runs(path, shown), suite, shown) if path.exists() else []

    def _path(self, context: RunContext) -> Path:
        with baseline_errors():
            return contained(context.root, self.path, written=True)


def of_suite(stored: list[Past], suite: str, shown: str) -> list[Past]:
    """Return the runs of a file, which must all be of `suite`.

    Raises:
        BaselineError: a run is of another suite, whose cases may have the same names.

    """
    other = next((past.meta.suite for past in stored if past.meta.suite != suite), None)
    if other is not None:
        hint = (
            "give each suite its own `path`: `baseline: {store: …, path: …}`; if the name of the "
            "suite has changed, set `name` to the earlier one"
        )
        raise fault(f"holds runs of another suite, {other!r}", shown, hint=hint)
    return stored
