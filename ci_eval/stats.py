"""The statistics that a verdict rests on.

The test is a paired one: each case is compared with itself, which takes out how hard it is
(Miller, "Adding Error Bars to Evals", 2024, section 4).  Several tests are corrected
together (Holm, "A simple sequentially rejective multiple test procedure", 1979).
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

FEW_CASES = 3
"""Below this many pairs, cases that all changed alike prove nothing."""


class Paired(NamedTuple):
    """What paired differences say."""

    effect: float
    """Their mean."""
    interval: tuple[float, float] | None
    """Its 95 % confidence interval; `None` where one pair gives none."""
    p_value: float
    """How probable a mean as low as this, or lower, is if nothing got worse."""


def paired_test(differences: Sequence[float]) -> Paired:
    """Test whether paired differences are below zero: a one-sided paired t-test.

    Where all are the same the statistic has no spread to go by: no change is p = 1; a drop
    of all of at least `FEW_CASES` cases is p = 0; of fewer it is the greatest probability
    that a coin of any kind falls so, 1/4 for each (heads before, tails now).
    """
    count = len(differences)
    mean = math.fsum(differences) / count
    if count == 1:
        return Paired(mean, None, 0.25 if mean < 0 else 1.0)
    spread = math.sqrt(math.fsum((d - mean) ** 2 for d in differences) / (count - 1))
    error = spread / math.sqrt(count)
    if error <= abs(mean) * 1e-12:
        alike = 0.0 if count >= FEW_CASES else 0.25**count
        return Paired(mean, (mean, mean), alike if mean < 0 else 1.0)
    half = t_quantile(0.975, count - 1) * error
    return Paired(mean, (mean - half, mean + half), t_cdf(mean / error, count - 1))


def holm(p_values: Sequence[float], rate: float) -> list[bool]:
    """Say which hypotheses are rejected, so that a false one is among them at most at `rate`."""
    rejected = [False] * len(p_values)
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[index] > rate / (len(p_values) - rank):
            break
        rejected[index] = True
    return rejected


def t_cdf(t: float, freedom: int) -> float:
    """Return the probability that Student's t is at most `t`.

    By the regularised incomplete beta function (Abramowitz and Stegun, 26.7.1).
    """
    tail = 0.5 * _beta(freedom / (freedom + t * t), freedom / 2, 0.5)
    return tail if t <= 0 else 1 - tail


def t_quantile(probability: float, freedom: int) -> float:
    """Return the t below which Student's t lies with `probability`, at least one half."""
    low, high = 0.0, 1.0
    while t_cdf(high, freedom) < probability:
        low, high = high, high * 2
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if t_cdf(middle, freedom) < probability else (low, middle)
    return high


def _beta(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(log_front + a * math.log(x) + b * math.log1p(-x))
    # The continued fraction converges quickly on one side of the mean only.
    if x < (a + 1) / (a + b + 2):
        return front * _beta_fraction(x, a, b) / a
    return 1 - front * _beta_fraction(1 - x, b, a) / b


def _beta_fraction(x: float, a: float, b: float) -> float:
    """Return the continued fraction of the incomplete beta function, by Lentz's method."""
    tiny = 1e-300
    c, d = 1.0, 1 / max(1 - (a + b) * x / (a + 1), tiny)
    value = d
    for m in range(1, 500):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / ((1 + numerator * d) or tiny)
            c = (1 + numerator / c) or tiny
            value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return value
