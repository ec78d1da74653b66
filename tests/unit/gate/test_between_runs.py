"""What days add to the means of runs, and changes of level among stored runs."""

from random import Random

import pytest
from support.run_language import FACTS, columns, meta, once, past

from ci_eval.gate.between_runs import PRIOR_RUNS, PRIOR_SHARE, between_runs, newest_level, with_days
from ci_eval.gate.compare import compare
from ci_eval.gate.pairing import Group, groups_of, pool
from ci_eval.records.results import CriterionFacts

CASES = 100


def group(now: str, *before: str, facts: CriterionFacts = FACTS) -> Group:
    run, values = meta(facts=facts), columns(now, facts)
    pooled = pool(run, values, past(*before, facts=facts))
    (one,) = groups_of(run, values, pooled, once().max_drop, {})
    return one


def text(values: list[float]) -> str:
    return "\n".join(f"n{n} {value}" for n, value in enumerate(values))


def run_of(share: float, *, seed: int = 1, cases: int = CASES) -> str:
    """A run in which this share of the cases passes, not the same for each seed."""
    passing = round(share * cases)
    values = [1.0] * passing + [0.0] * (cases - passing)
    Random(seed).shuffle(values)
    return text(values)


def test_of_a_single_stored_run_only_the_prior_is_known():
    days = between_runs(group(run_of(0.8), run_of(0.8, seed=2)))

    # A trial that passes 80 % varies by 0.4.
    assert days.day == pytest.approx(PRIOR_SHARE * 0.4)
    assert (days.runs, days.freedom) == (1, PRIOR_RUNS)
    assert days.spread == pytest.approx(days.day * 2**0.5)


def test_runs_that_differ_by_more_than_their_cases_do_raise_the_estimate():
    alike = [run_of(0.8, seed=n) for n in range(5)]
    swinging = [run_of(0.8 + 0.1 * (-1) ** n, seed=n) for n in range(5)]
    steady, moved = (between_runs(group(run_of(0.8), *each)) for each in (alike, swinging))

    assert steady.day < PRIOR_SHARE * 0.4 < moved.day
    assert steady.freedom == moved.freedom == PRIOR_RUNS + 4


def test_an_agent_that_never_varied_has_the_same_days():
    before = run_of(0.8, seed=1)

    assert between_runs(group(run_of(0.8), before, before)).day == 0
    assert between_runs(group(text([1.0] * 9), text([1.0] * 9))).day == 0


def test_of_an_unbounded_measure_nothing_is_assumed():
    facts = FACTS.model_copy(update={"interval": None, "threshold": None, "better": "lower"})

    assert between_runs(group(text([3.0] * 9), text([2.0] * 9), facts=facts)).day == 0


def test_a_drop_that_may_be_the_day_is_no_regression():
    before = [run_of(level, seed=n) for n, level in enumerate((0.8, 0.96, 0.64, 0.96, 0.64))]
    alike = [run_of(0.8, seed=n) for n in range(5)]
    run, now = meta(), columns(run_of(0.66, seed=9))
    (moved,) = compare(run, now, past(*before), once()).deltas
    (steady,) = compare(run, now, past(*alike), once()).deltas

    assert steady.p_value <= steady.level < moved.p_value
    assert moved.interval[0] < steady.interval[0] < steady.interval[1] < moved.interval[1]


def test_an_interval_holds_what_a_day_adds():
    one = group(run_of(0.8), run_of(0.8, seed=2))
    low, high = one.interval
    wide_low, wide_high = with_days(one)

    assert wide_low < low < high < wide_high
    assert wide_low + wide_high == pytest.approx(low + high)
    assert with_days(group("x 1", "x 1")) is None


@pytest.mark.parametrize("change", [-0.2, 0.2])
def test_runs_before_a_change_of_level_are_no_history(change):
    nearest = [run_of(0.7, seed=n) for n in range(2)]
    earlier = [run_of(0.7 - change, seed=n) for n in range(2, 5)]
    one = group(run_of(0.7, seed=9), *nearest, *earlier)

    assert {len(cell.units) for cell in one.before.values()} == {5}
    assert {len(cell.units) for cell in newest_level(one).before.values()} == {2}


def test_runs_of_one_level_are_all_history():
    one = group(run_of(0.8), *(run_of(0.8 + 0.02 * (-1) ** n, seed=n) for n in range(5)))

    assert newest_level(one) is one
    assert newest_level(group("x 1", "x 1")).before["x"].units == ((1.0,),)
