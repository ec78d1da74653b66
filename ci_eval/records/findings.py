"""What a run amounts to: how it differs from its baseline, and what was decided."""

from typing import Literal

from ci_eval.records.bounds import Count, Derived, Interval, Total, Value
from ci_eval.records.model import SCHEMA_VERSION, Record, Stored
from ci_eval.records.results import JudgeUsage, RunMeta, Tier, TrialResult


class GroupKey(Record):
    """The unit that is compared and judged: one criterion on one evalset with one agent."""

    agent: str
    evalset: str
    criterion: str


Outcome = Literal["improved", "unchanged", "regressed", "inconclusive", "not_compared"]


class Delta(Stored):
    """How one criterion changed against the baseline, over the cases that both runs have."""

    group: GroupKey
    cases: Count
    """Cases that were measured in both, and that decide."""
    value: Value | None
    """The mean over all measured cases of this run."""
    baseline: Value | None
    """The mean that the baseline has for the cases in both."""
    effect: Derived | None = None
    """The mean of the paired differences; negative is a drop where higher is better."""
    interval: tuple[Derived, Derived] | None = None
    """The 95 % confidence interval of the effect."""
    p_value: Derived | None = None
    """Of the one-sided test of "nothing got worse", not corrected; `None` where none was made."""
    level: Derived | None = None
    """What the p-value must not exceed, corrected for all tests and looks."""
    outcome: Outcome
    reason: str = ""
    steady: bool = False
    """Whether the baseline has cases that several runs observed, and none of them ever differed."""
    tier: Tier = "block"
    """What it does where it regressed."""


class Together(Stored):
    """How all criteria that block changed, taken together: the mean of their changes."""

    criteria: Count
    effect: Derived
    """In shares of each criterion's interval; negative is worse."""
    p_value: Derived
    level: Derived
    outcome: Outcome


class CaseChange(Stored):
    """One case that changed under one criterion."""

    group: GroupKey
    case: str
    change: Literal["newly_failing", "fixed", "dropped", "newly_erring"]
    value: Value | None
    baseline: Value | None
    certain: bool = False
    """Whether this is not noise, by itself."""
    suspected: bool = False
    """Whether it passed every time before and fails every time now, or never varied and is worse
    every time, which may be noise still."""
    failed: Count = 0
    """How many of the trials now failed."""
    trials: Count = 0
    """How many there are now."""
    trials_before: Count = 0
    """How many the baseline has."""
    confirmed: tuple[Count, Count] | None = None
    """Of the trials that were drawn to confirm it, how many failed, and how many there are."""
    p_value: Derived | None = None
    """Of "it is as solid as before", from those trials where there are any."""
    excused: Literal["", "accepted", "quarantined"] = ""
    """Why it decides nothing."""


class Flaky(Stored):
    """One case that passes and fails in the baseline."""

    group: GroupKey
    case: str
    failed: Count
    """How many of its trials failed."""
    trials: Count


class Excused(Stored):
    """An accepted drop, or a case in quarantine."""

    kind: Literal["accepted", "quarantined"]
    named: str
    """What it speaks of, as the configuration names it."""
    reason: str = ""
    owner: str = ""
    until: str
    """The last day on which it holds."""
    expired: bool = False
    cases: tuple[str, ...] = ()
    """The cases of this run that it covers, as `evalset/case`."""


class Vanished(Stored):
    """Something that the baseline has and this run has not."""

    kind: Literal["case", "criterion", "agent", "evalset"]
    name: str
    where: str = ""


