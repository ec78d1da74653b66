"""The statistics, worked by hand and by their laws; `tests/vectors` holds them against scipy."""

import math
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_eval.stats.intervals import (
    MAX_COUNTED,
    Judgement,
    at_least,
    exact_interval,
    holm,
    mean_interval,
    most_probable_break,
    t_cdf,
    t_quantile,
    wilson_interval,
)

# Upper quantiles of Student's t as any printed table has them.
TABLE = [
    (0.95, 1, 6.313752),
    (0.975, 1, 12.706205),
    (0.975, 2, 4.302653),
    (0.99, 5, 3.364930),
    (0.975, 10, 2.228139),
    (0.95, 30, 1.697261),
    (0.975, 120, 1.979930),
]


@pytest.mark.parametrize(("probability", "freedom", "t"), TABLE)
def test_t_agrees_with_the_printed_table(probability, freedom, t):
    assert t_cdf(t, freedom) == pytest.approx(probability, abs=1e-6)
    assert t_quantile(probability, freedom) == pytest.approx(t, rel=1e-5)


@given(st.floats(-50, 50), st.integers(1, 500))
def test_t_is_symmetric_and_a_probability(t, freedom):
    assert 0 <= t_cdf(t, freedom) <= 1
    assert t_cdf(t, freedom) + t_cdf(-t, freedom) == pytest.approx(1, abs=1e-12)


def test_t_becomes_normal():
    assert t_cdf(1.5, 1_000_000) == pytest.approx(NormalDist().cdf(1.5), abs=1e-6)


def test_an_interval_worked_by_hand():
    # mean -0.2, standard deviation 0.1581, standard error 0.0707, quantile 2.776
    found = mean_interval([-0.4, -0.1, -0.3, 0.0, -0.2])

    assert found == pytest.approx((-0.3963, -0.0037), abs=1e-4)


@pytest.mark.parametrize("values", [[], [0.5]])
def test_so_few_values_have_no_interval(values):
    assert mean_interval(values) is None


def test_equal_values_have_an_interval_without_a_width():
    assert mean_interval([0.25] * 4) == (0.25, 0.25)


# --- Shares -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("successes", "count", "interval"),
    [
        # z = 1.96, z² = 3.8415: (8 + 1.9207 ∓ 1.96 √(8·2/10 + 0.9604)) / 13.8415
        (8, 10, (0.4902, 0.9433)),
        # 10 / 13.8415, and nothing above all
        (10, 10, (0.7225, 1.0)),
        (0, 10, (0.0, 0.2775)),
        (1, 1, (0.2065, 1.0)),
    ],
)
def test_an_interval_of_a_share_worked_by_hand(successes, count, interval):
    assert wilson_interval(successes, count) == pytest.approx(interval, abs=1e-4)


def test_a_share_of_nothing_has_no_interval():
    assert wilson_interval(0, 0) is None


@given(st.integers(1, 5000), st.integers(0, 5000))
def test_an_interval_of_a_share_holds_it_and_stays_between_nothing_and_all(count, successes):
    successes = min(successes, count)
    found = wilson_interval(successes, count)

    assert found is not None
    low, high = found
    # at the ends the bound is the share itself, but for the last digit
    assert 0 <= low <= successes / count + 1e-12
    assert successes / count - 1e-12 <= high <= 1


@pytest.mark.parametrize(
    ("successes", "count", "interval"),
    [
        # None of n succeeds with a probability of (1 - p)^n.
        (0, 10, (0.0, 1 - 0.02**0.1)),
        (10, 10, (0.02**0.1, 1.0)),
        (0, 1, (0.0, 0.98)),
        # One of two or none: 1 - p^2; one or both: 1 - (1 - p)^2.
        (1, 2, (1 - 0.98**0.5, 0.98**0.5)),
    ],
)
def test_an_exact_interval_worked_by_hand(successes, count, interval):
    assert exact_interval(successes, count, 0.02) == pytest.approx(interval, abs=1e-12)


def test_nothing_has_no_exact_interval():
    assert exact_interval(0, 0, 0.02) is None


@given(st.integers(2, 500), st.floats(0, 1), st.floats(0.001, 1), st.floats(1e-4, 0.3))
def test_a_lower_share_has_a_lower_interval(count, share, less, rate):
    above = exact_interval(share * count, count, rate)
    below = exact_interval(share * (1 - less) * count, count, rate)

    assert above
    assert below
    assert below[0] <= above[0] + 1e-12
    assert below[1] <= above[1] + 1e-12


@given(st.integers(1, 500), st.floats(0, 1))
def test_more_cases_never_raise_what_a_share_is_at_most(count, share):
    fewer = exact_interval(share * count, count, 0.02)
    more = exact_interval(share * (count + 1), count + 1, 0.02)

    assert fewer
    assert more
    assert more[1] <= fewer[1] + 1e-12


