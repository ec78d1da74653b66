"""Findings of a run: how its cases ended, the verdict, the report."""

from typing import Literal

from pydantic import computed_field

from ci_eval.records.bounds import Count, Interval, Total, Value
from ci_eval.records.cases import SCHEMA_VERSION, Stored
from ci_eval.records.comparisons import Comparison, GroupKey
from ci_eval.records.model_usage import ModelUsage
from ci_eval.records.model_versions import ModelChange, ServedModel, changed_models
from ci_eval.records.results import JudgeUsage, RunMeta, Tier, TrialResult


class Counts(Stored):
    """Counts of cases by status."""

    passed: Count = 0
    failed: Count = 0
    errors: Count = 0
    skipped: Count = 0


class CaseOutcomes(Counts):
    """What one criterion found in cases of one evalset with one agent."""

    incomplete: Count = 0
    """Cases with missing trials, including cases that fail whatever these would have shown."""
    value: Value | None = None
    """The mean over the measured cases."""
    span: tuple[Value, Value] | None = None
    """The lowest and highest possible mean over all cases; `None` if unbounded or inapplicable."""


class GroupSummary(CaseOutcomes):
    """One criterion on one evalset with one agent, over all its cases."""

    group: GroupKey
    without_exempt: CaseOutcomes | None = None
    """The same over the cases that count for the gate; `None` if no case is exempt."""
    threshold: Value | None = None
    informational: bool = False
    tier: Tier = "block"
    interval: Interval | None = None
    """The lowest and the highest possible value."""
    better: Literal["higher", "lower"] = "higher"
    judging: JudgeUsage | None = None
    """Usage of judge models, if it calls any."""


class Named(Stored):
    """The number of cases of one kind, and the first of them."""

    count: Count = 0
    first: tuple[str, ...] = ()
    """As `evalset/case`; a bounded number."""

    def __bool__(self) -> bool:
        return self.count > 0


class Totals(Stored):
    """Counts of cases by status, and of trials."""

    trials: Count = 0
    cases: Count = 0
    passed: Count = 0
    failed: Count = 0
    errors: Count = 0
    skipped: Count = 0
    incomplete: Count = 0
    """Cases with missing trials, including cases that fail whatever these would have shown."""
    accepted: Count = 0
    """Skipped cases that were measured, with every drop accepted."""
    unjudged: Named = Named()
    """Cases that no blocking criterion measured, without permission by `gate.allow_unjudged`."""
    allowed: Named = Named()
    """Cases that no blocking criterion measured, as permitted by `gate.allow_unjudged`."""
    unmeasured: tuple[str, ...] = ()
    """Blocking criteria that measured no case."""
    retried: Count = 0
    """Trials that were started more than once."""
    duration_s: Total = 0.0
    """The sum over all trials."""
    models: tuple[ServedModel, ...] = ()
    """The model versions that answered agents, judges and simulated users; at most 50."""

    @property
    def judged(self) -> int:
        """Number of cases that passed, failed or have an error."""
        return self.passed + self.failed + self.errors

    @property
    def pass_rate(self) -> float | None:
        """The share of the measured cases that passed; `None` if none was measured."""
        return self.passed / measured if (measured := self.passed + self.failed) else None


ReasonSeverity = Literal["blocks", "incomplete", "warns", "info"]
"""The effect of a reason on the verdict."""
ReasonKind = Literal[
    "floor",
    "failed_cases",
    "advisory",
    "regressed",
    "inconclusive",
    "vanished",
    "silent",
    "hidden",
    "not_comparable",
    "expired_exemption",
    "exempt",
    "exempt_worse",
    "no_baseline",
    "fails_in_base",
    "unconfirmed",
    "missing_shards",
    "unmeasured_cases",
    "unjudged_cases",
    "unmeasured_criteria",
    "weakened_gate",
    "other",
]
"""The subject of a reason; `other` in reports of older versions."""


class Reason(Stored):
    """One sentence of the verdict."""

    kind: ReasonKind = "other"
    severity: ReasonSeverity
    message: str
    group: GroupKey | None = None
    """The criterion concerned, if any."""


class Verdict(Stored):
    """The decision and its reasons."""

    outcome: Literal["passed", "failed", "incomplete"]
    mode: Literal["threshold", "regression", "both"]
    by_threshold: bool = False
    """Whether a case below a threshold blocks by itself: in `regression`, only by `on_missing`."""
    reasons: tuple[Reason, ...] = ()
    undecided: str = ""
    """What would decide it if it passed although something may have regressed; otherwise empty."""
    unconfirmed: str = ""
    """Why the merge base could not be run, if it was to be."""


class NotedGroup(Stored):
    """One criterion on one evalset with one agent."""

    group: GroupKey
    cases: Counts = Counts()
    value: Value | None = None
    """The mean over the measured cases."""
    cost_usd: Total | None = None
    """Cost of its judge models, if it called any and the store has the cost."""


class Noted(Stored):
    """Summary of a stored run."""

    run_id: str
    created: str
    """Start time, UTC, ISO 8601."""
    commit: str | None = None
    branch: str | None = None
    cases: Counts = Counts()
    """A case passes when all criteria that judge it pass."""
    groups: tuple[NotedGroup, ...] = ()
    models: tuple[ServedModel, ...] = ()
    """The model versions that answered."""


class Metered(Stored):
    """Usage of the agents' models in a run, and in the nearest baseline run that metered it."""

    usage: ModelUsage
    trials: Count
    """Trials whose calls were metered."""
    baseline: ModelUsage | None = None
    baseline_trials: Count = 0


class Report(Stored):
    """Everything that a template sees, except the individual results."""

    schema_version: int = SCHEMA_VERSION
    meta: RunMeta
    totals: Totals
    groups: tuple[GroupSummary, ...] = ()
    comparison: Comparison | None = None
    verdict: Verdict
    judging: JudgeUsage | None = None
    """Total usage of judge models; `None` if none was called."""
    simulation: JudgeUsage | None = None
    """Total usage of models for simulated users; `None` if none was called."""
    metered: Metered | None = None
    """Total usage of the agents' models; `None` if no call passed the model gateway."""
    history: tuple[Noted, ...] = ()
    """Summaries of the stored runs, newest first, if the store has any."""
    worst: tuple[TrialResult, ...] = ()
    """The results most relevant to a reader, with their evidence; a bounded number."""

    @computed_field  # type: ignore[prop-decorator]  # mypy does not know this combination
    @property
    def model_changes(self) -> tuple[ModelChange, ...]:
        """Models whose version differs from that in the nearest baseline run."""
        nearest = self.comparison.baseline_runs[:1] if self.comparison else ()
        before = (each.models for each in self.history if each.run_id in nearest)
        return changed_models(self.totals.models, next(before, ()))
