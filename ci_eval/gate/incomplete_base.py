"""Merge bases that may fail because of their work tree, which would excuse any change.

The work tree of the merge base lacks the untracked files of the change's: data, keys, programs.
Copies of these files may be built from the change, and fail like it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from ci_eval.gate.both_arms import LOOKS, arm_breaks
from ci_eval.gate.hard_break import Breaks
from ci_eval.gate.pairing import ROUNDING, Group
from ci_eval.records.comparisons import GroupKey
from ci_eval.run_files.report_phrases import listed
from ci_eval.stats.permutation import Permuted, permute

_WORSE = 0.05
"""P-value up to which one of two runs is considered worse than the other."""
_CLEARLY = 0.005
"""The same, if the other run then decides by itself: an unlucky merge base must not block."""
_DRAWS = 2_000
_WAY_OUT = "let the agent's `setup` create what it needs"
_WORSE_THAN_CHANGE = "and worse than this change, so its work tree may lack files"
_LACKS = "perhaps because its work tree lacks untracked files"


@dataclass(frozen=True)
class CheckedArms:
    """The groups that the merge base can be compared for, and the doubts about its results."""

    decisive: Mapping[GroupKey, Group]
    """The groups that are decided by the comparison with the merge base."""
    undecided: Collection[GroupKey] = ()
    """Those for which it is worse than in stored runs, but only with copies of untracked files."""
    doubt: str = ""
    """Why some of its results do not count; empty if all do."""

    def without_excuses(self, found: Breaks) -> Breaks:
        """Return the breaks of a group; if it is undecided, the merge base excuses none."""
        return replace(found, in_base=frozenset()) if found.group.key in self.undecided else found


def checked_arms(
    groups: Sequence[Group],
    arms: Mapping[GroupKey, Group],
    lacked: Sequence[str],
    copied: Sequence[str],
    *,
    is_stored: bool,
) -> CheckedArms:
    """Check the groups compared with the merge base, `arms`, for signs of missing files.

    `groups` are compared with stored runs or, unless `is_stored`, with the merge base as well.
    `lacked` are the untracked files that its work tree lacks, and `copied` those copied for it.
    """
    both = [(each, arms[each.key]) for each in groups if each.tested and each.key in arms]
    if not is_stored:
        return CheckedArms(arms, doubt=_doubt_alone([arm for _, arm in both], lacked, copied))
    worse = {
        group.key
        for group, arm in both
        if _is_worse_than_change(arm, steady=group.steady, level=_CLEARLY)
    }
    short = {
        group.key
        for group, arm in both
        if (lacked or copied or group.key in worse) and _fell_short(group, arm)
    }
    broken = short if lacked else short & worse
    undecided = {
        group.key
        for group, arm in both
        if copied and group.key in short - broken and _excuses(group, arm)
    }
    doubt = ""
    if broken:
        because = f"{_LACKS}: {listed(lacked)}; {_WAY_OUT}" if lacked else _WORSE_THAN_CHANGE
        doubt = f"it did worse than in its stored runs, {because}"
    elif undecided:
        doubt = f"it did worse than in its stored runs, too, {_with_copies(copied)}"
    return CheckedArms(
        {key: arm for key, arm in arms.items() if key not in broken}, undecided, doubt
    )


def _with_copies(copied: Sequence[str]) -> str:
    files = f"copies of untracked files, which may be built from this change: {listed(copied)}"
    return f"but with {files}; {_WAY_OUT}"


def _doubt_alone(arms: Sequence[Group], lacked: Sequence[str], copied: Sequence[str]) -> str:
    """Return the doubt about a merge base without stored runs."""
    if lacked and any(_fails_most(arm) or _is_worse_than_change(arm) for arm in arms):
        return f"it did badly, {_LACKS}: {listed(lacked)}; {_WAY_OUT}"
    if copied and any(_passes_nowhere(arm) for arm in arms):
        return f"no case passed with it, either, {_with_copies(copied)}"
    return ""


def _fell_short(group: Group, arm: Group) -> bool:
    """Return True if the merge base did worse in this job than in stored runs."""
    if arm_breaks([group], [arm], 1.0)[0].in_base:
        return True
    again = Group(group.key, group.facts, arm.before, group.before, group.max_drop, group.left_out)
    return bool(again.pairs) and again.drop >= again.least and _test(again).lower <= _WORSE


def _excuses(group: Group, arm: Group) -> bool:
    """Return True if the change did worse than stored runs, too."""
    return group.drop >= group.least or bool(arm_breaks([group], [arm], 1.0)[0].in_base)


def _is_worse_than_change(arm: Group, *, steady: bool = False, level: float = _WORSE) -> bool:
    """Return True if the merge base did worse in this job than the change.

    In a `steady` history, a single case is enough.
    """
    if steady and (arm.differences > ROUNDING * arm.scale).any():
        return True
    return bool(arm.pairs) and -arm.drop >= arm.least and _test(arm).upper <= level


def _test(group: Group) -> Permuted:
    (test,) = permute([group.samples(LOOKS[-1][1])], draws=_DRAWS)
    return test


def _failed_before(arm: Group) -> int:
    """Return the number of compared cases that the merge base failed in all trials."""
    return int(arm.before.failing(arm.facts)[arm.pairs.rows_before].sum())


def _fails_most(arm: Group) -> bool:
    return not arm.facts.informational and 2 * _failed_before(arm) >= len(arm.pairs) > 0


def _passes_nowhere(arm: Group) -> bool:
    is_judged = not arm.facts.informational and len(arm.pairs) > 0
    return is_judged and len(arm.failing) == len(arm.pairs) == _failed_before(arm)
