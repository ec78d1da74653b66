"""Phrases about a comparison, shared by all reports; not yet escaped or shortened."""

from collections import Counter
from collections.abc import Sequence

from ci_eval.records.bounds import Interval
from ci_eval.records.comparisons import (
    CaseChange,
    Comparison,
    Delta,
    Excused,
    Flaky,
    GroupKey,
    Together,
)
from ci_eval.records.errors import visible
from ci_eval.records.findings import GroupSummary, Metered, Report, Totals
from ci_eval.records.model_versions import ModelChange
from ci_eval.records.results import RunMeta, Tier
from ci_eval.text.templates import counted, difference, dollars

_LEAST_P = 1e-6
"""Smaller p-values are shown as "less than" this value."""
SHALLOW = (
    "the clone is shallow, so a nearer run may exist: set 'fetch-depth: 0' for actions/checkout"
)
_LEAST_PAIRS = 8
MAX_NAMED = 5
"""Maximum number of cases or criteria that a sentence names."""


def named(key: GroupKey) -> str:
    """Return the name of a group, for a sentence."""
    return f"{key.criterion} on {key.evalset} with {key.agent}"


def listed(names: Sequence[str], most: int = MAX_NAMED) -> str:
    """Return the first of `names` and the number of the others."""
    shown = ", ".join(map(visible, names[:most]))
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def named_shards(names: Sequence[str]) -> str:
    """Return shards as a phrase, such as `shards 1/3, 2/3`."""
    return f"{'shard' if len(names) == 1 else 'shards'} {listed(names)}"


def decided(report: Report) -> str:
    """Return the outcome as a predicate, such as `passed`, with a note if only a part was run."""
    totals, found = report.totals, str(report.verdict.outcome)
    if report.verdict.undecided:
        found = "is not decided"
    elif found == "incomplete":
        # Some criteria or repeats of a case with an error may have been measured.
        scored = any(each.value is not None and not each.informational for each in report.groups)
        judged = totals.passed + totals.failed or scored
        found = "has no verdict" if judged else "was not evaluated"
    return found + part(report.meta)


def left_out(totals: Totals, meta: RunMeta) -> str:
    """Return how many cases count neither as passed nor as failed, and why; empty if none."""
    unjudged = min(totals.unjudged.count + totals.allowed.count, totals.skipped)
    kinds = {"quarantine": "quarantined", "accept": "accepted"}
    why = " or ".join(word for key, word in kinds.items() if meta.gate.get(key)) or "skipped"
    counts = Counter({why: totals.skipped - unjudged})
    counts["skipped"] += unjudged
    return " · ".join(f"{count} {word}" for word, count in counts.items() if count)


def part(meta: RunMeta) -> str:
    """Return a clause saying that only a part of the suite was run; empty if all of it was."""
    return ", for the part of the suite that was run" if meta.filtered else ""


def tier(found: Tier) -> str:
    """Return the effect of a criterion that does not block; empty for one that does."""
    return {"block": "", "warn": "only warns", "inform": "only informs"}[found]


def tested(found: Delta | Together) -> str:
    """Return the p-value and its significance level; empty if the test did not decide.

    >>> tested(Together(criteria=4, effect=-0.1, p_value=0.0124, level=0.005, outcome="unchanged"))
    'p = 0.012 (needs ≤ 0.005)'
    """
    if found.p_value is None or (isinstance(found, Delta) and _by_cases(found)):
        return ""
    p_value = _shown(found.p_value, 3)
    if not found.level:  # stored runs alone decide nothing if the merge base can be run
        return f"p {p_value}"
    digits = 2
    level = _significant(found.level, digits)
    # Rounding must not hide which of the two is greater.
    while digits < 6 and _looks_below(p_value, level) != (found.p_value <= found.level):
        digits += 1
        p_value, level = _shown(found.p_value, 1 + digits), _significant(found.level, digits)
    return f"p {p_value} (needs ≤ {level})"


def _by_cases(delta: Delta) -> bool:
    """Return True if single cases decided, not the test over all cases."""
    level = delta.level
    missed = delta.p_value is not None and level is not None and delta.p_value > level
    return delta.steady or (delta.outcome == "regressed" and missed)


def _shown(value: float, decimals: int) -> str:
    if value < _LEAST_P:
        return f"< {_LEAST_P:.6f}"
    return f"= {value:.{decimals}f}" if value >= 0.001 else f"= {_significant(value, decimals - 1)}"


def _significant(value: float, digits: int) -> str:
    return f"{float(f'{value:.{digits}g}'):.12f}".rstrip("0").rstrip(".") or "0"


def _looks_below(p_value: str, level: str) -> bool:
    return float(p_value.lstrip("=< ")) <= float(level)


