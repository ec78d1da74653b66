"""The cases of a comparison that reports name: those that changed, and those that are flaky."""

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter

from ci_eval.gate.case_pairs import Pairs
from ci_eval.gate.hard_break import Breaks
from ci_eval.gate.mean_drop import Finding
from ci_eval.gate.pairing import Group
from ci_eval.records.comparisons import CaseChange, Flaky, GroupKey
from ci_eval.run_files.score_cases import Cases
from ci_eval.run_files.score_table import Columns, Past

_MAX_FLAKY = 200
"""Maximum number of flaky cases that a comparison lists."""
_MAX_LOWER = 20
"""Maximum number of cases of a proven or exempted drop that are named although they still pass."""


def case_changes(
    group: Group, arm: Group | None, broken: Breaks | None, drift: Finding | None
) -> Iterator[CaseChange]:
    """Yield the cases of a group whose status changed, that dropped alone, or with its mean.

    `arm` is the group compared with the merge base; `broken` and `drift` are what was found.
    """
    suspects = broken.suspects if broken else {}
    lower = _lowest(group, group.pairs) if drift and drift.worse else []
    if arm and lower:  # only those that are also lower than with the merge base, which decides
        lower_in_job = {*_lowest(arm, arm.pairs, len(arm.pairs))}
        lower = [case for case in lower if case in lower_in_job]
    if group.left_out and group.facts.judges:
        lower += _lowest(group, group.all_pairs.where(group.all_pairs.among(group.left_out)))
    if group.facts.informational and not (suspects or lower):
        return
    proven = broken.proven if broken else frozenset()
    for case, pair in group.changed({*suspects, *lower}).items():
        was, now = group.passed(pair.base), group.passed(pair.value)
        if pair.now.errors:
            if pair.before.errors:
                continue
            kind = "newly_erring"
        elif not now and (was or case in suspects):
            kind = "newly_failing"
        elif now and not was:
            kind = "fixed"
        elif case in suspects or case in lower:
            kind = "dropped"
        else:
            continue
        values, confirming = pair.now.observations, pair.now.confirming
        excuse = group.left_out.get(case)
        is_tested = broken and case in suspects and kind == "newly_failing"
        base = arm.before.get(case) if arm else None
        seen = (*base.observations, *base.confirming) if base else ()
        yield CaseChange.model_validate(
            {
                "group": group.key,
                "case": case,
                "change": kind,
                "value": pair.now.value,
                "baseline": pair.base,
                "certain": case in proven,
                "suspected": broken is not None and case in broken.suspected,
                "failed": group.failures(values),
                "trials": len(values),
                "trials_before": pair.before.measured,
                "failed_before": group.failures(pair.before.observations),
                "confirmed": (
                    (group.failures(confirming), len(confirming)) if confirming else None
                ),
                "base": (group.failures(seen), len(seen)) if seen else None,
                "in_base": bool(broken and case in broken.in_base),
                "p_value": broken.p_value if broken and is_tested else None,
                "excused": excuse.kind if excuse else "",
            }
        )


def added(now: Columns, before: Sequence[Past]) -> Iterator[str]:
    """Yield the cases that no run of the baseline has, as `evalset/case`."""
    for name, cases in now.evalsets.items():
        fresh = cases.ids
        for past in before:
            known = past.columns.evalsets.get(name, Cases()).numbers
            changed = set(past.meta.changed_cases.get(name, ()))
            fresh = [case for case in fresh if case not in known and case not in changed]
        yield from (f"{name}/{case}" for case in fresh)


def _lowest(group: Group, pairs: Pairs, most: int = _MAX_LOWER) -> list[str]:
    """Return the cases among `pairs` that dropped most, and by enough to count."""
    import numpy as np

    differences = group.sign * (pairs.means - pairs.bases)
    order = np.argsort(differences, kind="stable")[:most]
    lower = order[differences[order] <= -group.least]
    return group.now.named(pairs.rows[lower])


def flaky_cases(
    groups: Sequence[Group], broken: Mapping[GroupKey, Breaks]
) -> tuple[tuple[Flaky, ...], int]:
    """Return the flakiest cases, which both passed and failed in the baseline, and how many do.

    Those that are proven to have broken now are left out.
    """
    found = [each for group in groups for each in _flaky(group, broken.get(group.key))]
    found.sort(key=itemgetter(0, 1))
    flakiest = (
        Flaky(group=key, case=case, failed=failed, trials=trials)
        for _, case, key, failed, trials in found[:_MAX_FLAKY]
    )
    return tuple(flakiest), len(found)


def _flaky(group: Group, broken: Breaks | None) -> Iterator[tuple[float, str, GroupKey, int, int]]:
    """Yield a rank, the case, its group, and the numbers of failed and of all trials."""
    if group.facts.informational:
        return
    passed, failed = group.before.outcomes(group.facts)
    (rows,) = ((passed > 0) & (failed > 0)).nonzero()
    counts = passed[rows].tolist(), failed[rows].tolist()
    for case, good, bad in zip(group.before.named(rows), *counts, strict=True):
        if not broken or case not in broken.proven:
            yield -min(good, bad) / (good + bad), case, group.key, bad, good + bad
