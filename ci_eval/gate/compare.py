"""Comparison of a run with its baseline: what changed, and which changes are not noise.

For each case and criterion, the mean over the repeats of this run is compared with the mean over
the pooled runs of the baseline.  Two guards separate changes from noise: `mean_drop` (many cases
score a little lower) and `hard_break` (a case that always passed now always fails).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ci_eval.config.config_schema import GateOptions
from ci_eval.forge.lineage import Lineage
from ci_eval.gate import hard_break
from ci_eval.gate.between_runs import newest_level, with_days
from ci_eval.gate.both_arms import ArmDrops, arm_breaks, looks_taken
from ci_eval.gate.compared_cases import added, case_changes, flaky_cases
from ci_eval.gate.exemptions import Excuses, excused, listed
from ci_eval.gate.hard_break import Breaks, breaks
from ci_eval.gate.incomplete_base import CheckedArms, checked_arms
from ci_eval.gate.mean_drop import Drifts, Finding
from ci_eval.gate.pairing import ROUNDING, Group, groups_of, pool, vanished
from ci_eval.gate.silent_cases import silent_cases
from ci_eval.gate.unpaired_failures import errors_of_base, unmatched
from ci_eval.gate.weakened_gate import changed_content, loosened
from ci_eval.records.comparisons import Comparison, Delta, GroupKey, Outcome, Together
from ci_eval.records.results import RunMeta, Tier
from ci_eval.run_files.report_phrases import named
from ci_eval.run_files.score_cell import CONFIRMING
from ci_eval.run_files.score_table import Columns, Past
from ci_eval.stats.intervals import mean_interval

_TIERS: tuple[Tier, ...] = ("block", "warn")
_FEW = "; too few trials to rule out noise"


class Examined(NamedTuple):
    """All groups of a run with the findings for each."""

    groups: Sequence[Group]
    not_comparable: Sequence[str]
    excuses: Excuses
    drifts: Mapping[GroupKey, Finding]
    together: Finding | None
    breaks: Mapping[GroupKey, Breaks]
    rounds: int
    checked: CheckedArms
    """The groups for which the merge base can be run, compared with it."""
    looks: int
    """Number of looks for which the merge base was run."""

    @property
    def arms(self) -> Mapping[GroupKey, Group]:
        """The groups that the comparison with the merge base decides."""
        return self.checked.decisive

    @property
    def blocking(self) -> list[Group]:
        """The tested groups that block if they regress."""
        return [each for each in self.groups if each.tested and each.facts.tier == "block"]


def examine(
    meta: RunMeta,
    columns: Columns,
    baseline: Sequence[Past],
    gate: GateOptions,
    base: Past | None = None,
) -> Examined:
    """Pair a run with its baseline and test the differences.

    `base` is what the agents of the merge base showed so far in the same job; `None` if they cannot
    be run.  For these agents, the runs of the `baseline` only raise doubts.
    """
    pooled = pool(meta, columns, baseline)
    excuses = excused(meta, gate, columns)
    groups = groups_of(meta, columns, pooled, gate.max_drop, excuses)
    rounds = max([0, *(int(each.units.max(initial=1)) - 1 for each in columns.groups.values())])
    is_stored = base is not baseline[0]
    known = _in_both_arms(meta, columns, base, gate, excuses) if base else {}
    lacked = [each for each in meta.untracked if base and each not in base.meta.untracked]
    copied = base.meta.untracked if base else ()
    checked = checked_arms(groups, known, lacked, copied, is_stored=is_stored)
    confirming = checked.decisive
    groups = [each if each.key in confirming else newest_level(each) for each in groups]
    stored = (baseline[:1], baseline[1:]) if base else ((), ())
    nearest, earlier = (pool(meta, columns, past).columns for past in stored)
    looks = looks_taken([*confirming.values()])
    found: dict[GroupKey, Finding] = {}
    broken: dict[GroupKey, Breaks] = {}
    together = None
    for tier in _TIERS:
        tested = [each for each in groups if each.tested and each.facts.tier == tier]
        # A fixed order, so that ties between p-values do not depend on the order of results.
        tested.sort(key=lambda each: (each.key.agent, each.key.evalset, each.key.criterion))
        beside = [each for each in tested if each.key in confirming]
        others = [each for each in tested if each.key not in confirming]
        recorded, alone = (
            [each for each in others if (each.key.agent in meta.recordings) is expected]
            for expected in (True, False)
        )
        for part in filter(None, (recorded, alone, beside)):
            rate = gate.false_block * (len(part) / len(tested))
            share = hard_break.SHARE * rate
            # Where nothing can be drawn again, the first look is the last one.
            by = gate.model_copy(update={"on_inconclusive": "warn"}) if part is recorded else gate
            arms = [confirming[each.key] for each in part] if part is beside else []
            drifts = (
                ArmDrops(part, gate, looks, rate - share, arms, nearest, earlier, is_stored)
                if part is beside
                else Drifts(part, by, rounds, rate - share)
            )
            findings, mean = drifts.found()
            found |= dict(zip((each.key for each in part), findings, strict=True))
            # If the suite is too small to detect any drift, this guard gets the whole budget.
            share = share if drifts.visible else rate
            counted = arm_breaks(part, arms, share) if part is beside else breaks(part, by, share)
            broken |= {each.group.key: checked.without_excuses(each) for each in counted}
            together = mean if tier == "block" and mean else together
    return Examined(
        groups, pooled.changed, excuses, found, together, broken, rounds, checked, looks
    )


def _in_both_arms(
    meta: RunMeta, columns: Columns, base: Past, gate: GateOptions, excuses: Excuses
) -> dict[GroupKey, Group]:
    """Return the groups of the agents that `base` has, compared with it alone."""
    pooled = pool(meta, columns, [base], is_same_job=True)
    groups = groups_of(meta, columns, pooled, gate.max_drop, excuses)
    known = {*base.meta.agents}.difference(meta.recordings)
    return {each.key: each for each in groups if each.key.agent in known}


def compare(  # noqa: PLR0913, PLR0917  # everything that is compared
    meta: RunMeta,
    columns: Columns,
    baseline: Sequence[Past],
    gate: GateOptions,
    lineage: Lineage | None = None,
    base: Past | None = None,
) -> Comparison:
    """Compare the run `meta` and its values `columns` with the baseline runs, nearest first.

    `lineage` is the history in which the baseline was searched; `base` is what the agents of the
    merge base showed in the same job.
    """
    examined = examine(meta, columns, baseline, gate, base)
    missing = columns.incomplete(meta.criteria, examined.excuses)
    barely = (
        examine(meta, columns.filled(meta.criteria), baseline, gate, base)
        if 0 < missing <= gate.max_errors
        else None
    )
    nearest = baseline[0].meta
    flaky, flaky_total = flaky_cases(examined.groups, examined.breaks)
    return Comparison(
        baseline_runs=tuple(past.meta.run_id for past in baseline),
        baseline_created=nearest.created,
        baseline_commit=nearest.commit,
        baseline_distance=lineage.distance(nearest.commit) if lineage else None,
        baseline_branch=lineage.base if lineage and lineage.changes else None,
        comparable=_comparable(examined.groups),
        shallow=lineage.shallow if lineage else False,
        unconfirmed=examined.checked.doubt,
        base_copies=base.meta.untracked if base else (),
        rounds=examined.rounds,
        confirming=_confirming(columns),
        together=_together(
            examined.together, sum(bool(each.facts.interval) for each in examined.blocking)
        ),
        deltas=tuple(_delta(group, examined) for group in examined.groups),
        changes=tuple(
            change
            for group in examined.groups
            for change in case_changes(
                group,
                examined.arms.get(group.key),
                examined.breaks.get(group.key),
                examined.drifts.get(group.key),
            )
        ),
        added=tuple(added(columns, baseline)),
        unmatched_failures=tuple(dict.fromkeys(unmatched(examined.groups, examined.arms))),
        vanished=() if meta.filtered else tuple(vanished(meta, columns, baseline[0])),
        silent=tuple(silent_cases(examined.groups, gate.false_block)),
        not_comparable=tuple(examined.not_comparable),
        flaky=flaky,
        flaky_total=flaky_total,
        excused=tuple(listed(meta, gate, examined.excuses)),
        hidden=(*errors_of_base(examined.arms.values()), *_hidden(examined, barely, gate)),
        loosened=(*loosened(meta, nearest), *changed_content(columns, baseline[0].columns)),
    )


def _comparable(groups: Sequence[Group]) -> bool:
    """Return True if any blocking criterion has a case to compare, exempted or not."""
    judging = [
        each for each in groups if each.facts.tier == "block" and not each.facts.informational
    ]
    return any(each.all_pairs for each in judging or groups)


def _confirming(columns: Columns) -> int:
    """Return the number of confirming trials, counting each once, not once per criterion."""
    most: dict[tuple[str, str, str], int] = {}
    for (agent, evalset, _), column in columns.groups.items():
        counts = column.counts(CONFIRMING)
        (rows,) = counts.nonzero()
        for case, count in zip(column.named(rows), counts[rows].tolist(), strict=True):
            place = (agent, evalset, case)
            most[place] = max(most.get(place, 0), count)
    return sum(most.values())


def _together(found: Finding | None, criteria: int) -> Together | None:
    if found is None:
        return None
    outcomes: dict[Outcome, bool] = {
        "regressed": found.worse,
        "inconclusive": found.in_doubt,
        "improved": found.better,
        "unchanged": True,
    }
    return Together(
        criteria=criteria,
        effect=found.effect,
        p_value=found.p_value,
        level=found.level,
        outcome=next(outcome for outcome, holds in outcomes.items() if holds),
    )


def _delta(tested: Group, examined: Examined) -> Delta:
    found = examined.drifts.get(tested.key)
    outcome, reason = _outcome(tested, examined)
    arm = examined.arms.get(tested.key)
    group = arm if arm and arm.pairs else tested
    shown = group.all_pairs  # what is exempt is shown all the same
    pairs = group.pairs or shown
    return Delta(
        group=group.key,
        cases=len(group.pairs),
        value=math.fsum(pairs.means) / len(pairs) if pairs else None,
        baseline=math.fsum(pairs.bases) / len(pairs) if pairs else None,
        baseline_with_exempt=(
            math.fsum(shown.bases) / len(shown) if len(shown) > len(pairs) else None
        ),
        effect=math.fsum(pairs.means - pairs.bases) / len(pairs) if pairs else None,
        interval=group.interval if group is arm else with_days(group),
        p_value=found.p_value if found else None,
        level=found.level if found else None,
        least=group.least if pairs else None,
        visible=found is not None
        and (tested.steady or group is arm or tested.exchanges * found.level >= 1),
        outcome=outcome,
        reason=reason,
        steady=tested.steady,
        tier=group.facts.tier,
        confirmed=group is arm,
    )


def _hidden(examined: Examined, barely: Examined | None, gate: GateOptions) -> Iterator[str]:
    """Yield what regresses only in `barely`, where every missing value just passes.

    Otherwise an error could hide a case that still passes but got worse.
    """
    if barely is None:
        return
    block = {"regressed"} | ({"inconclusive"} if gate.on_inconclusive == "fail" else set())
    known = {group.key: _outcome(group, examined)[0] for group in examined.blocking}
    for group in barely.blocking:
        if _outcome(group, barely)[0] in block and known.get(group.key) not in block:
            yield named(group.key)
    now, then = (each.together and _together(each.together, 0) for each in (examined, barely))
    if then and then.outcome in block and not (now and now.outcome in block):
        yield "all blocking criteria combined"


def _outcome(group: Group, examined: Examined) -> tuple[Outcome, str]:
    """Return the outcome of a group and its reason; the most severe one wins."""
    if not group.pairs:
        excused_all = "all cases are accepted or quarantined"
        nothing = "the baseline has nothing comparable"
        return "not_compared", excused_all if group.left_out else nothing
    found, broken = examined.drifts.get(group.key), examined.breaks.get(group.key)
    if found and broken and group.key in examined.arms:
        for outcome, reason in _with_base(found, broken, group):
            return outcome, reason
        if group.key in examined.checked.undecided:
            return "inconclusive", "worse than in the stored runs, as is the merge base"
    elif found and broken:
        for outcome, reason in _without_base(found, broken, group):
            return outcome, reason
    is_counted = found is None or group.facts.max_growth is not None
    improved = (found and found.better) or (is_counted and _gained(group))
    return ("improved" if improved else "unchanged"), ""


def _with_base(found: Finding, broken: Breaks, group: Group) -> Iterator[tuple[Outcome, str]]:
    if found.worse:
        yield "regressed", "worse than the merge base in the same job"
    if broken.proven and group.all_fail(broken.proven):
        yield "regressed", "fails with this change, passes with the merge base in the same job"
    if broken.proven:
        yield "regressed", "always worse than with the merge base in the same job"
    if found.in_doubt:
        behind = "worse than the other criteria or the newest stored run"
        yield "inconclusive", "this may be noise" if found.effect < 0 else behind
    if broken.suspected:
        yield "inconclusive", _suspicion(broken, group)


def _without_base(found: Finding, broken: Breaks, group: Group) -> Iterator[tuple[Outcome, str]]:
    if broken.proven and group.steady:
        yield "regressed", "these cases always scored the same before"
    if found.worse:
        yield "regressed", "this is more than noise"
    if broken.proven:
        yield "regressed", "always passed before, always fails now; not explained by chance"
    if found.in_doubt:
        yield "inconclusive", "this may be noise"
    if broken.suspected and group.steady:
        yield "inconclusive", f"always scored the same before, worse now{_FEW}"
    if broken.suspected:
        yield "inconclusive", _suspicion(broken, group)


def _suspicion(broken: Breaks, group: Group) -> str:
    if group.all_fail(broken.suspected):
        earlier = (group.all_pairs[case].before.observations for case in broken.suspected)
        if any(map(group.failures, earlier)):
            return f"passed before, always fails now{_FEW}"
        return f"always passed before, always fails now{_FEW}"
    return f"worse, while hardly any other case differs from the baseline{_FEW}"


def _gained(group: Group) -> bool:
    """Return True if a measure improved, judged by the interval of its mean difference."""
    interval = mean_interval(group.differences.tolist())
    nothing = ROUNDING * group.scale
    gained = interval is not None and interval[0] > nothing and -group.drop >= group.least
    return gained and group.complete
