"""Verdicts that are not decided: something fell, and the gate could not tell whether it is noise.

Such a run does not pass: it does not block, but reports say so, with what would decide it.
"""

from ci_eval.config.config_schema import GateOptions
from ci_eval.records.findings import Comparison, Delta

_ALL_BROKEN = 3
"""From this many cases on, a group that broke as a whole is no chance worth passing."""


def what_would_decide(comparison: Comparison, gate: GateOptions) -> str:
    """Return what would decide the verdict, as one sentence; empty if nothing is in doubt."""
    outcomes = [each.outcome for each in comparison.deltas if each.tier == "block"]
    if comparison.together:
        outcomes.append(comparison.together.outcome)
    if "inconclusive" not in outcomes:
        return ""
    if gate.on_inconclusive != "rerun":
        return "to decide it, set gate.on_inconclusive: rerun"
    if gate.confirm == "off":
        return "to decide it, set gate.confirm: both"
    more = "set run.repeats: 3 and store more runs"
    if comparison.unconfirmed:
        return f"to decide it, make the merge base run (see below), or {more}"
    if gate.confirm == "candidate":
        return f"to decide it, set gate.confirm: both, or {more}"
    budget = f"raise gate.rerun_budget (now {gate.rerun_budget:g})"
    return f"to decide it, {budget if comparison.base_trials else more}"


def is_all_broken(delta: Delta, comparison: Comparison) -> bool:
    """Return True if all of at least three cases that passed before now fail, unconfirmed."""
    broken = {
        change.case
        for change in comparison.changes
        if change.group == delta.group and change.change == "newly_failing" and not change.excused
    }
    return not delta.confirmed and len(broken) == delta.cases >= _ALL_BROKEN
