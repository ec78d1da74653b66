"""Merge bases that seem to fail because their work tree lacks what git does not track.

A step of the job may have put files into the work tree of the change: data, keys, programs.  The
work tree of the merge base has none of them.  If its agents need them, they fail, and then they
would excuse any change.
"""

from collections.abc import Mapping, Sequence

from ci_eval.gate.both_arms import LOOKS, arm_breaks
from ci_eval.gate.pairing import Group
from ci_eval.records.findings import GroupKey
from ci_eval.run_files.report_phrases import listed
from ci_eval.stats.permutation import permute

_WORSE = 0.05
"""P-value up to which the merge base did worse in this job than in stored runs."""
_DRAWS = 2_000


def complete_arms(
    groups: Sequence[Group],
    arms: Mapping[GroupKey, Group],
    untracked: Sequence[str],
    *,
    is_stored: bool,
) -> tuple[Mapping[GroupKey, Group], str]:
    """Return the part of `arms` that decides, and what makes the rest doubtful, if anything.

    `groups` are compared with stored runs or, unless `is_stored`, with the merge base as well.
    `untracked` is what its work tree lacks.
    """
    if not untracked:
        return arms, ""
    fails = _fell_short if is_stored else _passes_nowhere
    doubtful = {each.key for each in groups if each.key in arms and fails(each, arms[each.key])}
    if not doubtful:
        return arms, ""
    what = "it did worse than in its stored runs" if is_stored else "no case passed in it either"
    because = f"perhaps because its work tree lacks what git does not track: {listed(untracked)}"
    why = f"{what}, {because}; let the agent's `setup` create what it needs"
    kept = {key: arm for key, arm in arms.items() if not (is_stored and key in doubtful)}
    return kept, why


def _fell_short(group: Group, arm: Group) -> bool:
    (broken,) = arm_breaks([group], [arm], 1.0)
    if broken.in_base:
        return True
    again = Group(group.key, group.facts, arm.before, group.before, group.max_drop, group.left_out)
    if not again.pairs or again.drop < again.least:
        return False
    (test,) = permute([again.samples(LOOKS[-1][1])], draws=_DRAWS)
    return test.lower <= _WORSE


def _passes_nowhere(group: Group, arm: Group) -> bool:
    pairs = arm.pairs
    is_judged = not group.facts.informational and len(pairs) > 0
    failed_before = arm.before.failing(arm.facts)[pairs.rows_before]
    return is_judged and len(arm.failing) == len(pairs) and bool(failed_before.all())
