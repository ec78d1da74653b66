"""What was observed of the merge base in the job of a run."""

from dataclasses import dataclass, field
from typing import NamedTuple

from ci_eval.records.results import RunMeta, TrialResult
from ci_eval.run.base_arm import MAX_REASON
from ci_eval.run.collect import Collected, Progress
from ci_eval.run_files.score_table import Past
from ci_eval.text.sanitize import one_line


class Confirmation(NamedTuple):
    """What was observed of the merge base in the job of a run."""

    base: Past | None = None
    """The agents that could be run, and their results; `None` if there are none."""
    trials: int = 0
    """The number of its trials."""
    unconfirmed: str = ""
    """Why agents could not be run although the verdict was in doubt; empty if they could."""
    base_is_new: bool = False
    """Whether the merge base has nothing to run yet."""
    limited_by: str = ""
    """The limits that allowed no further trials; empty if there were none."""


NOT_CONFIRMED = Confirmation()


@dataclass
class Failing:
    """The agents of the merge base that have not had an observable trial so far."""

    first: dict[str, str] = field(default_factory=dict)
    """The first error of each agent that had one."""
    observed: set[str] = field(default_factory=set)

    def add(self, result: TrialResult) -> None:
        """Count a trial."""
        if result.error:
            self.first.setdefault(result.key.agent, result.error.gist)
        else:
            self.observed.add(result.key.agent)

    @property
    def agents(self) -> list[str]:
        """Their names."""
        return [name for name in self.first if name not in self.observed]

    @property
    def reason(self) -> str:
        """Why they cannot be run; empty if all can."""
        causes = dict.fromkeys(self.first[name] for name in self.agents)
        return one_line("; ".join(causes), MAX_REASON)

    def without(self, meta: RunMeta) -> RunMeta:
        """Return the metadata of the base arm without them."""
        kept = tuple(name for name in meta.agents if name not in self.agents)
        return meta.model_copy(update={"agents": kept})


def confirmed_by(base: Collected) -> Confirmation:
    """Return the confirmation by a finished run of the base arm."""
    failing, trials = Failing(), 0
    for result in base.run.results():
        failing.add(result)
        trials += result.error is None or result.error.kind != "not_run"
    meta = failing.without(base.run.meta)
    is_base = meta.agents or meta.gone or meta.gone_groups
    past = Past(meta, base.tally.columns) if is_base else None
    return Confirmation(past, trials if past else 0, failing.reason)


@dataclass
class BaseProgress(Progress):
    """Progress of the base arm: its trials count, but its failures are not the change's."""

    shown: Progress
    failing: Failing = field(default_factory=Failing)

    def landed(self, result: TrialResult) -> None:
        """Count a result."""
        self.shown.advanced()
        self.failing.add(result)

    def adopted(self, result: TrialResult) -> None:
        """Count a result."""
        self.failing.add(result)
