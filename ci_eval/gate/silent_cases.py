"""Cases in which a criterion finds nothing to measure, although it measured them in the baseline.

They cannot be compared, so an agent whose answers can no longer be measured would pass.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from ci_eval.config.config_schema import GateOptions
from ci_eval.gate.floors import SEVERITIES, reason
from ci_eval.gate.pairing import Group, blocks
from ci_eval.records.comparisons import Silence
from ci_eval.records.findings import Reason, ReasonSeverity
from ci_eval.run_files.report_phrases import listed, named
from ci_eval.run_files.score_cell import LOST, MEASURED, SKIPPED
from ci_eval.stats.intervals import at_least, most_probable_break
from ci_eval.text.templates import counted

_SHARE = 0.05
"""The part of `gate.false_block` that all groups share."""
_UNUSUAL = 0.05
"""The p-value up to which silent cases leave a doubt, which no further trial would settle."""


def silent_cases(groups: Sequence[Group], false_block: float) -> Iterator[Silence]:
    """Yield what each criterion that can block no longer measures in some of its cases."""
    judging = [each for each in groups if blocks(each.facts)]
    for group in judging:
        # A criterion that measures nothing at all has vanished.
        if len(group.before) and group.now.counts(MEASURED).any():
            cases, p_value = _silent(group)
            if cases:
                level = false_block * _SHARE / len(judging)
                yield Silence(group=group.key, cases=tuple(cases), p_value=p_value, level=level)


def reasons_of_silence(found: Sequence[Silence], gate: GateOptions) -> Iterator[Reason]:
    """Yield what the silent cases of each criterion mean for the verdict."""
    for each in found:
        severity: ReasonSeverity = "info"
        if each.p_value <= each.level:
            severity = SEVERITIES[gate.on_vanished]
        elif each.p_value <= _UNUSUAL:
            severity = SEVERITIES[gate.on_inconclusive]
        cases = f"{counted(len(each.cases), 'case')} that it measured before"
        message = f"{named(each.group)} finds nothing to measure in {cases}: {listed(each.cases)}"
        yield reason("silent", severity, message, each.group)


def _silent(group: Group) -> tuple[list[str], float]:
    """Return the silent cases, and the probability of as many by chance: the smaller of two.

    A case is measured in all earlier trials and in none now like one that always passed and now
    always fails: see `hard_break`.  Cases that were silent before, too, may be so in any trial.
    That finds a few cases of a long history.  Many cases of a short one show by a sign test:
    without a change, no case is more likely to be silent now alone than before alone.
    """
    rows = group.before.rows_of(group.now.numbers)
    measured_before, skipped_before = (
        group.before.counts(kind)[rows] * (rows >= 0) for kind in (MEASURED, SKIPPED)
    )
    measured, lost, skipped = (group.now.counts(kind) for kind in (MEASURED, LOST, SKIPPED))
    is_silent = (measured_before > 0) & (measured + lost == 0) & (skipped > 0)
    if not is_silent.any():
        return [], 1.0
    cases, steady = (
        [case for case in group.now.named(chosen) if case not in group.left_out]
        for chosen in (is_silent, is_silent & (skipped_before == 0))
    )
    before, now = measured_before + skipped_before, measured + skipped
    known = (before > 0) & (lost == 0)
    trials = Counter(zip(before[known].tolist(), now[known].tolist(), strict=True))
    breaks = [(many, most_probable_break(*each)) for each, many in trials.items()]
    reverse = int((known & (skipped_before > 0) & (measured > 0)).sum())
    signs = [(len(steady) + reverse, 0.5)]
    return cases, min(at_least(len(steady), each) for each in (breaks, signs)) if steady else 1.0