def interval(delta: Delta, bounds: Interval | None) -> tuple[float, float] | None:
    """Return the 95 % confidence interval of an effect as readers can use it.

    It is cut to the effects that are possible if a score is within `bounds`, and left out if fewer
    than 8 pairs were compared, because it is then meaningless.
    """
    if delta.interval is None or delta.cases < _LEAST_PAIRS:
        return None
    low, high = delta.interval
    if bounds and delta.baseline is not None:
        low, high = max(low, bounds[0] - delta.baseline), min(high, bounds[1] - delta.baseline)
    return (low, high) if low < high else None


def moved(delta: Delta, bounds: Interval | None) -> str:
    """Return the effect with its interval; empty if there is none."""
    if delta.effect is None or delta.value is None:
        return ""
    shown = interval(delta, bounds)
    if shown is None:
        return difference(delta.effect)
    low, high = (difference(end).replace("±", "") for end in shown)
    return f"{difference(delta.effect)} (95% CI {low} to {high})"


def stored_mean(delta: Delta | None) -> float | None:
    """Return the mean of the baseline over the cases that a score has, also those exempt now."""
    if delta is None or delta.baseline_with_exempt is None:
        return delta.baseline if delta else None
    return delta.baseline_with_exempt


def outcome(delta: Delta, summary: GroupSummary | None) -> str:
    """Return the outcome of a comparison, or that values are missing which could change it."""
    if summary and summary.errors:
        if summary.value is None:
            return "not measured"
        if delta.outcome in ("improved", "unchanged"):
            return "incomplete"
    return delta.outcome.replace("_", " ")


def effect(delta: Delta, summary: GroupSummary | None) -> str:
    """Return the change; a bound if values are missing, which count as the best possible."""
    if not (summary and summary.errors):
        return difference(delta.effect)
    if summary.value is None or delta.effect is None:
        return "-"
    sign = "≤" if summary.better == "higher" else "≥"
    return f"{sign} {difference(delta.effect).replace('±', '')}"


def together(found: Together) -> str:
    """Return the change of all blocking criteria combined."""
    share = f"{abs(found.effect):.3f} of their ranges"
    phrases = {
        "regressed": f"worse by {share}",
        "inconclusive": f"worse by {share} (may be noise)",
        "improved": f"better by {share}",
    }
    change = phrases.get(found.outcome, "within noise")
    return f"all blocking criteria combined: {change}"


def trials(change: CaseChange) -> str:
    """Return the number of failing trials of a case, now and in the baseline; empty if none.

    >>> group = {"agent": "a", "evalset": "e", "criterion": "c"}
    >>> change = {"group": group, "case": "x", "change": "newly_failing", "value": 0.0}
    >>> change |= {"baseline": 1.0, "failed": 3, "trials": 3, "trials_before": 15}
    >>> trials(CaseChange(**change, suspected=True))
    '3 of 3 trials fail, 0 of 15 in the baseline'
    """
    if not change.failed:
        return ""
    confirmed = change.confirmed or (0, 0)
    if change.base:
        failed, count = change.failed + confirmed[0], change.trials + confirmed[1]
        phrase = f"fails {failed:,} of {count:,} with this change, "
        phrase += "{:,} of {:,} with the merge base".format(*change.base)
        return f"{phrase}, too" if change.in_base else phrase
    phrase = _fail(change.failed, change.trials, "trial")
    if change.trials_before and (change.certain or change.suspected):
        phrase += f", {change.failed_before:,} of {change.trials_before:,} in the baseline"
    if change.confirmed:
        phrase += f"; {_fail(*change.confirmed, 'confirming trial')}"
    return phrase


def _fail(failed: int, count: int, noun: str) -> str:
    return f"{failed:,} of {counted(count, noun)} {'fails' if count == 1 else 'fail'}"


def rate(case: Flaky) -> str:
    """Return the failure rate of a flaky case."""
    return f"fails {case.failed:,} of {case.trials:,}"


def excuse(found: Excused) -> str:
    """Return the expiry date, owner and reason of an accepted drop or a quarantine."""
    owner = f" (owner: {found.owner})" if found.owner else ""
    reason = f": {found.reason}" if found.reason else ""
    state = f"{found.kind} until"
    if found.expired:
        state = f"{'quarantine' if found.kind == 'quarantined' else 'acceptance'} expired on"
    return f"{state} {found.until}{owner}{reason}"


