"""The statistics beside those of scipy and statsmodels, wherever these have the same."""

import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.slow_imports import Later

from ci_eval.stats.intervals import (
    at_least,
    exact_interval,
    holm,
    mean_interval,
    most_probable_break,
    t_cdf,
    t_quantile,
    wilson_interval,
)
from ci_eval.stats.permutation import Sample, Samples, permute
from ci_eval.stats.sequential import SPENT, levels

optimize = Later("scipy.optimize")
stats = Later("scipy.stats")
contingency_tables = Later("statsmodels.stats.contingency_tables")
multitest = Later("statsmodels.stats.multitest")
proportion = Later("statsmodels.stats.proportion")

pytestmark = pytest.mark.slow  # scipy and statsmodels take longer than all of it

CLOSE = {"rel": 1e-9, "abs": 1e-12}


@pytest.mark.parametrize("freedom", [1, 2, 3, 5, 10, 29, 99, 999, 99_999])
@pytest.mark.parametrize("probability", [0.5001, 0.6, 0.9, 0.95, 0.975, 0.99, 0.9999])
def test_quantiles_of_t(probability, freedom):
    assert t_quantile(probability, freedom) == pytest.approx(
        stats.t.ppf(probability, freedom), **CLOSE
    )


@given(st.floats(-40, 40), st.integers(1, 2000))
def test_the_distribution_of_t(t, freedom):
    assert t_cdf(t, freedom) == pytest.approx(stats.t.cdf(t, freedom), **CLOSE)


@given(st.lists(st.floats(-1, 1).map(lambda each: round(each, 6)), min_size=2, max_size=60))
def test_the_interval_of_a_mean(values):
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95) if _varied(values) else None

    if expected:
        assert mean_interval(values) == pytest.approx((expected.low, expected.high), **CLOSE)


def _varied(values: list[float]) -> bool:
    return len({*values}) > 1


@given(st.integers(1, 5000), st.integers(0, 5000), st.sampled_from([0.2, 0.05, 0.01, 0.0004]))
def test_the_interval_of_a_share(count, successes, alpha):
    successes = min(count, successes)
    wilson = proportion.proportion_confint(successes, count, alpha=0.05, method="wilson")
    exact = proportion.proportion_confint(successes, count, alpha=alpha, method="beta")

    assert wilson_interval(successes, count) == pytest.approx(wilson, **CLOSE)
    assert exact_interval(successes, count, alpha / 2) == pytest.approx(exact, **CLOSE)


@settings(max_examples=25)
@given(
    st.lists(st.floats(0, 1).map(lambda each: each**4), min_size=1, max_size=12),
    st.floats(0.001, 0.2),
)
def test_holm(p_values, rate):
    expected = multitest.multipletests(p_values, alpha=rate, method="holm")[0]

    assert [each.rejected for each in holm(p_values, rate)] == [*map(bool, expected)]


@given(st.integers(1, 400), st.integers(0, 400), st.floats(0.001, 0.999))
def test_the_tail_of_a_binomial_number(size, count, chance):
    count = min(count, size)

    assert at_least(count, [(size, chance)]) == pytest.approx(
        stats.binom.sf(count - 1, size, chance), rel=1e-9, abs=1e-11
    )


@given(st.integers(501, 3000), st.floats(0.05, 0.5))
def test_the_tail_of_many_is_bounded(count, chance):
    size = 3000

    assert at_least(count, [(size, chance)]) >= stats.binom.sf(count - 1, size, chance) - 1e-15


@pytest.mark.parametrize(("one", "two"), [((4, 0.3), (6, 0.7)), ((50, 0.01), (3, 0.9))])
def test_the_tail_of_a_sum_of_two_binomial_numbers(one, two):
    for count in range(one[0] + two[0] + 1):
        expected = math.fsum(
            stats.binom.pmf(first, *one) * stats.binom.sf(count - first - 1, *two)
            for first in range(one[0] + 1)
        )
        assert at_least(count, [one, two]) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("before", [1, 2, 5, 15, 50])
