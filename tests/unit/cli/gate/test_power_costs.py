"""What a trial takes, as earlier runs measured it."""

import pytest
from support.run_language import FACTS, make_run, past

from ci_eval.cli.gate.power_costs import Cost, taken
from ci_eval.records.comparisons import GroupKey
from ci_eval.records.findings import Noted, NotedGroup
from ci_eval.records.results import JudgeUsage
from ci_eval.run.collect import collected_from

GROUP = GroupKey(agent="a", evalset="e", criterion="c")
COST = FACTS.model_copy(update={"criterion": "ci/cost_usd", "interval": None, "threshold": None})


def noted(run_id, cost):
    return Noted(
        run_id=run_id, created="", groups=(NotedGroup(group=GROUP, value=1, cost_usd=cost),)
    )


def test_what_was_not_measured_is_not_known():
    assert taken(past("x 1"), (), None, judged=True) == Cost()


def test_without_judges_they_cost_nothing():
    assert taken(past("x 1"), (), None, judged=False) == Cost(judges_usd=0.0)


def test_the_cost_of_an_agent_is_the_mean_over_all_trials():
    runs = past("x 0.01 0.03\ny 0.02", "x 0.06", facts=COST)

    assert taken(runs, (), None, judged=False).agents_usd == pytest.approx(0.03)


def test_the_nearest_run_of_which_it_is_known_tells_what_judges_cost():
    runs = past("x 1\ny 1", "x 1\ny 1", "x 1\ny 1")
    history = (noted("past2", 0.5), noted("past0", None), noted("past1", 0.1))

    assert taken(runs, history, None, judged=True).judges_usd == pytest.approx(0.05)


def observed(**usage):
    found = collected_from(make_run("x 1 1\ny 1 1"))
    found.tally.duration_s = 12.0
    found.tally.judging[GROUP] = JudgeUsage(**usage)
    return found


def test_a_named_run_tells_its_times_and_what_judges_cost():
    found = taken(past("x 1"), (), observed(calls=4, cost_usd=0.2), judged=True)

    assert (found.judges_usd, found.seconds) == (pytest.approx(0.05), 3.0)


@pytest.mark.parametrize("usage", [{"calls": 4, "unpriced": 1}, {"calls": 2, "cached": 2}])
def test_a_run_whose_judges_had_no_price_or_kept_answers_tells_nothing_of_them(usage):
    assert taken(past("x 1"), (), observed(**usage), judged=True).judges_usd is None


def test_a_cost_is_that_of_its_trials():
    cost = Cost(agents_usd=0.5, seconds=2.0).times(10)

    assert (cost.trials, cost.agents_usd, cost.judges_usd, cost.seconds) == (10, 5.0, None, 20.0)
