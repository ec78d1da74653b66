"""Permutations of runs within cases: exact, monotone, and at the rate that they promise."""

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_eval.stats.permutation import EXACT, MAX_ROWS, Permuted, Sample, Samples, mean_of
from ci_eval.stats.permutation import permute as permute_samples

Group = dict[str, Sample]


def pairs(*values: tuple[float, float]) -> Group:
    return {f"{n:04}": Sample((new,), (old,)) for n, (new, old) in enumerate(values)}


def permute(groups: list[Group], *, draws: int) -> list[Permuted]:
    return permute_samples([Samples.of((), each.items()) for each in groups], draws=draws)


def permuted(group: Group, draws: int = 999) -> Permuted:
    (found,) = permute([group], draws=draws)
    return found


def test_what_stands_out_of_n_exchanges_has_the_p_value_1_of_n():
    # Each of six cases dropped: the other 63 ways to exchange new and old are higher.
    found = permuted(pairs(*[(0.5 - n / 100, 0.8) for n in range(6)]))

    assert (found.lower, found.upper) == (1 / 64, 1.0)
    assert found.observed == pytest.approx(-0.325)


def test_one_new_run_of_four_is_the_lowest_by_chance_in_a_quarter():
    assert permuted({"x": Sample((0.1,), (0.5, 0.6, 0.7))}).lower == 1 / 4
    assert permuted({"x": Sample((0.5,), (0.5, 0.5, 0.7))}).lower == 3 / 4


def test_equal_values_are_no_change():
    found = permuted(pairs((0.1, 0.1), (0.7, 0.7)))

    assert (found.observed, found.lower, found.upper) == (0, 1, 1)


def test_where_no_run_differs_nothing_is_drawn():
    steady, other = pairs((0.1, 0.1), (0.7, 0.7)), pairs((1.0, 1.0))
    found = permute([steady, other], draws=999)

    assert [mean_of(found)] * 2 == found
    assert {(each.observed, each.lower, each.upper) for each in found} == {(0, 1, 1)}


def test_differences_that_are_equal_but_for_the_last_digit_are_equal():
    # 0.1 + 0.2 is not 0.3 in binary, and is counted as if it were.
    assert permuted(pairs((0.0, 0.1), (0.0, 0.2), (0.3, 0.0))).lower == 5 / 8


def test_so_many_exchanges_as_can_be_counted_are_counted():
    few, many = pairs(*[(0.0, 1.0)] * 16), pairs(*[(0.0, 1.0)] * 17)

    assert permuted(few).complete
    assert len(permuted(few).others) == EXACT
    assert not permuted(many).complete
    # What was observed is one of them, so that nothing is ever impossible.
    assert permuted(many).lower == 1 / 1000


def test_the_same_exchanges_are_drawn_each_time_whatever_the_order_of_cases():
    group = pairs(*[(n % 3 / 2, n % 5 / 4) for n in range(40)])
    backwards = dict(reversed(group.items()))

    assert permuted(group).lower == permuted(group).lower == permuted(backwards).lower


def test_drawn_exchanges_tell_what_counted_ones_tell():
    values = [(0.4, 0.5), (0.6, 0.5), (0.2, 0.5), (0.5, 0.6)] * 4
    counted = permuted(pairs(*values))
    # One more case without a difference makes them too many to count, and changes nothing.
    drawn = permuted(pairs(*values, (0.5, 0.5)), draws=99_999)

    assert counted.complete
    assert not drawn.complete
    assert drawn.lower == pytest.approx(counted.lower, abs=0.004)


def test_a_case_is_exchanged_in_the_same_way_under_all_criteria():
    down = pairs(*[(0.0, 1.0)] * 6)
    up = pairs(*[(1.0, 0.0)] * 6)
    alike, opposed = permute([down, down], draws=9), permute([down, up], draws=9)

    assert mean_of(alike).lower == alike[0].lower == 1 / 64
    # Whatever one gains the other loses.
    assert mean_of(opposed).lower == 1


def test_a_case_that_one_criterion_lacks_is_exchanged_under_the_others():
    long = pairs(*[(0.0, 1.0)] * 6)
    short = {place: long[place] for place in [*long][:4]}
    first, second = permute([long, short], draws=9)

    assert first.lower == 1 / 64
    # Four of the cases decide; each of their sixteen ways stands there four times.
    assert (second.lower, second.observed) == (1 / 16, -1)


