"""Cost and duration of trials, as measured in earlier runs."""

import math
from collections.abc import Sequence

from ci_eval.records.cases import Record
from ci_eval.records.findings import Noted
from ci_eval.records.results import JudgeUsage
from ci_eval.run.collect import Collected
from ci_eval.run_files.score_table import Past

_COST, _LATENCY = "ci/cost_usd", "ci/latency_s"


class Cost(Record):
    """Cost and duration of a trial or of several; `None` if not measured."""

    trials: int = 1
    agents_usd: float | None = None
    judges_usd: float | None = None
    seconds: float | None = None
    """The total of all trials, run sequentially."""

    def times(self, trials: int) -> "Cost":
        """Return the cost of `trials` trials, if this is that of one."""
        amounts = {name: each for name, each in self if name != "trials" and each is not None}
        return Cost(trials=trials, **{name: each * trials for name, each in amounts.items()})


def taken(
    runs: Sequence[Past], history: Sequence[Noted], observed: Collected | None, *, judged: bool
) -> Cost:
    """Return the average cost and duration of a trial.

    Agents' costs and times were measured by criteria in the stored `runs`.  The cost of judges is
    in `history` or in the run `observed`, which also has the durations of trials; it is 0 if
    nothing is `judged`.
    """
    seconds = _measured(runs, _LATENCY)
    judges: float | None = None if judged else 0.0
    if observed and observed.tally.trials:
        trials = observed.tally.trials
        seconds = observed.tally.duration_s / trials if seconds is None else seconds
        usage = sum(observed.tally.judging.values(), JudgeUsage())
        # Cached answers cost nothing in that run, but would in another.
        if judged and not usage.unpriced and not usage.cached:
            judges = usage.cost_usd / trials
    if judges is None:
        judges = _noted(runs, history)
    return Cost(agents_usd=_measured(runs, _COST), judges_usd=judges, seconds=seconds)


def _measured(runs: Sequence[Past], criterion: str) -> float | None:
    """Return the mean of a criterion's values, over all cases of all runs."""
    values = [
        value
        for past in runs
        for (_, _, name), column in past.columns.groups.items()
        if past.meta.criteria[name].criterion == criterion
        for cell in column.values()
        for value in cell.observations
    ]
    return math.fsum(values) / len(values) if values else None


def _noted(runs: Sequence[Past], history: Sequence[Noted]) -> float | None:
    """Return the judges' cost per trial in the nearest run that recorded it."""
    costs = {
        run.run_id: math.fsum(group.cost_usd or 0.0 for group in run.groups)
        for run in history
        if any(group.cost_usd is not None for group in run.groups)
    }
    for past in runs:
        places = {
            (agent, evalset, case)
            for (agent, evalset, _), column in past.columns.groups.items()
            for case in column
        }
        trials = len(places) * past.meta.repeats
        if past.meta.run_id in costs and trials:
            return costs[past.meta.run_id] / trials
    return None
