"""Division of a suite into shards, each of which one job runs.

Without a plan, each case is assigned by a hash of its names, so all jobs agree without
communicating.  A plan assigns cases by their stored durations: the longest first, each to the shard
that finishes first (longest processing time; Graham, Bounds on Multiprocessing Timing Anomalies,
1969).  A shard with a long case gets less other work, because nothing evens out a delay of that
case.
"""

import hashlib
import heapq
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ci_eval import __version__
from ci_eval.config.criterion_facts import facts_of
from ci_eval.config.validated_config import Config
from ci_eval.llm.gateway.gateway_clients import with_models
from ci_eval.llm.gateway.gateway_options import ModelOptions
from ci_eval.llm.judge_settings import JudgeOptions
from ci_eval.records.cases import Json
from ci_eval.records.errors import UsageError
from ci_eval.records.trials import Place
from ci_eval.run.plan import Plan
from ci_eval.run_files.score_table import Past
from ci_eval.run_files.shard_files import Manifest, PlannedShard, Shard, ShardPlan
from ci_eval.runtime.context import RunContext
from ci_eval.text.fingerprint import fingerprint


def manifest_of(plan: Plan, context: RunContext) -> Manifest:
    """Return the manifest that all shards of `plan` share."""
    config = plan.config
    file = hashlib.sha256(config.path.read_bytes()).hexdigest()
    chosen: Json = [file, plan.repeats, [[*pair, *names] for pair, names in plan.pairs.items()]]
    return Manifest(
        suite=config.suite,
        version=__version__,
        commit=context.clone.head,
        configuration=fingerprint(chosen),
        evalsets=_contents(plan),
        criteria={
            name: fingerprint(facts_of(each, config.judging, context).model_dump(mode="json"))
            for name, each in plan.criteria.items()
        },
    )


def _contents(plan: Plan) -> dict[str, str]:
    """Return a fingerprint of the cases of each evalset, in their order."""
    hashes = {evalset: hashlib.blake2b(digest_size=8) for _, evalset in plan.pairs}
    for trial in replace(plan, repeats=1).trials():
        key = trial.key
        hashes[key.evalset].update(f"{key.agent}\0{key.case}\0{trial.fingerprint}\n".encode())
    return {name: each.hexdigest() for name, each in hashes.items()}


def divided(plan: Plan, total: int, manifest: Manifest, past: Sequence[Past]) -> ShardPlan:
    """Divide the cases of `plan` among `total` shards, by their durations in the `past` runs."""
    counts = dict.fromkeys(_places(plan), plan.repeats)
    return division(plan, counts, total, manifest, past)


def division(
    plan: Plan, counts: Mapping[Place, int], total: int, manifest: Manifest, past: Sequence[Past]
) -> ShardPlan:
    """Divide cases among `total` shards; `counts` are the trials of each."""
    stored = durations(past)
    known = {place: statistics.median(each) for place, each in stored.items()}
    usual = statistics.median(known.values()) if known else 1.0
    each_s = {place: known.get(place, usual) for place in counts}
    seconds = {place: each_s[place] * count for place, count in counts.items()}
    shards = dealt(seconds, total, noise_of(stored.values()))

    def expected(shard: Shard, places: Sequence[Place]) -> float:
        """Return the seconds that a shard takes with the best possible concurrency."""
        slots = config_of(plan.config, shard).run.concurrency
        longest = max((each_s[place] for place in places), default=0.0)
        return round(max(sum(seconds[place] for place in places) / slots, longest), 3)

    planned = (
        PlannedShard(
            trials=sum(counts[place] for place in places),
            expected_s=expected(Shard(number, total), places) if known else None,
            cases=_by_names(places),
        )
        for number, places in enumerate(shards, 1)
    )
    return ShardPlan(manifest=manifest, shards=tuple(planned))


def dealt(seconds: Mapping[Place, float], total: int, noise: float = 0.0) -> list[list[Place]]:
    """Return the cases of each shard: the longest first, each to the shard that finishes first.

    `noise` is the share by which the duration of a case varies.  Each shard's sum is compared with
    a reserve added, because one of `total` shards takes longer than expected.
    """
    reserve = noise * statistics.NormalDist().inv_cdf(1 - 1 / total) if total > 1 else 0.0
    ends = [(0.0, number) for number in range(total)]
    loads, squares = [0.0] * total, [0.0] * total
    shards: list[list[Place]] = [[] for _ in range(total)]
    # Cases of equal duration are dealt in the order of the plan.
    for place in sorted(seconds, key=seconds.__getitem__, reverse=True):
        number = ends[0][1]
        shards[number].append(place)
        loads[number] += seconds[place]
        squares[number] += seconds[place] ** 2
        heapq.heapreplace(ends, (loads[number] + reserve * math.sqrt(squares[number]), number))
    return shards