class Comparison(Stored):
    """All that changed against the baseline."""

    baseline_runs: tuple[str, ...] = ()
    """Ids of the runs that were pooled, nearest first."""
    baseline_created: str = ""
    baseline_commit: str | None = None
    baseline_distance: Count | None = None
    """How many commits it is before the one to compare with; `None` where it is no ancestor."""
    baseline_branch: str | None = None
    """The branch that it was looked for on."""
    comparable: bool = True
    """Whether it has anything that means the same now, by a criterion that may block."""
    shallow: bool = False
    """Whether the clone did not hold the commits to look at."""
    rounds: Count = 0
    """How many rounds of repeats were drawn because something was in doubt."""
    confirming: Count = 0
    """How many trials were drawn to confirm that single cases broke."""
    together: Together | None = None
    """All criteria that block, taken together; `None` where there are not several."""
    deltas: tuple[Delta, ...] = ()
    changes: tuple[CaseChange, ...] = ()
    added: tuple[str, ...] = ()
    """Cases that the baseline does not have, as `evalset/case`."""
    vanished: tuple[Vanished, ...] = ()
    not_comparable: tuple[str, ...] = ()
    """Cases and criteria whose meaning changed, with what changed."""
    flaky: tuple[Flaky, ...] = ()
    """Cases that pass and fail in the baseline, those that do most first, a bounded number."""
    flaky_total: Count = 0
    """How many there are of them."""
    excused: tuple[Excused, ...] = ()
    """Accepted drops and cases in quarantine."""
    hidden: tuple[str, ...] = ()
    """What would block, had the errors that `gate.max_errors` allows been values that just pass."""
    loosened: tuple[str, ...] = ()
    """What this change makes easier to pass: of its gate, its evalsets, its criteria."""


class GroupSummary(Stored):
    """One criterion on one evalset with one agent, over all its cases."""

    group: GroupKey
    passed: Count = 0
    failed: Count = 0
    errors: Count = 0
    skipped: Count = 0
    incomplete: Count = 0
    """Cases that lack an observation, those among them that fail whatever it had shown."""
    value: Value | None = None
    """The mean over the measured cases."""
    span: tuple[Value, Value] | None = None
    """The least and the greatest mean that all cases may have had, whatever is missing; `None`
    where nothing bounds it, or nothing applies."""
    threshold: Value | None = None
    informational: bool = False
    tier: Tier = "block"
    interval: Interval | None = None
    """The least and the greatest value there is."""
    better: Literal["higher", "lower"] = "higher"
    judging: JudgeUsage | None = None
    """What asking models took, where it asks any."""


class Named(Stored):
    """How many cases there are of a kind, and the first of them."""

    count: Count = 0
    first: tuple[str, ...] = ()
    """As `evalset/case`, a bounded number."""

    def __bool__(self) -> bool:
        return self.count > 0


class Totals(Stored):
    """How many cases ended how, and how many trials were tried."""

    trials: Count = 0
    cases: Count = 0
    passed: Count = 0
    failed: Count = 0
    errors: Count = 0
    skipped: Count = 0
    incomplete: Count = 0
    """Cases that lack an observation, those among them that fail whatever it had shown."""
    accepted: Count = 0
    """Cases among the skipped that were measured, and of which every drop is accepted."""
    unjudged: Named = Named()
    """Cases that no criterion that blocks measured, though nothing allows it."""
    allowed: Named = Named()
    """Cases that no criterion that blocks measured, which `gate.allow_unjudged` allows."""
    unmeasured: tuple[str, ...] = ()
    """Criteria that block, and found nothing to measure in any case."""
    retried: Count = 0
    """Trials that were started more than once."""
    duration_s: Total = 0.0
    """The sum over all trials."""

    @property
    def judged(self) -> int:
        """How many cases passed, failed, or would have, had they been measured."""
        return self.passed + self.failed + self.errors

    @property
    def pass_rate(self) -> float | None:
        """The share of the measured cases that passed; `None` where none was measured."""
        measured = self.passed + self.failed
        return self.passed / measured if measured else None


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


class Counts(Stored):
    """How many cases ended how."""

    passed: Count = 0
    failed: Count = 0
    errors: Count = 0
    skipped: Count = 0


class NotedGroup(Stored):
    """One criterion on one evalset with one agent."""

    group: GroupKey
    cases: Counts = Counts()
    value: Value | None = None
    """The mean over the cases that were measured."""
    cost_usd: Total | None = None
    """What asking models for it took, where it asked any and the store knows."""


class Noted(Stored):
    """One stored run, in short."""

    run_id: str
    created: str
    """When it began, in UTC, ISO 8601."""
    commit: str | None = None
    branch: str | None = None
    cases: Counts = Counts()
    """A case passes when all criteria that judge it pass."""
    groups: tuple[NotedGroup, ...] = ()


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
    history: tuple[Noted, ...] = ()
    """The stored runs in short, newest first, as far as the store tells."""
    worst: tuple[TrialResult, ...] = ()
    """The results that matter most to a reader, a bounded number, with their evidence."""
