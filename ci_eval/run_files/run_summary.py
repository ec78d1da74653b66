"""Summary of a stored run, for a list of runs, a chart and a badge."""

from collections.abc import Mapping

from ci_eval.records.comparisons import GroupKey
from ci_eval.records.findings import Noted, NotedGroup
from ci_eval.records.results import Run, RunMeta
from ci_eval.run_files.score_column import mean_of
from ci_eval.run_files.score_table import Columns, Past


def note(past: Past) -> Noted:
    """Return the summary of a baseline run; without judge costs."""
    return _noted(past.meta, past.columns, {})


def note_run(run: Run) -> Noted:
    """Return the summary of a run, with judge costs."""
    columns, costs = Columns(), dict[tuple[str, str, str], float]()
    for result in run.compared_trials():
        if not result.confirms:
            columns.add(result)
        key = result.key
        for score in result.scores:
            if score.judging:
                place = key.agent, key.evalset, score.name
                costs[place] = costs.get(place, 0.0) + score.judging.cost_usd
    return _noted(run.meta, columns, costs)


def _noted(meta: RunMeta, columns: Columns, costs: Mapping[tuple[str, str, str], float]) -> Noted:
    return Noted(
        run_id=meta.run_id,
        created=meta.created,
        commit=meta.commit,
        branch=meta.branch,
        cases=columns.ended(meta.criteria),
        groups=tuple(
            NotedGroup(
                group=GroupKey(agent=place[0], evalset=place[1], criterion=place[2]),
                cases=column.ended(meta.criteria[place[2]]),
                value=mean_of(column),
                cost_usd=costs.get(place),
            )
            for place, column in columns.groups.items()
        ),
        models=columns.models,
    )
