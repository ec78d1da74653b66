"""Reruns for an inconclusive verdict.

Of an agent on an evalset in doubt all cases are drawn again, those that passed as those that
failed: repeats of failures alone would let them pass by chance.  A single case that is suspected
to be broken is confirmed by trials of its own, which count for that and for no mean.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from ci_eval.config.config_schema import GateOptions
from ci_eval.gate.compare import Examined, examine
from ci_eval.records.results import RunMeta
from ci_eval.records.trials import Trial
from ci_eval.run.collect import Progress, Tally
from ci_eval.run.plan import Plan
from ci_eval.run_files.score_table import Past

_log = logging.getLogger(__name__)
Place = tuple[str, str, str]
"""Agent, evalset and case."""


@dataclass(frozen=True)
class Redraw:
    """Trials to rerun; may be empty."""

    round: int = 0
    """Round number."""
    pairs: frozenset[tuple[str, str]] = frozenset()
    """The agents and evalsets of which every case is drawn again."""
    confirming: Mapping[Place, int] = field(default_factory=dict)
    """The cases that are suspected, with how many trials each takes."""

    def __bool__(self) -> bool:
        return bool(self.pairs or self.confirming)

    def trials(self, plan: Plan) -> Iterator[Trial]:
        """Yield the trials."""
        for trial in plan.trials():
            key = trial.key
            if (key.agent, key.evalset) in self.pairs:
                again = key.model_copy(update={"repeat": key.repeat + self.round * plan.repeats})
                yield trial._replace(key=again, round=self.round)
            if key.repeat == 0:
                first = plan.repeats * plan.config.gate.looks
                for number in range(self.confirming.get(key.place, 0)):
                    again = key.model_copy(update={"repeat": first + number})
                    yield trial._replace(key=again, confirms=True)

    def count(self, plan: Plan) -> int:
        """Return how many trials they are."""
        drawn = sum(plan.evalsets[evalset].count for _, evalset in self.pairs) * plan.repeats
        return drawn + sum(self.confirming.values())


def next_round(
    plan: Plan, meta: RunMeta, past: Sequence[Past], progress: Progress, tally: Tally
) -> Iterator[Trial] | None:
    """Return the trials of the next round, or `None` if the verdict needs none.

    `tally` has the results so far, `past` the runs that they are compared with.
    """
    gate = plan.config.gate
    if gate.on_inconclusive != "rerun" or gate.mode == "threshold" or not past:
        return None
    examined = examine(meta, tally.columns, past, gate)
    redraw = affordable(wanted(examined, gate), plan, tally.trials)
    _log.info("round %d: %d trials are added", redraw.round, redraw.count(plan))
    progress.rerun(redraw.count(plan))
    return redraw.trials(plan) if redraw else None


def wanted(examined: Examined, gate: GateOptions) -> Redraw:
    """Return the reruns that would settle the verdict; empty if it is settled."""
    together = examined.together
    breaks = [each for each in examined.breaks.values() if each.group.facts.tier == "block"]
    drifts = [(each.key, examined.drifts[each.key]) for each in examined.blocking]
    decided = any(each.proven for each in breaks) or any(each.worse for _, each in drifts)
    if decided or (together and together.worse):
        return Redraw()
    pairs = frozenset(
        (key.agent, key.evalset)
        for key, each in drifts
        if each.in_doubt or (together and together.in_doubt)
    )
    confirming: dict[Place, int] = {}
    for each in breaks:
        for case in each.suspects if each.wanted else ():
            place = (each.group.key.agent, each.group.key.evalset, case)
            confirming[place] = max(confirming.get(place, 0), each.wanted)
    more = examined.rounds + 1 < gate.looks
    return Redraw(examined.rounds + 1, pairs if more else frozenset(), confirming)


def affordable(redraw: Redraw, plan: Plan, done: int) -> Redraw:
    """Return the part of a redraw that the budget allows after `done` trials.

    Agents that only tell what was recorded are left out: there is nothing more to learn of them.
    """
    agents = plan.config.agents
    pairs = frozenset(pair for pair in redraw.pairs if agents[pair[0]].converses)
    confirming = {
        place: count for place, count in redraw.confirming.items() if agents[place[0]].converses
    }
    redraw = replace(redraw, pairs=pairs, confirming=confirming)
    left = plan.config.gate.rerun_budget * plan.count - done
    if redraw.count(plan) <= left:
        return redraw
    # Confirming trials are cheap and decide more.  A suspect that gets fewer than it takes could
    # not be proven, so those that take the fewest come first.
    suspects = sorted(redraw.confirming.items(), key=lambda each: (each[1], each[0]))
    totals = accumulate(count for _, count in suspects)
    fitting = {
        place: count
        for (place, count), total in zip(suspects, totals, strict=True)
        if total <= left
    }
    return replace(redraw, pairs=frozenset(), confirming=fitting)
