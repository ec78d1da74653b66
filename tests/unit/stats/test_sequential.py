"""What is spent at each look."""

from itertools import pairwise
from random import Random
from statistics import NormalDist

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_eval.stats.sequential import SPENT, levels, spending

THREE = tuple(1 / (look + 1) + 1 / 5 for look in range(3))
"""Variances of three rounds against five runs."""
ALWAYS = (1 - 1e-12, 1 - 1e-12)


@pytest.mark.parametrize(
    ("looks", "spent"),
    [(1, (1.0,)), (2, (0.1, 1.0)), (3, SPENT), (4, (1 / 16, 1 / 4, 9 / 16, 1.0))],
)
def test_all_is_spent_at_the_last_look(looks, spent):
    assert spending(looks) == pytest.approx(spent)


@given(st.integers(1, 100))
def test_ever_more_is_spent(looks):
    spent = spending(looks)

    assert len(spent) == looks
    assert all(one < two for one, two in pairwise(spent))
    assert spent[-1] == 1


def test_a_single_look_spends_everything():
    assert levels((1.0,), (1.0,), 0.02, ()) == pytest.approx((0.02,), rel=1e-3)


def test_the_first_look_spends_its_share():
    assert levels(THREE, SPENT, 0.02, ALWAYS)[0] == pytest.approx(0.002, rel=1e-3)


def test_what_is_not_looked_at_again_leaves_its_share_to_the_last_look():
    everything = levels(THREE, SPENT, 0.02, ALWAYS)
    doubtful = levels(THREE, SPENT, 0.02, (0.15, 0.05))

    assert doubtful[2] > everything[2]


@settings(max_examples=50)
@given(st.floats(0.0005, 0.1), st.floats(1.1, 3), st.integers(1, 10))
def test_a_greater_share_of_the_rate_never_makes_a_level_smaller(rate, factor, runs):
    variances = tuple(1 / (look + 1) + 1 / runs for look in range(3))
    small = levels(variances, SPENT, rate, (0.15, 0.06))
    great = levels(variances, SPENT, rate * factor, (0.15, 0.06))

    assert all(one <= two for one, two in zip(small, great, strict=True))


@pytest.mark.parametrize("rate", [0.02, 0.05])
@pytest.mark.parametrize("doubts", [ALWAYS, (0.15, 0.06)])
def test_looking_three_times_rejects_as_rarely_as_looking_once(rate, doubts):
    random, normal = Random(7), NormalDist()
    found = levels(THREE, SPENT, rate, doubts)
    tries, rejected = 40_000, 0
    for _ in range(tries):
        now = 0.0
        old = random.gauss(0, (1 / 5) ** 0.5)
        for look in range(3):
            now += random.gauss(0, 1)
            mean = now / (look + 1) - old
            p_value = normal.cdf(mean / THREE[look] ** 0.5)
            if p_value <= found[look]:
                rejected += 1
                break
            if look < 2 and p_value > doubts[look]:
                break

    allowed = 3.1 * (rate * (1 - rate) / tries) ** 0.5
    assert rejected / tries <= rate + allowed
    if doubts == ALWAYS:
        # Nothing of the rate is lost.
        assert rejected / tries >= rate - allowed
