"""The baseline that a run is compared with."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ci_eval.config.model import Config
from ci_eval.forge.lineage import Lineage
from ci_eval.records.findings import Noted
from ci_eval.run_files.score_table import Past
from ci_eval.runtime.context import RunContext


@dataclass(frozen=True)
class Baseline:
    """The stored runs that a run is compared with."""

    runs: Sequence[Past]
    """The runs, nearest first; empty if nothing is stored yet."""
    lineage: Lineage = field(default_factory=Lineage)
    """The commits whose runs were looked for."""
    history: Sequence[Noted] = ()
    """Summaries of the stored runs, newest first."""


def load_baseline(config: Config, context: RunContext) -> Baseline | None:
    """Return the configured baseline, or `None` if none is configured.

    Raises:
        BaselineError: it cannot be read.

    """
    store = config.baseline
    if store is None:
        return None
    lineage = store.lineage(context)
    runs = store.load(lineage, config.suite, context)
    return Baseline(runs, lineage, store.history(config.suite, context))
