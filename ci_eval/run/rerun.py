"""Further rounds for a verdict that is in doubt.

If an agent on an evalset is in doubt, all its cases are run again, those that passed as well as
those that failed: repeating only failures would let them pass by chance.  A single case that is
suspected to be broken is confirmed by separate trials, which count for that and for no mean.

If the agents of the merge base can be run, too, both arms are rerun; else the change alone.
"""

from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Literal, NamedTuple

from ci_eval.config.config_schema import GateOptions
from ci_eval.gate.both_arms import LOOKS
from ci_eval.gate.compare import Examined, examine
from ci_eval.gate.hard_break import Breaks
from ci_eval.llm.gateway.gateway_clients import replays
from ci_eval.records.comparisons import GroupKey
from ci_eval.records.results import RunMeta
from ci_eval.records.trials import Place, Trial, TrialKey
from ci_eval.run.collect import Tally
from ci_eval.run.plan import Plan
from ci_eval.run_files.score_column import Column
from ci_eval.run_files.score_table import Past
from ci_eval.run_files.shard_files import FurtherTrials

_MOST_ROUNDS = 10
"""More rounds than any run has; confirming trials are numbered after these rounds."""
_FEW, _ROOM = 4, 5
"""Up to so many suspects, of at least so many cases for each, are confirmed with fewer trials than
the two or three looks at all cases that show a drop: about 15 for a suspect, of both arms."""


@dataclass(frozen=True)
class Redraw:
    """Trials to rerun; may be empty."""

    rounds: range = range(0)
    """The numbers of the rounds."""
    pairs: frozenset[tuple[str, str]] = frozenset()
    """The agents and evalsets whose cases are all drawn again."""
    confirming: Mapping[Place, range] = field(default_factory=dict)
    """The suspected cases, with the numbers of their confirming trials."""

    def __bool__(self) -> bool:
        return bool(self.pairs or self.confirming)

    def trials(self, plan: Plan) -> Iterator[Trial]:
        """Yield the trials."""
        for trial in plan.trials():
            key = trial.key
            for number in self.rounds if (key.agent, key.evalset) in self.pairs else ():
                if number == 0:
                    yield trial
                    continue
                again = key.model_copy(update={"repeat": key.repeat + number * plan.repeats})
                yield trial._replace(key=again, round=number, again=key.repeat)
            if key.repeat == 0:
                for number in self.confirming.get(key.place, ()):
                    repeat = plan.repeats * _MOST_ROUNDS + number
                    again = key.model_copy(update={"repeat": repeat})
                    repeated = number % plan.repeats
                    yield trial._replace(key=again, confirms=True, again=repeated)

    def count(self, plan: Plan) -> int:
        """Return how many trials they are."""
        drawn = sum(plan.cases_of(pair) for pair in self.pairs) * plan.repeats * len(self.rounds)
        return drawn + sum(map(len, self.confirming.values()))

    def holds(self, key: TrialKey, repeats: int) -> bool:
        """Return True if a trial is one of them, where each case is planned `repeats` times."""
        confirming = self.confirming.get(key.place, ())
        is_drawn = (key.agent, key.evalset) in self.pairs and key.repeat // repeats in self.rounds
        return is_drawn or key.repeat - repeats * _MOST_ROUNDS in confirming

    def stored(self) -> FurtherTrials:
        """Return the form in which a plan for other jobs stores it."""
        confirming: dict[str, dict[str, dict[str, tuple[int, int]]]] = {}
        for (agent, evalset, case), each in self.confirming.items():
            cases = confirming.setdefault(agent, {}).setdefault(evalset, {})
            cases[case] = each.start, each.stop
        rounds = self.rounds.start, self.rounds.stop
        return FurtherTrials(rounds=rounds, pairs=tuple(sorted(self.pairs)), confirming=confirming)

    @classmethod
    def of(cls, stored: FurtherTrials) -> "Redraw":
        """Return the trials that a plan stored."""
        confirming = {
            Place(agent, evalset, case): range(*numbers)
            for agent, evalsets in stored.confirming.items()
            for evalset, cases in evalsets.items()
            for case, numbers in cases.items()
        }
        return cls(range(*stored.rounds), frozenset(stored.pairs), confirming)

    def within(self, plan: Plan, still: Container[str]) -> "Redraw":
        """Return the part that `plan` has, without the agents in `still`."""
        pairs = frozenset(
            pair for pair in self.pairs if pair in plan.pairs and pair[0] not in still
        )
        confirming = {
            place: numbers
            for place, numbers in self.confirming.items()
            if plan.holds(place) and place[0] not in still
        }
        return replace(self, pairs=pairs, confirming=confirming)

    def without_suspects(self, pairs: frozenset[tuple[str, str]]) -> "Redraw":
        """Return the part without the confirming trials of `pairs`."""
        kept = {place: each for place, each in self.confirming.items() if place[:2] not in pairs}
        return replace(self, confirming=kept)