@pytest.mark.parametrize("now", [1, 3, 9, 53])
def test_the_greatest_chance_of_a_break(before, now):
    found = optimize.minimize_scalar(
        lambda q: -(before * math.log(q) + now * math.log1p(-q)),
        bounds=(1e-9, 1 - 1e-9),
        method="bounded",
        options={"xatol": 1e-12},
    )

    assert most_probable_break(before, now) == pytest.approx(math.exp(-found.fun), rel=1e-9)


# --- Permutations -----------------------------------------------------------------------------

score = st.sampled_from([0.0, 0.25, 0.3, 0.5, 1.0])


def permuted(pairs: list[tuple[float, float]]) -> tuple[float, float]:
    """Return both p-values of pairs of a new and an old value."""
    samples = ((f"{n:02}", Sample((new,), (old,))) for n, (new, old) in enumerate(pairs))
    (found,) = permute([Samples.of((), samples)], draws=99)
    assert found.complete
    return found.lower, found.upper


def mean_difference(one, two, axis):
    """Return it without the last digits: scipy takes no two numbers near 0 for the same."""
    return (one.mean(axis=axis) - two.mean(axis=axis)).round(9)


@settings(max_examples=40)
@given(st.lists(st.tuples(score, score), min_size=2, max_size=9))
@example([(0.0, 0.3), (0.5, 0.0), (0.5, 0.0), (0.5, 1.0), (0.3, 0.5)])
def test_pairs_are_permuted_exactly(pairs):
    new, old = zip(*pairs, strict=True)

    for found, alternative in zip(permuted(pairs), ("less", "greater"), strict=True):
        expected = stats.permutation_test(
            (new, old),
            mean_difference,
            permutation_type="samples",
            alternative=alternative,
            n_resamples=10**6,
        )
        assert found == pytest.approx(expected.pvalue, **CLOSE)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=14))
def test_of_passes_and_failures_the_permutation_is_the_exact_test_of_mcnemar(pairs):
    broken = sum(old and not new for new, old in pairs)
    mended = sum(new and not old for new, old in pairs)
    found, _ = permuted([(float(new), float(old)) for new, old in pairs])

    assert found == pytest.approx(stats.binom.cdf(mended, broken + mended, 0.5), **CLOSE)
    if broken > mended:
        # theirs has two sides
        both = contingency_tables.mcnemar([[0, broken], [mended, 0]], exact=True).pvalue
        assert found == pytest.approx(both / 2, **CLOSE)


@settings(max_examples=30)
@given(st.lists(score, min_size=2, max_size=4), st.lists(score, min_size=2, max_size=6))
@example([0.25, 0.3, 0.3], [0.25, 0.3, 0.3])
def test_the_runs_of_one_case_are_permuted_as_two_independent_samples(new, old):
    sample = Sample(tuple(new), tuple(old))
    (found,) = permute([Samples.of((), [("x", sample)])], draws=99)
    expected = stats.permutation_test(
        (new, old),
        mean_difference,
        permutation_type="independent",
        alternative="less",
        n_resamples=10**6,
        vectorized=True,
    )

    assert found.lower == pytest.approx(expected.pvalue, **CLOSE)


# --- Several looks ----------------------------------------------------------------------------

NO_DOUBT = 1 - 1e-12
"""Whatever was not rejected is looked at again."""


@pytest.mark.parametrize("rate", [0.2, 0.05, 0.019, 0.00475])
@pytest.mark.parametrize("runs", [1, 5])
def test_what_is_spent_at_each_look_is_what_normal_numbers_spend(rate, runs):
    variances = tuple(1 / (look + 1) + 1 / runs for look in range(3))
    bounds = stats.norm.ppf(levels(variances, SPENT, rate, (NO_DOUBT, NO_DOUBT)))
    times = [1 / each for each in variances]
    related = [[math.sqrt(min(a, b) / max(a, b)) for b in times] for a in times]
    for looks, share in enumerate(SPENT, 1):
        # All of them stay above their bounds; the normal distribution is symmetric.
        kept = stats.multivariate_normal.cdf(
            -bounds[:looks],
            mean=[0.0] * looks,
            cov=[row[:looks] for row in related[:looks]],
            maxpts=2_000_000,
            abseps=1e-9,
            releps=1e-9,
        )
        assert 1 - kept == pytest.approx(share * rate, rel=0.005)
