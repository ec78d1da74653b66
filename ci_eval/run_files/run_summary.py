"""Summary of a stored run, for a list of runs, a chart and a badge."""

import math
from collections.abc import Iterator, Mapping

from ci_eval.records.findings import Counts, GroupKey, Noted, NotedGroup
from ci_eval.records.model import Status
from ci_eval.records.results import Run, RunMeta, TrialResult
from ci_eval.run_files.score_table import Column, Columns, Past


def note(past: Past) -> Noted:
    """Return the summary of a baseline run; without judge costs."""
    return _noted(past.meta, past.columns, {})


def note_run(run: Run) -> Noted:
    """Return the summary of a run, with judge costs."""
    columns, costs = Columns(), dict[tuple[str, str, str], float]()
    for result in run.results():
        if not result.confirms:
            columns.add(result)
        for place, cost in _judge_costs(result):
            costs[place] = costs.get(place, 0.0) + cost
    return _noted(run.meta, columns, costs)


def _judge_costs(result: TrialResult) -> Iterator[tuple[tuple[str, str, str], float]]:
    key = result.key
    for score in result.scores:
        if score.judging:
            yield (key.agent, key.evalset, score.name), score.judging.cost_usd


def _noted(meta: RunMeta, columns: Columns, costs: Mapping[tuple[str, str, str], float]) -> Noted:
    return Noted(
        run_id=meta.run_id,
        created=meta.created,
        commit=meta.commit,
        branch=meta.branch,
        cases=_counts([status for _, status in columns.cases(meta.criteria)]),
        groups=tuple(
            NotedGroup(
                group=GroupKey(agent=place[0], evalset=place[1], criterion=place[2]),
                cases=_counts([cell.status(meta.criteria[place[2]]) for cell in column.values()]),
                value=_mean(column),
                cost_usd=costs.get(place),
            )
            for place, column in columns.groups.items()
        ),
    )


def _counts(statuses: list[Status]) -> Counts:
    return Counts(
        passed=statuses.count(Status.PASSED),
        failed=statuses.count(Status.FAILED),
        errors=statuses.count(Status.ERROR),
        skipped=statuses.count(Status.SKIPPED),
    )


def _mean(column: Column) -> float | None:
    values = [cell.value for cell in column.values() if cell.value is not None]
    return math.fsum(values) / len(values) if values else None
