"""Intervals, corrections and distributions behind a verdict.

Differences are paired: each case is compared with itself, which cancels its difficulty, and the
case is the unit of sampling (Miller, "Adding Error Bars to Evals", arXiv 2411.00640, sections
3 and 4).  Several tests are corrected together (Holm, "A simple sequentially rejective multiple
test procedure", 1979).
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

Z95 = NormalDist().inv_cdf(0.975)
"""Standard errors on each side of the mean that contain 95 % of a normal distribution."""
MAX_COUNTED = 500
"""For more events than this, the probability is bounded instead of computed."""


def mean_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % confidence interval of a mean, by Student's t; `None` for one value."""
    count = len(values)
    if count < 2:
        return None
    mean = math.fsum(values) / count
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
    half = t_quantile(0.975, count - 1) * spread / math.sqrt(count)
    return mean - half, mean + half


def wilson_interval(successes: int, count: int) -> tuple[float, float] | None:
    """Return the 95 % confidence interval of a proportion; `None` if `count` is 0.

    The score interval, which never leaves [0, 1] and is not overconfident about 10 out of 10
    (Wilson, "Probable inference, the law of succession, and statistical inference", 1927).  It
    contains the true proportion in 95 % of samples on average; `exact_interval` does so always.
    """
    if not count:
        return None
    z2 = Z95 * Z95
    middle = (successes + z2 / 2) / (count + z2)
    spread = math.sqrt(max(successes * (count - successes) / count, 0.0) + z2 / 4)
    half = Z95 * spread / (count + z2)
    return max(0.0, middle - half), min(1.0, middle + half)


def exact_interval(successes: float, count: int, rate: float) -> tuple[float, float] | None:
    """Return a confidence interval of a proportion; `None` if `count` is 0.

    Whatever the true proportion is, the probability that it lies below the interval is at most
    `rate` (0 to 0.5), and above it, too, if the trials are independent (Clopper and Pearson, "The
    use of confidence or fiducial limits illustrated in the case of the binomial", 1934).
    `successes` may be a sum of values between 0 and 1, because a sum of passes and failures with
    the same mean varies at least as much.
    """
    if not count:
        return None
    failures = count - successes
    low = _beta_quantile(rate, successes, failures + 1) if successes > 0 else 0.0
    return low, _beta_quantile(1 - rate, successes + 1, failures) if failures > 0 else 1.0


def most_probable_break(before: float, now: float) -> float:
    """Return the maximum probability that a case passes `before` times and fails `now` times.

    The maximum over its pass probability q: q^before (1 - q)^now is greatest if q is the share of
    trials that passed.
    """
    trials = before + now
    return math.pow(before / trials, before) * math.pow(now / trials, now)


def at_least(count: int, chances: Sequence[tuple[int, float]]) -> float:
    """Return the probability of at least `count` of several independent events.

    `chances` lists the number of events for each probability: a sum of binomial variables.  For
    large counts the result is Chernoff's bound, which is never too small.
    """
    if count > MAX_COUNTED:
        return _chernoff(count, chances)
    fewer = [1.0]
    for many, chance in chances:
        binomial = [_binomial(each, many, chance) for each in range(min(many + 1, count))]
        size = min(len(fewer) + len(binomial) - 1, count)
        sums = [0.0] * size
        for one, first in enumerate(fewer):
            for two, second in enumerate(binomial[: size - one]):
                sums[one + two] += first * second
        fewer = sums
    return min(max(1.0 - math.fsum(fewer[:count]), 0.0), 1.0)


def _chernoff(count: int, chances: Sequence[tuple[int, float]]) -> float:
    size = sum(many for many, _ in chances)
    mean = math.fsum(many * chance for many, chance in chances) / size
    share = count / size
    if share <= mean:
        return 1.0
    distance = share * math.log(share / mean)
    if share < 1:
        distance += (1 - share) * math.log((1 - share) / (1 - mean))
    return math.exp(-size * distance)


def _binomial(successes: int, count: int, chance: float) -> float:
    if chance <= 0 or chance >= 1:
        return float(successes == (count if chance >= 1 else 0))
    ways = math.lgamma(count + 1) - math.lgamma(successes + 1) - math.lgamma(count - successes + 1)
    return math.exp(ways + successes * math.log(chance) + (count - successes) * math.log1p(-chance))


class Judgement(NamedTuple):
    """The result of a multiple-test correction for one test."""

    level: float
    """The p-value must not exceed this."""
    rejected: bool


def holm(
    p_values: Sequence[float],
    rate: float,
    level: Callable[[float], float] = lambda share: share,
    size: float = math.inf,
) -> list[Judgement]:
    """Judge hypotheses so that the probability of rejecting a true one is at most `rate`.

    `level` converts a hypothesis's share of the rate into the p-value that rejects it; `size` is
    the effective number of independent hypotheses.
    """
    found = [Judgement(0.0, rejected=False)] * len(p_values)
    going_on = True
    bound = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if going_on:
            bound = level(rate / min(len(p_values) - rank, size))
        going_on = going_on and p_values[index] <= bound
        found[index] = Judgement(bound, going_on)
    return found


def t_cdf(t: float, freedom: int) -> float:
    """Return the probability that Student's t is at most `t`.

    By the regularised incomplete beta function (Abramowitz and Stegun, 26.7.1).
    """
    square = t * t
    if square < 1:
        # Near the middle, the tail would be the difference of nearly equal numbers.
        middle = 0.5 * _beta(square / (freedom + square), 0.5, freedom / 2)
        return 0.5 - middle if t <= 0 else 0.5 + middle
    tail = 0.5 * _beta(freedom / (freedom + square), freedom / 2, 0.5)
    return tail if t <= 0 else 1 - tail


@lru_cache(maxsize=1024)
def t_quantile(probability: float, freedom: int) -> float:
    """Return the quantile of Student's t for `probability`, at least one half."""
    low, high = 0.0, 1.0
    while t_cdf(high, freedom) < probability:
        low, high = high, high * 2
    while high - low > 1e-15 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if t_cdf(middle, freedom) < probability else (low, middle)
    return high


def _beta_quantile(probability: float, a: float, b: float) -> float:
    """Return the x for which I_x(a, b) is `probability`."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _beta(middle, a, b) < probability else (low, middle)
    return high


def _beta(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(log_front + a * math.log(x) + b * math.log1p(-x))
    # The continued fraction converges quickly only on one side of the mean.
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
