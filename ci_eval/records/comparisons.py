"""How a run compares with its baseline."""

from typing import Literal

from ci_eval.records.bounds import Count, Derived, Value
from ci_eval.records.cases import Record, Stored
from ci_eval.records.results import Tier
from ci_eval.records.trials import Place


class GroupKey(Record):
    """The unit of comparison and judgement: one criterion on one evalset with one agent."""

    agent: str
    evalset: str
    criterion: str


Outcome = Literal["improved", "unchanged", "regressed", "inconclusive", "not_compared"]


class Delta(Stored):
    """The change of one criterion against the baseline, over the cases in both runs."""

    group: GroupKey
    cases: Count
    """Cases that were measured in both runs and count for the gate."""
    value: Value | None
    """This run's mean over the cases in both runs, with missing values as the best possible."""
    baseline: Value | None
    """The baseline's mean over the same cases."""
    baseline_with_exempt: Value | None = None
    """The same with exempt cases, which the score has, too; `None` if there are none."""
    effect: Derived | None = None
    """The mean of the paired differences; negative is a drop where higher is better."""
    interval: tuple[Derived, Derived] | None = None
    """The 95 % confidence interval of the effect; may reach beyond what bounded scores allow."""
    p_value: Derived | None = None
    """Uncorrected p-value of the one-sided test of "no drop"; `None` if not tested."""
    level: Derived | None = None
    """Significance level for the p-value, corrected for all tests and looks."""
    least: Derived | None = None
    """The smallest drop that counts, in the criterion's own unit; also `None` in older reports."""
    visible: bool = False
    """Whether there are enough cases and runs to distinguish any drop from noise."""
    outcome: Outcome
    reason: str = ""
    steady: bool = False
    """Whether several baseline runs observed the same cases and always scored them the same."""
    tier: Tier = "block"
    """Effect of a regression."""
    confirmed: bool = False
    """Whether the comparison is with the merge base, run in the same job, not with stored runs."""


class Together(Stored):
    """The change of all blocking criteria combined: the mean of their changes."""

    criteria: Count
    effect: Derived
    """As a share of each criterion's interval; negative is worse."""
    p_value: Derived
    level: Derived
    outcome: Outcome


class _OfCase(Stored):
    """Something about one case under one criterion."""

    group: GroupKey
    case: str

    @property
    def place(self) -> Place:
        """The case with its agent."""
        return Place(self.group.agent, self.group.evalset, self.case)


class CaseChange(_OfCase):
    """The change of one case under one criterion."""

    change: Literal["newly_failing", "fixed", "dropped", "newly_erring"]
    value: Value | None
    baseline: Value | None
    certain: bool = False
    """Whether the change of this case alone is significant."""
    suspected: bool = False
    """Whether it always passed and always fails now, or never varied and is worse; maybe noise."""
    failed: Count = 0
    """Failed trials in this run."""
    trials: Count = 0
    """Trials in this run."""
    trials_before: Count = 0
    """Trials in the baseline."""
    failed_before: Count = 0
    """Failed trials in the baseline."""
    confirmed: tuple[Count, Count] | None = None
    """Of the confirming trials: the number that failed, and the total."""
    base: tuple[Count, Count] | None = None
    """Of the trials with the merge base in the same job: the number that failed, and the total."""
    in_base: bool = False
    """Whether it also fails with the merge base, so that this change is not the cause."""
    p_value: Derived | None = None
    """P-value of "as reliable as before", from the confirming trials if there are any."""
    excused: Literal["", "accepted", "quarantined"] = ""
    """Why the gate ignores it."""


class Flaky(_OfCase):
    """One case that passes in some trials of the baseline and fails in others."""

    failed: Count
    trials: Count


class Excused(Stored):
    """An accepted drop, or a case in quarantine."""

    kind: Literal["accepted", "quarantined"]
    named: str
    """The case or criterion that it covers, as the configuration names it."""
    reason: str = ""
    owner: str = ""
    until: str
    """The expiry date: the last valid day."""
    expired: bool = False
    cases: tuple[str, ...] = ()
    """The cases of this run that it covers, as `evalset/case`."""


class Silence(Stored):
    """Cases in which a criterion finds nothing to measure, although it measured them before."""

    group: GroupKey
    cases: tuple[str, ...]
    p_value: Derived
    """The maximum probability of as many by chance."""
    level: Derived
    """Up to this p-value, chance does not explain them."""


class Vanished(Stored):
    """Something in the baseline that this run lacks."""

    kind: Literal["case", "criterion", "agent", "evalset"]
    name: str
    where: str = ""


class Comparison(Stored):
    """All changes against the baseline."""

    baseline_runs: tuple[str, ...] = ()
    """Ids of the pooled runs, nearest first."""
    baseline_created: str = ""
    baseline_commit: str | None = None
    baseline_distance: Count | None = None
    """Number of commits between it and the commit to compare with; `None` if not an ancestor."""
    baseline_branch: str | None = None
    """The branch that was searched for it."""
    comparable: bool = True
    """Whether any criterion that may block is comparable with the baseline."""
    base_trials: Count = 0
    """Trials of the agents of the merge base in the same job."""
    unconfirmed: str = ""
    """Why the merge base was not run although there was doubt, or why its results do not count."""
    base_copies: tuple[str, ...] = ()
    """The untracked files that were copied for the merge base."""
    limited_by: str = ""
    """The limits that allowed no further trials although there was doubt."""
    shallow: bool = False
    """Whether the clone was too shallow to search the commits."""
    rounds: Count = 0
    """Rerun rounds because of inconclusive results."""
    confirming: Count = 0
    """Trials that were drawn to confirm regressions of single cases."""
    together: Together | None = None
    """All blocking criteria combined; `None` if there are fewer than two."""
    deltas: tuple[Delta, ...] = ()
    changes: tuple[CaseChange, ...] = ()
    added: tuple[str, ...] = ()
    """Cases that are not in the baseline, as `evalset/case`."""
    unmatched_failures: tuple[str, ...] = ()
    """Failed cases without results in the baseline to compare with, as `agent/evalset/case`."""
    vanished: tuple[Vanished, ...] = ()
    silent: tuple[Silence, ...] = ()
    not_comparable: tuple[str, ...] = ()
    """Cases and criteria whose definition changed, with what changed."""
    flaky: tuple[Flaky, ...] = ()
    """The flakiest cases of the baseline, flakiest first; a bounded number."""
    flaky_total: Count = 0
    """Number of all flaky cases."""
    excused: tuple[Excused, ...] = ()
    """Accepted drops and quarantined cases."""
    hidden: tuple[str, ...] = ()
    """What would block if the errors allowed by `gate.max_errors` were values that just pass."""
    loosened: tuple[str, ...] = ()
    """How this pull request weakens its own gate, evalsets or criteria."""
