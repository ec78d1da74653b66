"""Floors, with their uncertainty and without."""

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.slow_params import some

from ci_eval.config.config_schema import GateOptions
from ci_eval.gate import floors
from ci_eval.gate.floors import Allowance
from ci_eval.records.comparisons import GroupKey
from ci_eval.records.findings import GroupSummary, Totals
from ci_eval.stats.intervals import exact_interval

KEY = GroupKey(agent="a", evalset="e", criterion="c")
POINT = Allowance(0.02, point=True)
INTERVAL = Allowance(0.02, point=False)


def totals(passed: int, failed: int, errors: int = 0) -> Totals:
    return Totals(cases=passed + failed + errors, passed=passed, failed=failed, errors=errors)


def group(value: float | None, count: int = 10, **more: object) -> GroupSummary:
    given_ = {"group": KEY, "passed": count, "value": value, "interval": (0.0, 1.0)} | more
    return GroupSummary.model_validate(given_)


@pytest.mark.parametrize(
    ("passed", "failed", "required", "missed"),
    [
        (1, 1, 0.5, False),
        (1, 2, 0.5, True),
        # seven tenths are 0.7, though 0.7 · 10 is a little more in binary
        (7, 3, 0.7, False),
        (9, 0, 1.0, False),
        (0, 0, 1.0, False),
    ],
)
def test_a_pass_rate_is_missed_below_it_and_not_at_it(passed, failed, required, missed):
    found = floors.pass_rate(totals(passed, failed), required, POINT)

    assert found.missed is found.certain is missed


def test_what_was_not_measured_may_have_passed_or_failed():
    found = floors.pass_rate(totals(0, 1, errors=1), 0.5, POINT)
    assert (found.best, found.worst, found.open) == ("met", "missed", True)
    found = floors.pass_rate(totals(0, 2, errors=1), 0.5, POINT)
    assert (found.best, found.worst, found.open) == ("missed", "missed", False)
    found = floors.pass_rate(totals(2, 0, errors=1), 0.5, POINT)
    assert (found.best, found.worst, found.open) == ("met", "met", False)


@pytest.mark.parametrize(
    ("failed", "certain"),
    # Of ten at one half, at most one passes in 11 of 1024 samples, at most two in 56.
    [(8, False), (9, True), (10, True)],
)
def test_a_rate_that_is_missed_by_chance_perhaps_is_not_certain(failed, certain):
    found = floors.pass_rate(totals(10 - failed, failed), 0.5, INTERVAL)

    assert (found.missed, found.certain) == (True, certain)


def test_where_every_case_must_pass_one_that_fails_is_certain():
    assert floors.pass_rate(totals(999, 1), 1.0, INTERVAL).certain


def test_what_is_just_below_its_floor_does_not_look_like_it():
    gate = GateOptions(min_pass_rate=0.99951, min_score={"c": 0.8})
    [rate] = floors.of_pass_rate(totals(1999, 1), gate, POINT, tolerated=True)
    assert "(pass rate 99.950%, required 99.951%)" in rate.message
    [rate] = floors.of_pass_rate(totals(1999, 1), GateOptions(), POINT, tolerated=True)
    assert "(pass rate 99.95%, required 100.00%)" in rate.message
    [mean] = floors.of_means([group(0.79996)], gate, POINT, tolerated=True)
    assert mean.message == "c on e with a has a mean of 0.79996, required 0.8"


def test_a_mean_is_judged_as_a_share_of_its_interval():
    # 1.4 of 1 to 5 is a tenth, and 3 is a half.
    found = floors.mean(group(1.4, interval=(1.0, 5.0)), 3.0, INTERVAL)

    assert (found.missed, found.certain) == (True, True)
    assert found.interval == pytest.approx(exact_interval(1, 10, 0.02))


def test_where_lower_is_better_the_mean_must_not_be_above():
    assert floors.mean(group(0.6, better="lower"), 0.5, POINT).missed
    assert not floors.mean(group(0.5, better="lower"), 0.5, POINT).missed
    assert floors.mean(group(0.9, better="lower"), 0.5, INTERVAL).certain
    assert not floors.mean(group(0.6, better="lower"), 0.5, INTERVAL).certain


def test_a_measure_without_bounds_is_judged_as_it_was_measured():
    found = floors.mean(group(5.1, interval=None, better="lower"), 5.0, INTERVAL)

    assert (found.missed, found.certain, found.interval) == (True, True, None)


def test_of_nothing_no_mean_is_missed():
    assert not floors.mean(group(None, count=0), 0.5, POINT).missed
    assert not floors.mean(group(None, count=0), 0.5, INTERVAL).missed


def test_several_floors_share_the_rate():
    gate = GateOptions(min_score={"c": 0.5, "unused": 0.5}, min_pass_rate=0.5)

    assert Allowance.shared([], GateOptions()).rate == 0.02
    assert Allowance.shared([group(0.2)], gate).rate == 0.01
    # A minimum is judged once for each evalset and agent.
    assert Allowance.shared([group(0.2)] * 3, gate).rate == 0.005


@pytest.mark.parametrize("required", [0.05, 0.3, 0.5, 0.8, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("count", some([1, 2, 5, 10, 30, 100, 300], 5))
def test_a_suite_whose_true_rate_is_at_the_floor_is_blocked_at_most_at_the_rate(count, required):
    blocked = [
        passed
        for passed in range(count + 1)
        if _missed_for_certain(floors.pass_rate(totals(passed, count - passed), required, INTERVAL))
    ]

    assert math.fsum(_chance(passed, count, required) for passed in blocked) <= 0.02
    # The next one would be too many.
    assert math.fsum(_chance(passed, count, required) for passed in range(len(blocked) + 1)) > 0.02


@pytest.mark.parametrize(("low", "high"), [(0.0, 0.7), (0.0, 0.95), (0.2, 1.0), (0.5, 1.0)])
def test_so_is_one_whose_values_lie_between(low, high):
    for count, required in product((1, 3, 10, 30), (0.3, 0.6, 0.65, 0.9)):
        if not low < required < high:
            continue
        share = (required - low) / (high - low)
        blocked = math.fsum(
            _chance(many, count, share)
            for many in range(count + 1)
            if _missed_for_certain(
                floors.mean(
                    group((many * high + (count - many) * low) / count, count), required, INTERVAL
                )
            )
        )
        assert blocked <= 0.02


def _missed_for_certain(floor: floors.Floor) -> bool:
    return floor.missed and floor.certain


def _chance(successes: int, count: int, chance: float) -> float:
    return math.comb(count, successes) * chance**successes * (1 - chance) ** (count - successes)


@given(
    st.integers(1, 200),
    st.tuples(st.floats(0, 1), st.floats(0, 1)),
    st.floats(0, 1),
    st.sampled_from(["higher", "lower"]),
    st.sampled_from(["interval", "point"]),
)
def test_a_worse_mean_is_never_less_certainly_missed(count, values, required, better, how):
    allowed = Allowance(0.02, point=how == "point")
    good, bad = sorted(values, reverse=better == "higher")
    before = floors.mean(group(good, count, better=better), required, allowed)
    after = floors.mean(group(bad, count, better=better), required, allowed)

    assert after.missed or not before.missed
    assert after.certain or not before.certain


@given(st.integers(0, 100), st.integers(0, 100), st.floats(0, 1))
def test_one_more_case_that_fails_is_never_less_certainly_missed(passed, failed, required):
    before = floors.pass_rate(totals(passed + 1, failed), required, INTERVAL)
    after = floors.pass_rate(totals(passed, failed + 1), required, INTERVAL)

    assert after.certain or not before.certain