# --- Breaks -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "now", "chance"),
    [
        # one half each
        (1, 1, 1 / 4),
        (3, 3, 1 / 64),
        # (3/4)³ · 1/4
        (3, 1, 27 / 256),
        # (15/18)¹⁵ · (3/18)³
        (15, 3, 0.000300488),
    ],
)
def test_the_chance_of_a_break_worked_by_hand(before, now, chance):
    assert most_probable_break(before, now) == pytest.approx(chance, rel=1e-5)


@given(st.integers(1, 60), st.integers(1, 60), st.floats(0, 1))
def test_no_case_breaks_more_often_than_that(before, now, solid):
    assert solid**before * (1 - solid) ** now <= most_probable_break(before, now) * (1 + 1e-9)


@given(st.integers(1, 60), st.integers(1, 60))
def test_each_trial_that_fails_makes_chance_less_probable(before, now):
    assert most_probable_break(before, now + 1) < most_probable_break(before, now)


def test_things_that_happen_by_themselves_are_counted():
    # of two coins and a die that shows a six: 1/4 · 1/6, and all but nothing of all three
    chances = [(2, 0.5), (1, 1 / 6)]

    assert at_least(3, chances) == pytest.approx(1 / 24)
    assert at_least(1, chances) == pytest.approx(1 - 1 / 4 * 5 / 6)
    assert at_least(0, chances) == 1
    assert at_least(4, chances) == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize(("chance", "expected"), [(0.0, 0.0), (1.0, 1.0)])
def test_what_never_and_what_always_happens_is_counted(chance, expected):
    assert at_least(3, [(5, chance)]) == expected


chances_of = st.lists(st.tuples(st.integers(1, 30), st.floats(0.01, 0.99)), min_size=1, max_size=4)


@given(chances_of, st.integers(1, 40))
def test_more_are_never_more_probable(chances, count):
    assert at_least(count + 1, chances) <= at_least(count, chances) + 1e-12


@given(st.integers(MAX_COUNTED + 1, 2000), st.floats(0.1, 0.6))
def test_the_bound_for_many_is_never_too_small(count, chance):
    # The normal tail is smaller than the binomial one by less than this.
    size, spread = 2000, math.sqrt(2000 * chance * (1 - chance))
    normal = 1 - NormalDist(size * chance, spread).cdf(count + 0.5)

    assert at_least(count, [(size, chance)]) >= min(normal, 1.0) * 0.5


def test_of_so_many_as_are_to_be_expected_nothing_is_said():
    assert at_least(1000, [(2000, 0.5)]) == 1
    assert at_least(2000, [(2000, 0.5)]) == pytest.approx(0.5**2000, abs=1e-300)


# --- Several tests ----------------------------------------------------------------------------


def rejected(found: list[Judgement]) -> list[bool]:
    return [each.rejected for each in found]


def test_holm_stops_at_the_first_that_is_not_small_enough():
    # a third of 0.05 allows 0.01, a half 0.02; all of it does not allow 0.06
    assert rejected(holm([0.06, 0.01, 0.02], 0.05)) == [False, True, True]
    # a third does not allow 0.02, which alone would be enough
    assert rejected(holm([0.02, 0.04, 0.03], 0.05)) == [False, False, False]
    assert holm([], 0.05) == []


def test_what_is_not_reached_any_more_is_held_against_the_level_that_stopped():
    first, second = holm([0.04, 0.03], 0.05)

    assert (first.level, second.level) == (0.025, 0.025)


def test_related_tests_share_the_rate_among_as_many_as_they_are_worth():
    # three tests that are worth one and a half: 0.05 / 1.5, then 0.05 / 1.5, then 0.05
    found = holm([0.03, 0.033, 0.05], 0.05, size=1.5)

    assert rejected(found) == [True, True, True]
    assert [each.level for each in found] == pytest.approx([0.05 / 1.5, 0.05 / 1.5, 0.05])


def test_a_level_may_spend_only_a_part_of_the_share():
    found = holm([0.01, 0.02], 0.05, level=lambda share: share / 10)

    assert rejected(found) == [False, False]
    assert found[0].level == 0.0025


p_values = st.lists(st.floats(0, 1), min_size=1, max_size=8)


@given(p_values, st.integers(0, 7), st.floats(0, 1), st.floats(1, 9))
def test_a_smaller_p_value_never_takes_a_rejection_back(values, at, factor, size):
    smaller = [*values]
    smaller[at % len(values)] *= factor
    before = rejected(holm(values, 0.1, size=size))
    after = rejected(holm(smaller, 0.1, size=size))

    assert all(now or not was for was, now in zip(before, after, strict=True))


@given(p_values, st.randoms(use_true_random=False))
def test_the_order_of_tests_changes_nothing(values, random):
    order = [*range(len(values))]
    random.shuffle(order)
    shuffled = holm([values[each] for each in order], 0.1)
    straight = holm(values, 0.1)

    assert [each.rejected for each in shuffled] == [straight[each].rejected for each in order]
