"""Undecided verdicts: something fell, and the gate could not tell whether it is noise.

Such a run does not count as passed.  It does not block, but reports say that it is undecided and
what would decide it.
"""

from collections.abc import Sequence

from ci_eval.config.config_schema import GateOptions
from ci_eval.gate.floors import ALL_FAILED
from ci_eval.records.comparisons import Comparison, Delta
from ci_eval.records.findings import Reason

_TWO_ROUNDS = 3
"""A budget that allows a round of the merge base, and part of another round of both arms.  If no
trial was drawn despite this budget, the agents only replay recordings."""
_WAYS = {
    "gate.rerun_budget: 1": "raise gate.rerun_budget (now 1)",
    "gate.confirm: off": "set gate.confirm: both",
}
"""What to do about a setting that rules out further trials."""


def what_would_decide(
    comparison: Comparison | None, gate: GateOptions, reasons: Sequence[Reason]
) -> str:
    """Name what would decide a verdict that blocks nothing; empty if nothing is in doubt."""
    if comparison and _is_in_doubt(comparison):
        limit = comparison.limited_by
        return f"to decide it, {f'raise {limit}' if limit else _way_out(comparison, gate)}"
    if any(each.kind == "unconfirmed" and each.severity == "warns" for each in reasons):
        return "to decide it, make the merge base run (see below)"
    if any(each.kind == "silent" and each.severity == "warns" for each in reasons):
        return "to decide it, let the criteria measure the same cases as before (see below)"
    if any(each.kind == "floor" for each in reasons):
        return "to decide it, add cases, or set gate.floors: point"
    return ""


def _is_in_doubt(comparison: Comparison) -> bool:
    outcomes = [each.outcome for each in comparison.deltas if each.tier == "block"]
    if comparison.together:
        outcomes.append(comparison.together.outcome)
    return "inconclusive" in outcomes


def _way_out(comparison: Comparison, gate: GateOptions) -> str:
    if setting := gate.never_confirms:
        return _WAYS.get(setting, "set gate.on_inconclusive: rerun")
    more = "store more runs, with run.repeats: 3 unless the agent is a recording"
    if comparison.unconfirmed:
        return f"make the merge base run (see below), or {more}"
    if gate.confirm == "candidate":
        return f"set gate.confirm: both, or {more}"
    if not comparison.base_trials:
        return more
    if comparison.rounds or comparison.confirming or gate.rerun_budget < _TWO_ROUNDS:
        return f"raise gate.rerun_budget (now {gate.rerun_budget:g})"
    return "set run.repeats: 3, and record the calls of models again"


def is_all_broken(delta: Delta, comparison: Comparison) -> bool:
    """Return True if all of at least three cases that passed before now fail."""
    broken = {
        change.case
        for change in comparison.changes
        if change.group == delta.group and change.change == "newly_failing" and not change.excused
    }
    return len(broken) == delta.cases >= ALL_FAILED