def durations(past: Sequence[Past]) -> dict[Place, list[float]]:
    """Return the mean seconds of each case's trials, run by run."""
    found: dict[Place, list[float]] = {}
    for run in past:
        taken = {  # once, however many criteria there are
            Place(agent, evalset, case): seconds
            for (agent, evalset, _), column in run.columns.groups.items()
            for case, seconds in zip(column, column.seconds.tolist(), strict=True)
            if seconds
        }
        for place, seconds in taken.items():
            found.setdefault(place, []).append(seconds)
    return found


def noise_of(stored: Iterable[Sequence[float]]) -> float:
    """Return the share by which a case's duration usually varies between runs; 0 if unknown."""
    shares = [_spread(each) for each in stored if len(each) > 1]
    return statistics.median(shares or [0.0])


def _spread(values: Sequence[float]) -> float:
    """Return the standard deviation, as a share of the mean; `statistics.stdev` is too slow."""
    mean = statistics.fmean(values)
    return math.dist(values, [mean] * len(values)) / math.sqrt(len(values) - 1) / mean


def _by_names(places: Iterable[Place]) -> dict[str, dict[str, tuple[str, ...]]]:
    found: dict[str, dict[str, list[str]]] = {}
    for agent, evalset, case in places:
        found.setdefault(agent, {}).setdefault(evalset, []).append(case)
    return {
        agent: {evalset: tuple(cases) for evalset, cases in evalsets.items()}
        for agent, evalsets in found.items()
    }


def _places(plan: Plan) -> list[Place]:
    """Return all cases."""
    return [trial.key.place for trial in replace(plan, repeats=1).trials()]


def part(plan: Plan, shard: Shard, planned: ShardPlan | None) -> Plan:
    """Return the part of `plan` that a shard runs, with its share of limits and budgets.

    Raises:
        UsageError: there are fewer calls than shards, or the plan does not assign every case once.

    """
    places = _places(plan)
    assigned = sorted(p for each in planned.shards for p in each.places) if planned else []
    whole = sorted({*places} & {*assigned} if planned and planned.redraw else places)
    if planned and assigned != whole:
        message = "the plan does not assign each case of the suite to one shard"
        raise UsageError(message, hint=planned.way_to_make)
    own = (
        frozenset(planned.shards[shard.index - 1].places)
        if planned
        else frozenset(place for place in places if _bucket(place, shard.total) == shard.index)
    )
    kept = {place[:2] for place in own}
    return replace(
        plan,
        config=config_of(plan.config, shard),
        pairs={pair: criteria for pair, criteria in plan.pairs.items() if pair in kept},
        places=own,
    )


def _bucket(place: Place, total: int) -> int:
    names = "\0".join(place).encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(names, digest_size=8).digest()
    return int.from_bytes(digest, "big") % total + 1


def config_of(config: Config, shard: Shard) -> Config:
    """Return the configuration with the shard's share of the limits for the whole suite."""
    run = config.run.model_copy(update={"concurrency": _share(config.run.concurrency, shard) or 1})
    options = config.judging.options
    update = _divided_limits(options, shard)
    if options.concurrency is not None:
        update["concurrency"] = _share(options.concurrency, shard) or 1
    judging = replace(config.judging, options=options.model_copy(update=update))
    agents = with_models(
        config.agents, lambda _, found: found.model_copy(update=_divided_limits(found, shard))
    )
    return replace(config, run=run, judging=judging, agents=agents)


def _divided_limits(options: JudgeOptions | ModelOptions, shard: Shard) -> dict[str, float | int]:
    update: dict[str, float | int] = {}
    for name in ("requests_per_minute", "tokens_per_minute", "max_cost_usd"):
        if (most := getattr(options, name)) is not None:
            update[name] = most / shard.total
    if (most := options.max_calls) is not None:
        if 0 < most < shard.total:  # a shard without any call could not measure its cases
            message = f"`max_calls: {most}` cannot be divided into {shard.total} shards"
            raise UsageError(f"{message}; use {most} or fewer")
        update["max_calls"] = _share(most, shard)
    return update


def _share(whole: int, shard: Shard) -> int:
    """Return the shard's part of an integer, so that all parts add up to it."""
    return whole // shard.total + (shard.index <= whole % shard.total)