def distance(report: Report) -> str:
    """Return the place of the baseline in the commit history; empty if unknown."""
    comparison, meta = report.comparison, report.meta
    if comparison is None or meta.commit is None:
        return ""
    branch, steps = comparison.baseline_branch, comparison.baseline_distance
    if comparison.baseline_commit == meta.commit:
        # Possible if the store is a single file, which ignores commits.
        uncommitted = ", which has uncommitted changes" if meta.modified else ""
        return f"same commit as this run{uncommitted}"
    if steps is None:
        # If the clone is shallow, the reports say so, and what to do.
        found = "perhaps not" if comparison.shallow else "not"
        return f"{found} an ancestor of the merge base with {branch}" if branch else ""
    if branch and meta.branch != branch:
        base = f"the merge base with {branch}"
        return f"{counted(steps, 'commit')} before {base}" if steps else base
    if not steps:
        return ""
    return f"{counted(steps, 'newer commit')} {'has' if steps == 1 else 'have'} no run"


def shallow(comparison: Comparison) -> bool:
    """Return True if the shallow clone may hide a nearer baseline."""
    return comparison.shallow and comparison.baseline_distance != 0


def baseline(report: Report) -> str:
    """Return a description of the baseline; empty if there is none."""
    comparison = report.comparison
    if comparison is None:
        return ""
    parts = [f"run {next(iter(comparison.baseline_runs), 'unknown')}"]
    if comparison.baseline_commit:
        parts[0] += f" of commit {comparison.baseline_commit[:10]}"
    if comparison.baseline_created:
        parts[0] += f", {comparison.baseline_created[:10]}"
    parts.append(distance(report))
    if len(comparison.baseline_runs) > 1:
        parts.append(f"pooled with {counted(len(comparison.baseline_runs) - 1, 'other run')}")
    return ", ".join(part for part in parts if part)


def model_change(change: ModelChange) -> str:
    """Return the versions of a model in the baseline and in this run, and the model's users.

    >>> model_change(ModelChange(requested="m", before=("m-1",), now=("m-2",), used_by=("judges",)))
    'the model behind m changed: m-1 before, m-2 now (judges)'
    """
    users = listed(change.used_by)
    named, suffix = (change.requested, f" ({users})") if change.requested else (users, "")
    return (
        f"the model behind {named} changed: "
        f"{listed(change.before)} before, {listed(change.now)} now{suffix}"
    )


def drawn(comparison: Comparison) -> str:
    """Return the number of trials that were added because of a doubt; empty if there are none."""
    drawn_of = (
        (comparison.rounds, "rerun", "reruns"),
        (comparison.confirming, "confirming trial", "confirming trials"),
        (comparison.base_trials, "trial of the merge base", "trials of the merge base"),
    )
    parts = [counted(*each) for each in drawn_of if each[0]]
    return f"Compared after {' and '.join(parts)}" if parts else ""


def cut_off(reasons: Sequence[str]) -> str:
    """Return the number of incomplete responses, and the reasons; empty if there are none."""
    if not reasons:
        return ""
    were = "response was" if len(reasons) == 1 else "responses were"
    return f"{len(reasons)} {were} cut off: {', '.join(dict.fromkeys(reasons))}"


def model_calls(found: Metered) -> str:
    """Return the usage of the agents' models, now and in the baseline.

    Runs with different numbers of trials are compared per trial.
    """
    usage, base = found.usage, found.baseline
    replayed = f" ({usage.replayed:,} replayed)" if usage.replayed else ""
    line = f"{counted(usage.calls, 'model call')}{replayed}, {_many(usage.tokens)} tokens"
    if usage.unpriced < usage.calls or not usage.calls:
        line += f", {dollars(usage.cost_usd)}"
    if usage.uncounted:
        line += f", {counted(usage.uncounted, 'call')} without stated tokens"
    if unpriced := max(usage.unpriced - usage.uncounted, 0):
        line += f", {counted(unpriced, 'call')} without a known price (set models.prices)"
    if usage.errors:
        line += f", {counted(usage.errors, 'answer')} with an error"
    if usage.retries:
        line += f", {counted(usage.retries, 'retry', 'retries')}"
    if usage.faults:
        line += f", {counted(usage.faults, 'injected fault')}"
    if base is None:
        return line
    both = ((usage, found.trials), (base, found.baseline_trials))
    is_same = found.trials == found.baseline_trials
    now, before = (
        dollars(each.cost_usd / (1 if is_same else trials))
        if not (usage.unpriced or base.unpriced)
        else f"{_many(round(each.tokens / (1 if is_same else trials)))} tokens"
        for each, trials in both
    )
    if is_same:
        return f"{line}; baseline: {before}"
    return f"{line}; {now} a trial, baseline: {before} a trial"


def _many(count: int) -> str:
    """Return a large number in thousands or millions.

    >>> _many(950), _many(120_400), _many(999_600), _many(1_250_000)
    ('950', '120k', '1M', '1.25M')
    """
    if count < 10_000:
        return f"{count:,}"
    return f"{count / 1e3:.0f}k" if count < 999_500 else f"{count / 1e6:.3g}M"
