"""Cases in which a criterion finds nothing to measure, although it measured them in the baseline.

They cannot be compared, so an agent whose answers can no longer be measured would pass.
"""

from collections import Counter
from collections.abc import Sequence

from ci_eval.gate.pairing import Group, blocks
from ci_eval.records.findings import Vanished
from ci_eval.run_files.score_column import LOST, MEASURED, SKIPPED
from ci_eval.stats.intervals import at_least, most_probable_break
from ci_eval.text.templates import counted

_SHARE = 0.05
"""The part of `gate.false_block` that all groups share."""


def silent_cases(
    groups: Sequence[Group], false_block: float
) -> tuple[list[Vanished], dict[str, None]]:
    """Return what criteria that can block no longer measure in some of their cases.

    Where chance does not explain so many cases, the criterion counts as vanished; other cases are
    not comparable.
    """
    gone, others = list[Vanished](), dict[str, None]()
    judging = [each for each in groups if blocks(each.facts)]
    for group in judging:
        # A criterion that measures nothing at all has vanished.
        if not len(group.before) or not group.now.counts(MEASURED).any():
            continue
        key = group.key
        cases, p_value = _silent(group)
        if p_value <= false_block * _SHARE / len(judging):
            where = f"{counted(len(cases), 'case')} of {key.evalset} with {key.agent}"
            gone.append(Vanished(kind="criterion", name=key.criterion, where=where))
        else:
            reason = f"{key.criterion} finds nothing to measure"
            others |= dict.fromkeys(f"case {key.evalset}/{case}: {reason}" for case in cases)
    return gone, others


def _silent(group: Group) -> tuple[list[str], float]:
    """Return the silent cases, and the maximum probability of as many by chance."""
    rows = group.before.rows_of(group.now.numbers)
    was, skipped_before = (
        group.before.counts(kind)[rows] * (rows >= 0) for kind in (MEASURED, SKIPPED)
    )
    measured, lost, skipped = (group.now.counts(kind) for kind in (MEASURED, LOST, SKIPPED))
    is_silent = (was > 0) & (measured + lost == 0) & (skipped > 0)
    if not is_silent.any():
        return [], 1.0
    # Other cases are known to be measured in some trials only.
    always = (was > 0) & (skipped_before == 0) & (lost == 0)
    cases, steady = (
        [case for case in group.now.named(chosen) if case not in group.left_out]
        for chosen in (is_silent, is_silent & always)
    )
    trials = Counter(zip(was[always].tolist(), (measured + skipped)[always].tolist(), strict=True))
    chances = [(many, most_probable_break(*each)) for each, many in trials.items()]
    return cases, at_least(len(steady), chances) if steady else 1.0
