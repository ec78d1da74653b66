"""What a run amounts to: how it differs from its baseline, and what was decided."""

from typing import Literal

from ci_eval.records import SCHEMA_VERSION, Record, Stored
from ci_eval.results import JudgeUsage, RunMeta, TrialResult


class GroupKey(Record):
    """The unit that is compared and judged: one criterion on one evalset with one agent."""

    agent: str
    evalset: str
    criterion: str


Outcome = Literal["improved", "unchanged", "regressed", "inconclusive", "not_compared"]


class Delta(Stored):
    """How one criterion changed against the baseline, over the cases that both runs have."""

    group: GroupKey
    cases: int
    """Cases that were measured in both."""
    value: float | None
    """The mean over all measured cases of this run."""
    baseline: float | None
    """The mean that the baseline has for the cases in both."""
    effect: float | None = None
    """The mean of the paired differences; negative is a drop where higher is better."""
    interval: tuple[float, float] | None = None
    """The 95 % confidence interval of the effect."""
    p_value: float | None = None
    """Of the one-sided test of "no drop", not corrected."""
    outcome: Outcome
    reason: str = ""
    steady: bool = False
    """Whether the baseline has cases with several observations, and none of them differed."""


class CaseChange(Stored):
    """One case that changed status under one criterion."""

    group: GroupKey
    case: str
    change: Literal["newly_failing", "fixed", "dropped", "newly_erring"]
    value: float | None
    baseline: float | None
    certain: bool = False
    """Whether history shows that this is not noise."""


class Vanished(Stored):
    """Something that the baseline has and this run has not."""

    kind: Literal["case", "criterion", "agent", "evalset"]
    name: str
    where: str = ""


class Comparison(Stored):
    """All that changed against the baseline."""

    baseline_runs: tuple[str, ...] = ()
    """Ids of the runs that were pooled, newest first."""
    baseline_created: str = ""
    baseline_commit: str | None = None
    deltas: tuple[Delta, ...] = ()
    changes: tuple[CaseChange, ...] = ()
    added: tuple[str, ...] = ()
    """Cases that the baseline does not have, as `evalset/case`."""
    vanished: tuple[Vanished, ...] = ()
    not_comparable: tuple[str, ...] = ()
    """Cases and criteria whose meaning changed, with what changed."""


class GroupSummary(Stored):
    """One criterion on one evalset with one agent, over all its cases."""

    group: GroupKey
    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0
    value: float | None = None
    """The mean over the measured cases."""
    threshold: float | None = None
    informational: bool = False
    better: Literal["higher", "lower"] = "higher"
    judging: JudgeUsage | None = None
    """What asking models took, where it asks any."""


class Totals(Stored):
    """How many cases ended how, and how many trials were tried."""

    trials: int = 0
    cases: int = 0
    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0
    retried: int = 0
    """Trials that were started more than once."""
    duration_s: float = 0.0
    """The sum over all trials."""

    @property
    def pass_rate(self) -> float | None:
        """The share of the judged cases that passed; `None` where none was judged."""
        judged = self.passed + self.failed
        return self.passed / judged if judged else None


class Reason(Stored):
    """One sentence of the verdict."""

    severity: Literal["blocks", "incomplete", "warns", "info"]
    message: str
    group: GroupKey | None = None
    """The criterion it speaks of, where it speaks of one."""


class Verdict(Stored):
    """The decision and its reasons."""

    outcome: Literal["passed", "failed", "incomplete"]
    mode: Literal["threshold", "regression", "both"]
    reasons: tuple[Reason, ...] = ()


class Report(Stored):
    """Everything a template sees, but for the single results."""

    schema_version: int = SCHEMA_VERSION
    meta: RunMeta
    totals: Totals
    groups: tuple[GroupSummary, ...] = ()
    comparison: Comparison | None = None
    verdict: Verdict
    judging: JudgeUsage | None = None
    """What asking models for verdicts took in all; `None` where none was asked."""
    simulation: JudgeUsage | None = None
    """What asking models for what users say took in all; `None` where none was asked."""
    worst: tuple[TrialResult, ...] = ()
    """The results that matter most to a reader, a bounded number, with their evidence."""
