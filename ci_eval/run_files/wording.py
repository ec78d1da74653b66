"""What a comparison says, in the words that every report uses; still of any text and length."""

from collections.abc import Sequence

from ci_eval.records.findings import (
    CaseChange,
    Comparison,
    Delta,
    Excused,
    Flaky,
    GroupKey,
    Report,
    Together,
)
from ci_eval.records.results import Tier
from ci_eval.text.templates import counted, difference

_LEAST_P = 1e-6
"""Nothing is said of how much lower a p-value is."""
_NO_CHANCE = 0.001
"""A case whose p-value is greater is certain for another reason: its history never varied."""
SHALLOW = (
    "the clone is shallow, so a nearer one may not have been found: "
    "'fetch-depth: 0' of actions/checkout lets it see all commits"
)
MAX_NAMED = 5
"""How many cases or criteria a sentence names."""
_TIERS: dict[Tier, str] = {"block": "", "warn": "only warns", "inform": "only informs"}


def named(key: GroupKey) -> str:
    """Return the name of a group in a sentence."""
    return f"{key.criterion} on {key.evalset} with {key.agent}"


def listed(names: Sequence[str]) -> str:
    """Return the first of `names`, and how many more there are."""
    shown = ", ".join(names[:MAX_NAMED])
    return f"{shown} and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else shown


def decided(report: Report) -> str:
    """Return how a suite ended, as what is said of it."""
    totals, outcome = report.totals, report.verdict.outcome
    if outcome != "incomplete":
        return outcome
    return "has no verdict" if totals.passed + totals.failed else "was not evaluated"


def tier(found: Tier) -> str:
    """Return what a criterion does that does not block; nothing of one that does."""
    return _TIERS[found]


def tested(found: Delta | Together) -> str:
    """Return the p-value with the level that it was held against; nothing where none decided.

    >>> tested(Together(criteria=4, effect=-0.1, p_value=0.0124, level=0.005, outcome="unchanged"))
    'p = 0.012, level 0.005'
    """
    if found.p_value is None or (isinstance(found, Delta) and _by_cases(found)):
        return ""
    p_value = _shown(found.p_value, 3)
    if found.level is None:
        return f"p {p_value}"
    digits = 2
    level = _significant(found.level, digits)
    # Which of them is greater must be seen.
    while digits < 6 and _looks_below(p_value, level) != (found.p_value <= found.level):
        digits += 1
        p_value, level = _shown(found.p_value, 1 + digits), _significant(found.level, digits)
    return f"p {p_value}, level {level}"


def _by_cases(delta: Delta) -> bool:
    """Say whether single cases decided, and not the test of all of them."""
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


def moved(delta: Delta) -> str:
    """Return the effect with its interval; nothing where there is none."""
    if delta.effect is None or delta.value is None:
        return ""
    if delta.interval is None:
        return difference(delta.effect)
    low, high = map(difference, delta.interval)
    return f"{difference(delta.effect)} (95% CI {low} to {high})"


def together(found: Together) -> str:
    """Return how all criteria that block changed, taken together."""
    share = f"{abs(found.effect):.1%}"
    said = {
        "regressed": f"worse by {share} of their ranges",
        "inconclusive": f"worse by {share} of their ranges, which may be noise",
        "improved": f"better by {share} of their ranges",
    }
    changed = said.get(found.outcome, "unchanged")
    return f"all {found.criteria} criteria that block, together: {changed}"


def trials(change: CaseChange) -> str:
    """Return how many of the trials of a case fail, now and before; nothing where none does.

    >>> group = {"agent": "a", "evalset": "e", "criterion": "c"}
    >>> change = {"group": group, "case": "x", "change": "newly_failing", "value": 0.0}
    >>> change |= {"baseline": 1.0, "failed": 3, "trials": 3, "trials_before": 15}
    >>> trials(CaseChange(**change, suspected=True))
    '3 of 3 trials fail, 0 of 15 did before'
    """
    if not change.failed:
        return ""
    said = _fail(change.failed, change.trials, "trial")
    # Only what never failed before is certain or suspected.
    if change.trials_before and (change.certain or change.suspected):
        said += f", 0 of {change.trials_before:,} did before"
    if change.confirmed:
        said += f"; of those drawn to confirm it {_fail(*change.confirmed)}"
    if change.certain and change.p_value is not None and change.p_value <= _NO_CHANCE:
        said += f", p {_shown(change.p_value, 3)}"
    return said


def _fail(failed: int, count: int, noun: str = "") -> str:
    verb = "fails" if count == 1 else "fail"
    return f"{failed:,} of {counted(count, noun) if noun else f'{count:,}'} {verb}"


def rate(case: Flaky) -> str:
    """Return how often a flaky case fails."""
    return f"fails {case.failed:,} of {case.trials:,}"


def excuse(found: Excused) -> str:
    """Return until when something is excused, by whom and why."""
    by = f", {found.owner}" if found.owner else ""
    why = f": {found.reason}" if found.reason else ""
    state = "in quarantine" if found.kind == "quarantined" else "accepted"
    if found.expired:
        return f"was {state} until {found.until}, which is over{by}{why}"
    return f"{state} until {found.until}{by}{why}"


def distance(report: Report) -> str:
    """Return where the baseline lies in the history of the commits; nothing where nobody knows."""
    comparison, meta = report.comparison, report.meta
    if comparison is None or meta.commit is None:
        return ""
    branch, steps = comparison.baseline_branch, comparison.baseline_distance
    if comparison.baseline_commit == meta.commit:
        # As a store that holds one file does: it knows of no commits.
        return "the commit of this run"
    if steps is None:
        return f"not an ancestor: the newest on {branch}" if branch else ""
    if branch and meta.branch != branch:
        base = f"the merge base with {branch}"
        return f"{counted(steps, 'commit')} before {base}" if steps else base
    if not steps:
        return ""
    return f"{counted(steps, 'commit')} after it {'has' if steps == 1 else 'have'} none"


def shallow(comparison: Comparison) -> bool:
    """Say whether a nearer baseline may be there that the clone does not know of."""
    return comparison.shallow and comparison.baseline_distance != 0


def baseline(report: Report) -> str:
    """Return which run is the baseline, and what is to be known of it; nothing where none is."""
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


def drawn(comparison: Comparison) -> str:
    """Return what was drawn because something was in doubt; nothing where nothing was."""
    parts = []
    if comparison.rounds:
        parts.append(counted(comparison.rounds, "more round"))
    if comparison.confirming:
        parts.append(f"{counted(comparison.confirming, 'trial')} to confirm single cases")
    return f"Decided after {' and '.join(parts)}" if parts else ""


def cut_off(reasons: Sequence[str]) -> str:
    """Return how many responses ended before they were whole, and why; empty for none."""
    if not reasons:
        return ""
    were = "response was" if len(reasons) == 1 else "responses were"
    return f"{len(reasons)} {were} cut off: {', '.join(dict.fromkeys(reasons))}"
