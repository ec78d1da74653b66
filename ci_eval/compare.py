"""A run and its baseline to a `Comparison`: what changed, and what of it is not noise.

Case by case, under each criterion, the mean over the repeats of this run is compared with
the mean over the pooled runs of the baseline.  Only what means the same is compared: a case
whose content changed, or a criterion whose options did, is named instead.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ci_eval.columns import Cell, Column, Columns, Past, best_of, passes
from ci_eval.findings import CaseChange, Comparison, Delta, GroupKey, Outcome, Vanished
from ci_eval.results import CriterionFacts, RunMeta
from ci_eval.stats import drift_test, flip_test, holm, mean_interval


def compare(
    meta: RunMeta,
    columns: Columns,
    baseline: Sequence[Past],
    *,
    false_block: float,
    max_drop: float,
) -> Comparison:
    """Compare the run `meta` with its values `columns` with the runs of a baseline, newest first.

    `false_block` is the rate at which noise may be called a regression, over all criteria,
    evalsets and agents together; `max_drop` is the share of a criterion's interval that a
    drop must have to count, of the baseline's mean where it has no interval.
    """
    newest = baseline[0]
    pooled, incomparable = _pool(meta, columns, baseline)
    judged = [
        _Judged(key, meta.criteria[key.criterion], columns, pooled, max_drop)
        for key in columns.group_keys()
    ]
    tests = [(each.key, p) for each in judged for p in each.p_values]
    rejected = holm([p for _, p in tests], false_block)
    significant = {key for (key, _), yes in zip(tests, rejected, strict=True) if yes}
    changes = [change for each in judged for change in each.changes()]
    certain = {change.group for change in changes if change.certain}
    return Comparison(
        baseline_runs=tuple(run.meta.run_id for run in baseline),
        baseline_created=newest.meta.created,
        baseline_commit=newest.meta.commit,
        deltas=tuple(
            each.delta(significant=each.key in significant, certain=each.key in certain)
            for each in judged
        ),
        changes=tuple(changes),
        added=tuple(_added(columns, baseline)),
        vanished=() if meta.filtered else tuple(_vanished(meta, columns, newest.columns)),
        not_comparable=tuple(incomparable),
    )


def _pool(meta: RunMeta, now: Columns, before: Sequence[Past]) -> tuple[Columns, list[str]]:
    """Return the values of all runs of the baseline that mean the same as now."""
    pooled = Columns()
    changed: dict[str, None] = {}
    for old_meta, old in before:
        for key, column in old.groups.items():
            if key not in now.groups:
                continue
            name = key[2]
            old_facts = old_meta.criteria.get(name)
            if old_facts is None or old_facts.fingerprint != meta.criteria[name].fingerprint:
                changed[f"criterion {name}: its options changed"] = None
                continue
            target = pooled.groups.setdefault(key, {})
            for case, cell in column.items():
                place = (key[1], case)
                if case not in now.groups[key]:
                    continue
                if old.fingerprints[place] != now.fingerprints[place]:
                    changed[f"case {key[1]}/{case}: its content changed"] = None
                else:
                    target.setdefault(case, Cell()).pool(cell)
    return pooled, list(changed)


def _added(now: Columns, before: Sequence[Past]) -> Iterator[str]:
    known = {place for _, old in before for place in old.fingerprints}
    for evalset, case in now.fingerprints:
        if (evalset, case) not in known:
            yield f"{evalset}/{case}"


def _vanished(meta: RunMeta, now: Columns, old: Columns) -> Iterator[Vanished]:
    """Yield what the newest run of the baseline had; the largest thing that is gone, once."""
    agents, evalsets, criteria = ({key[position] for key in now.groups} for position in range(3))
    seen: set[tuple[str, str]] = set()
    for agent, evalset, criterion in old.groups:
        if criterion in meta.disabled:
            continue
        kind, name = next(
            (
                (kind, name)
                for kind, name, known in (
                    ("agent", agent, agents),
                    ("evalset", evalset, evalsets),
                    ("criterion", criterion, criteria),
                )
                if name not in known
            ),
            ("", ""),
        )
        if kind and (kind, name) not in seen:
            seen.add((kind, name))
            yield Vanished.model_validate({"kind": kind, "name": name})
        elif not kind and (agent, evalset, criterion) not in now.groups:
            yield Vanished(kind="criterion", name=criterion, where=f"{evalset} with {agent}")
    for evalset, case in old.fingerprints:
        if evalset in evalsets and (evalset, case) not in now.fingerprints:
            yield Vanished(kind="case", name=case, where=evalset)


@dataclass
class _Judged:
    """One criterion on one evalset with one agent, now and before."""

    key: GroupKey
    facts: CriterionFacts
    columns: Columns
    pooled: Columns
    max_drop: float

    def __post_init__(self) -> None:
        name = (self.key.agent, self.key.evalset, self.key.criterion)
        self.now = self.columns.groups[name]
        self.before: Column = self.pooled.groups.get(name, {})
        self.sign = 1.0 if self.facts.better == "higher" else -1.0
        # Missing observations count as the best there could have been, so a regression is
        # one whatever they had shown.
        self.pairs = dict(self._pairs(best_of(self.facts)))
        self.scale = self._scale()
        self.least = self.max_drop * self.scale
        self.differences = [self.sign * (after - base) for after, base in self.pairs.values()]
        self.p_values = self._tests()
        cells = [self.before[case] for case in self.pairs]
        # A case that was observed once says nothing of how much the others vary.
        self.steady = any(c.measured > 1 for c in cells) and not any(c.varied for c in cells)

    def _scale(self) -> float:
        """Return what drops are shares of: the interval, else the mean of the baseline."""
        if self.facts.interval:
            return self.facts.interval[1] - self.facts.interval[0]
        return abs(math.fsum(base for _, base in self.pairs.values())) / max(len(self.pairs), 1)

    def _tests(self) -> list[float]:
        """Return the p-values of both guards: many cases a little worse, some cases broken."""
        if not self.pairs or self.facts.informational:
            return []
        # A test sees billionths, which are much of what a call costs.
        shares = [each / (self.scale or 1.0) for each in self.differences]
        return [drift_test(shares), flip_test(self._flips(), len(self.pairs))]

    def _flips(self) -> int:
        """Return how many cases passed before and fail now."""
        return sum(
            passes(base, self.facts) and not passes(value, self.facts)
            for value, base in self.pairs.values()
        )

    def _pairs(self, best: float | None) -> Iterator[tuple[str, tuple[float, float]]]:
        for case, cell in self.now.items():
            base = self.before[case].value if case in self.before else None
            value = cell.at_best(best)
            if base is not None and value is not None:
                yield case, (value, base)

    def changes(self) -> Iterator[CaseChange]:
        """Yield the cases that changed status, or dropped where nothing ever varied."""
        for case, (value, base) in self.pairs.items():
            was, now = passes(base, self.facts), passes(value, self.facts)
            drop = self.sign * (base - value)
            known = self.steady and self.before[case].measured > 1
            certain = known and drop >= self.least and drop > 0
            if self.facts.informational:
                continue
            if self.now[case].errors:
                yield self._change(case, "newly_erring", certain=False)
            elif was and not now:
                yield self._change(case, "newly_failing", certain=certain)
            elif now and not was:
                yield self._change(case, "fixed", certain=False)
            elif certain:
                yield self._change(case, "dropped", certain=True)

    def _change(self, case: str, change: str, *, certain: bool) -> CaseChange:
        return CaseChange.model_validate(
            {
                "group": self.key,
                "case": case,
                "change": change,
                "value": self.now[case].value,
                "baseline": self.pairs[case][1],
                "certain": certain,
            }
        )

    def delta(self, *, significant: bool, certain: bool) -> Delta:
        """Return how the criterion changed; `significant` is what the corrected test says."""
        values = [cell.value for cell in self.now.values() if cell.value is not None]
        bases = [base for _, base in self.pairs.values()]
        outcome, reason = self._outcome(significant=significant, certain=certain)
        return Delta(
            group=self.key,
            cases=len(self.pairs),
            value=sum(values) / len(values) if values else None,
            baseline=sum(bases) / len(bases) if bases else None,
            effect=self.sign * self._effect() if self.pairs else None,
            interval=self._interval(),
            p_value=min(self.p_values, default=None),
            outcome=outcome,
            reason=reason,
            steady=self.steady,
        )

    def _effect(self) -> float:
        return math.fsum(self.differences) / len(self.differences)

    def _interval(self) -> tuple[float, float] | None:
        return mean_interval([self.sign * each for each in self.differences])

    def _outcome(self, *, significant: bool, certain: bool) -> tuple[Outcome, str]:
        if not self.pairs:
            return "not_compared", "the baseline has nothing comparable"
        drop, interval = -self._effect(), mean_interval(self.differences)
        if certain:
            return "regressed", "the baseline never varied here"
        if drop > 0 and drop >= self.least:
            if significant:
                return "regressed", "the drop is larger than noise"
            return "inconclusive", "the drop may be noise"
        if self._flips() and not self.facts.informational:
            return "inconclusive", "what fails now and passed before may be noise"
        improved = drop < 0 and interval is not None and interval[0] > 0
        return ("improved" if improved else "unchanged"), ""
