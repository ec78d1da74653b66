"""The baseline that a run is compared with."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from ci_eval.config.validated_config import Config
from ci_eval.forge.lineage import Lineage
from ci_eval.gate.exemptions import in_force
from ci_eval.records.findings import Noted
from ci_eval.run_files.run_summary import note
from ci_eval.run_files.score_table import Past
from ci_eval.runtime.context import RunContext

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Baseline:
    """The stored runs that a run is compared with."""

    runs: Sequence[Past]
    """The runs, nearest first; empty if nothing is stored yet."""
    lineage: Lineage = field(default_factory=Lineage)
    """The commits whose runs were looked for."""
    history: Sequence[Noted] = ()
    """Summaries of the stored runs, newest first; the nearest run is always among them."""

    def __post_init__(self) -> None:
        known = {each.run_id for each in self.history}
        nearest = (note(past) for past in self.runs[:1] if past.meta.run_id not in known)
        object.__setattr__(self, "history", (*self.history, *nearest))

    @property
    def unused(self) -> str:
        """Why none of the stored runs is compared with; empty if one is, or none is stored."""
        reasons = (self.lineage.why_not(each.commit) for each in self.history)
        return "" if self.runs else "; ".join(dict.fromkeys(reasons))


def load_baseline(
    config: Config,
    context: RunContext,
    commit: str | None = None,
    *,
    for_next_change: bool = False,
    without_change: bool = False,
) -> Baseline | None:
    """Return the configured baseline of `commit` or the checkout; `None` if none is configured.

    On the base branch, `for_next_change` returns that of a change that begins at the checkout.
    `without_change` is as for `lineage.trace`.

    Raises:
        BaselineError: it cannot be read.

    """
    store = config.baseline
    if store is None:
        return None
    lineage = store.lineage(context, commit, without_change=without_change)
    if for_next_change:
        lineage = lineage.of_next_change
    _log.info("comparing with branch %s: %d commits searched", lineage.base, len(lineage.ancestors))
    runs = store.load(lineage, config.suite, context)
    for past in runs:
        in_force(past.meta)  # raises what would otherwise end the comparison, after all trials
    _log.info("baseline store %r: %d runs to compare with", store.type_name, len(runs))
    return Baseline(runs, lineage, store.history(config.suite, context))