def still_agents(plan: Plan, env: Mapping[str, str], alike: Collection[str]) -> frozenset[str]:
    """Return the agents whose further trials would show nothing new, with the keys in `env`.

    A recording always says the same.  So does an agent whose model calls are replayed, unless the
    merge base gets the same answers: such agents are in `alike`.  Then any difference is due to the
    code, and further trials show whether it is permanent.
    """
    return frozenset(
        name
        for name, agent in plan.config.agents.items()
        if not agent.converses or (replays(agent, env) and name not in alike)
    )


class Redraws(NamedTuple):
    """The trials to rerun of each arm."""

    change: Redraw = Redraw()
    base: Redraw = Redraw()

    def count(self, plans: "Plans") -> int:
        """Return how many trials they are."""
        return self.change.count(plans.change) + self.base.count(plans.base or plans.change)


class Plans(NamedTuple):
    """The plans of both arms; `base` is `None` if the merge base cannot be run."""

    change: Plan
    base: Plan | None = None
    still: frozenset[str] = frozenset()
    """The agents whose further trials would show nothing new."""
    may_fill: bool = False
    """Whether the merge base can be run again with untracked files."""
    discarded: int = 0
    """The number of its trials that do not count, as it was."""


def why_none(plan: Plan) -> str:
    """Return why no further trials would ever be run; empty if they may be."""
    gate = plan.config.gate
    why = gate.never_confirms
    if not why and plan.config.baseline is None:
        return "no baseline is configured"
    if not why and not any(plan.config.agents[agent].converses for agent, _ in plan.pairs):
        return "every agent replays a recording"
    return why


def next_round(
    plans: Plans,
    meta: RunMeta,
    past: Sequence[Past],
    tally: Tally,
    base: tuple[RunMeta, Tally] | None = None,
) -> Redraws | Literal["base again"] | None:
    """Return the trials of the next round, or `None` if the verdict needs none.

    Where the merge base seems to lack untracked files, it has to be run again first, if it
    may.  Then returns "base again".

    `tally` has the results so far, `past` the runs that they are compared with, and `base` the
    results of the merge base so far; `None` if its agents cannot be run.
    """
    gate = plans.change.config.gate
    if gate.mode == "threshold":
        return None
    done = tally.trials + (base[1].trials if base else 0) + plans.discarded
    beside = Past(base[0], base[1].columns) if base else None
    if not past and beside and base and plans.base:
        if not base[1].trials:
            first = Redraw(range(1), frozenset(plans.base.pairs))
            return Redraws(base=first) if first else None
        past = [beside]
    if gate.never_confirms or not past:
        return None
    examined = examine(meta, tally.columns, past, gate, beside)
    if examined.checked.doubt and plans.may_fill:
        return "base again"
    redraws = affordable(wanted(examined, gate), plans, done)
    return redraws if any(redraws) else None