def test_criteria_with_other_numbers_of_runs_are_drawn():
    one = {"x": Sample((0.0,), (1.0,))}
    three = {"x": Sample((0.0,), (1.0, 1.0, 1.0))}
    first, second = permute([one, three], draws=9_999)

    assert not first.complete
    assert first.lower == pytest.approx(1 / 2, abs=0.02)
    assert second.lower == pytest.approx(1 / 4, abs=0.02)


def test_a_case_with_more_ways_than_are_tried_keeps_a_p_value():
    found = permuted({"x": Sample((0.0,) * 8, tuple(0.5 + n / 100 for n in range(8)))})

    # 16 over 8 are 12870 ways, of which 1023 are tried beside the one that was observed.
    assert len(found.others) == 1024
    assert found.lower == 1 / 1024


value = st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0])
samples = st.tuples(
    st.lists(value, min_size=1, max_size=3), st.lists(value, min_size=1, max_size=4)
)


@pytest.mark.slow
@settings(max_examples=60)
@given(
    st.one_of(
        st.lists(samples, min_size=1, max_size=5), st.lists(samples, min_size=30, max_size=40)
    ),
    st.integers(0, 99),
    st.floats(0.001, 1),
)
def test_a_value_that_gets_worse_never_makes_a_drop_less_significant(cases, at, less):
    group = {f"{n}": Sample(tuple(a), tuple(b)) for n, (a, b) in enumerate(cases)}
    place = [*group][at % len(group)]
    first, *others = group[place].new
    lower = group | {place: group[place]._replace(new=(first - less, *others))}
    before, after = permuted(group, 199), permuted(lower, 199)

    assert after.lower <= before.lower
    assert after.upper >= before.upper


def test_of_very_many_cases_some_are_exchanged_together():
    count = MAX_ROWS + 200
    # Every case dropped by as much: rows tell it as cases would.
    found = permuted(pairs(*[(0.4, 0.5)] * count), draws=999)

    assert found.observed == pytest.approx(-0.1)
    assert found.lower == 1 / 1000
    assert found.upper == 1


# --- The rate, by simulation ------------------------------------------------------------------

Draw = Callable[[Random], float]


def skewed(random: Random) -> float:
    """Mostly near nothing, and sometimes all."""
    return random.random() ** 8


def lumpy(random: Random) -> float:
    """Nothing, all, or a half, rarely anything between."""
    return random.choice([0.0, 0.0, 0.5, 1.0, random.random()])


def heavy(random: Random) -> float:
    """Without a mean, even."""
    return random.paretovariate(0.9)


@pytest.mark.parametrize("draw", [skewed, lumpy, heavy])
@pytest.mark.parametrize(("new", "old"), [(1, 1), (1, 5), (3, 2)])
def test_where_nothing_changed_the_p_value_is_small_as_rarely_as_it_says(draw: Draw, new, old):
    random = Random(f"{draw.__name__}{new}{old}")
    tries, rate = 600, 0.05
    small = 0
    for _ in range(tries):
        group = {}
        for n in range(8 if old == 1 else 4):
            # Cases differ, and their runs do not.
            level = draw(random)
            runs = [level + draw(random) for _ in range(new + old)]
            group[f"{n}"] = Sample(tuple(runs[:new]), tuple(runs[new:]))
        small += permuted(group, 199).lower <= rate

    # More than three standard deviations above the rate: less than once in a thousand.
    assert small / tries <= rate + 3.1 * (rate * (1 - rate) / tries) ** 0.5


@pytest.mark.slow
def test_cases_that_are_put_together_keep_the_rate_too():
    random = Random(5)
    tries, rate = 150, 0.1
    small = 0
    for _ in range(tries):
        group = pairs(*[(skewed(random), skewed(random)) for _ in range(MAX_ROWS + 100)])
        small += permuted(group, 99).lower <= rate

    assert small / tries <= rate + 3.1 * (rate * (1 - rate) / tries) ** 0.5
    # It is no test that never rejects.
    assert small > 0
