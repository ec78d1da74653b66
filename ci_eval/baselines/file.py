"""A baseline in a file of the repository: reviewed like code, there on every machine."""

from collections.abc import Sequence
from pathlib import Path

from ci_eval.baselines._document import stored_runs, with_run
from ci_eval.forge.lineage import Lineage
from ci_eval.plugins.baseline_store import BaselineStore
from ci_eval.plugins.points import baseline
from ci_eval.records.errors import BaselineError, Problem, UsageError
from ci_eval.records.findings import Noted
from ci_eval.records.results import Run
from ci_eval.run_files.run_file import replacing
from ci_eval.run_files.run_summary import note
from ci_eval.run_files.score_table import Past
from ci_eval.runtime.context import RunContext
from ci_eval.runtime.paths import PathText, contained


@baseline("file")
class FileStore(BaselineStore):
    """One file that holds the last runs, newest first.

    `{"schema_version", "runs": [meta, …], "results": [[run, result], …]}`: the values of
    each case with a line of its own, without the evidence.  What is compared with is what the
    file holds, whichever commits it comes from.
    """

    path: PathText = ".ci-eval/baseline.json"
    """The file, from the folder of the configuration."""

    @property
    def work_tree_file(self) -> str:
        """The file."""
        return self.path

    def load(self, lineage: Lineage, suite: str, context: RunContext) -> Sequence[Past]:
        """Return the stored runs, newest first."""
        del lineage
        return self._stored(suite, context)[: self.window]

    def save(self, run: Run, context: RunContext) -> bool:
        """Put `run` first, and drop the oldest beyond the window."""
        path, shown = self._path(context), context.shown(self.path)
        stored = self._stored(run.meta.suite, context)
        if any(past.meta.run_id == run.meta.run_id for past in stored):
            return False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as file:
                file.writelines(with_run(run, stored, path, shown, window=self.window))
        except OSError as exc:
            problem = Problem(f"cannot be written: {exc.strerror or exc}", shown)
            raise UsageError(problems=[problem]) from exc
        return True

    def history(self, suite: str, context: RunContext) -> Sequence[Noted]:
        """Return the stored runs in short, newest first."""
        return [note(past) for past in self._stored(suite, context)]

    def _stored(self, suite: str, context: RunContext) -> list[Past]:
        path, shown = self._path(context), context.shown(self.path)
        return of_suite(stored_runs(path, shown), suite, shown) if path.exists() else []

    def _path(self, context: RunContext) -> Path:
        try:
            return contained(context.root, self.path, written=True)
        except UsageError as exc:
            raise BaselineError(problems=exc.problems) from exc


def of_suite(stored: list[Past], suite: str, shown: str) -> list[Past]:
    """Return what a file holds, which must be of one suite.

    Raises:
        BaselineError: it is of another one, whose cases may be called the same.

    """
    other = next((past.meta.suite for past in stored if past.meta.suite != suite), None)
    if other is not None:
        problem = Problem(f"holds runs of another suite, {other!r}", shown)
        hint = "give each suite a `path` of its own: `baseline: {store: …, path: …}`"
        raise BaselineError(problems=[problem], hint=hint)
    return stored