def wanted(examined: Examined, gate: GateOptions) -> Redraws:
    """Return the reruns that would settle the verdict; empty if it is settled."""
    together = examined.together
    breaks = [each for each in examined.breaks.values() if each.group.facts.tier == "block"]
    drifts = [(each.key, examined.drifts[each.key]) for each in examined.blocking]
    decided = any(each.proven for each in breaks) or any(each.worse for _, each in drifts)
    if decided or (together and together.worse):
        return Redraws()
    in_doubt = [key for key, each in drifts if each.in_doubt or (together and together.in_doubt)]
    few = _few_broken(examined, in_doubt)
    alone = {(key.agent, key.evalset) for key in in_doubt if key not in examined.arms} - few
    beside = {(key.agent, key.evalset) for key in in_doubt if key in examined.arms} - few
    change, base = Redraw(), Redraw()
    if alone and examined.rounds + 1 < gate.looks:
        change = Redraw(range(examined.rounds + 1, examined.rounds + 2), frozenset(alone))
    elif beside and examined.looks < len(LOOKS):
        held = LOOKS[examined.looks - 1] if examined.looks else (1, 0)
        needed = LOOKS[examined.looks]
        change, base = (
            Redraw(range(first, end), frozenset(beside) if end > first else frozenset())
            for first, end in zip(held, needed, strict=True)
        )
    of_change, of_base = _confirming(breaks, examined)
    return Redraws(replace(change, confirming=of_change), replace(base, confirming=of_base))


def _few_broken(examined: Examined, in_doubt: Sequence[GroupKey]) -> set[tuple[str, str]]:
    """Return the pairs in doubt because of a few suspects, which are confirmed first.

    That takes fewer trials than rounds of all cases, and names the cases that are broken.
    """
    doubts: dict[tuple[str, str], list[Breaks]] = {}
    for key in in_doubt:
        doubts.setdefault((key.agent, key.evalset), []).append(examined.breaks[key])
    found = set()
    for pair, parts in doubts.items():
        suspects = {case for each in parts for case in each.draws}
        are_few = 0 < len(suspects) <= min(_FEW, len(parts[0].group.pairs) / _ROOM)
        if are_few and all(each.explains_drop for each in parts):
            found.add(pair)
    return found


def _confirming(
    breaks: Sequence[Breaks], examined: Examined
) -> tuple[dict[Place, range], dict[Place, range]]:
    """Return the confirming trials of the change, and those of its base."""
    found: tuple[dict[Place, range], dict[Place, range]] = {}, {}
    for each in breaks:
        key, arm = each.group.key, examined.arms.get(each.group.key)
        for case, more in each.draws.items():
            place = Place(key.agent, key.evalset, case)
            columns = each.group.now, arm.before if arm else Column()
            for numbers, count, column in zip(found, more, columns, strict=True):
                cell = column.get(case)
                held = cell.confirmations if cell else 0
                end = max(numbers[place].stop if place in numbers else 0, held + count)
                if count:
                    numbers[place] = range(held, end)
    return found


def affordable(redraws: Redraws, plans: Plans, done: int) -> Redraws:
    """Return the part of a redraw that the budget allows after `done` trials of both arms.

    Suspects of a pair that both arms draw again wait: these rounds clear most of them.
    """
    change = redraws.change.within(plans.change, plans.still)
    base = redraws.base.within(plans.base, plans.still) if plans.base else Redraw()
    found = Redraws(change.without_suspects(base.pairs), base.without_suspects(base.pairs))
    left = plans.change.config.gate.budget(plans.change.count) - done
    if found.count(plans) <= left:
        return found
    # Confirming trials are cheap and decide more.  A suspect that gets fewer trials than it needs
    # could not be proven, so the suspects that need the fewest come first.
    costs = {
        place: len(change.confirming.get(place, ())) + len(base.confirming.get(place, ()))
        for place in {**change.confirming, **base.confirming}
    }
    suspects = sorted(costs, key=lambda place: (costs[place], place))
    totals = accumulate(costs[place] for place in suspects)
    fitting = [place for place, total in zip(suspects, totals, strict=True) if total <= left]
    return Redraws(_only(change, fitting), _only(base, fitting))


def _only(redraw: Redraw, places: Sequence[Place]) -> Redraw:
    kept = {place: redraw.confirming[place] for place in places if place in redraw.confirming}
    return replace(redraw, pairs=frozenset(), confirming=kept)
