"""Effective number of independent tests among correlated ones.

Criteria that fail together are nearly one test, and a correction that assumes independence wastes
part of the error rate.  The correlation is estimated from the baseline runs alone, so that a change
cannot affect it.  Means are nearly normal; the bound is on the smallest p-value of correlated
normal variables (Hothorn, Bretz and Westfall, "Simultaneous inference in general parametric
models", 2008).
"""

from collections.abc import Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING

from ci_eval.stats.permutation import Place, Samples

if TYPE_CHECKING:
    from ci_eval.stats.permutation import Floats

MAX_GROUPS = 30
"""If there are more tests, they are treated as independent: simulation would take too long."""
_DRAWS = 100_000
_SEED = 20_241_102


def effective_size(
    groups: Sequence[Samples],
    together: Sequence[int],
    rate: float,
    days: Sequence[tuple[str, float]] = (),
) -> float:
    """Return the effective number of independent tests at `rate` among those of `groups`.

    `together` has the indices of the groups whose mean is a test of its own.  `days` has, for each
    group, its agent and the standard deviation that a day adds to the mean of a run; a day moves
    all criteria of an agent alike.
    """
    size = len(groups) + bool(together)
    if size == 1 or len(groups) > MAX_GROUPS:
        return size
    deviations = [_deviations(group) for group in groups]
    if not any(deviations):
        return size
    import numpy as np

    covariance = _covariance(deviations)
    for one, (agent, spread) in enumerate(days):
        for two, (other, beside) in enumerate(days):
            covariance[one, two] += spread * beside * (agent == other)
    weights = np.eye(len(groups))
    if together:
        mean = [float(number in together) for number in range(len(groups))]
        weights = np.vstack([weights, mean])
    values, vectors = np.linalg.eigh(covariance)
    factor = weights @ vectors * np.sqrt(np.clip(values, 0.0, None))
    spread = np.sqrt((factor * factor).sum(axis=1, keepdims=True))
    related = spread[:, 0] > 0
    if not related.any():
        return size
    factor = factor[related] / spread[related]
    drawn = np.random.default_rng(_SEED).standard_normal((_DRAWS, factor.shape[1]))
    lowest = (drawn @ factor.T).min(axis=1)
    level = NormalDist().cdf(float(np.quantile(lowest, rate)))
    # Without variance, the correlation with other tests is unknown.
    worth = rate / level + (size - int(related.sum()))
    return min(max(worth, 1.0), size)


def _covariance(deviations: "Sequence[dict[Place, Floats]]") -> "Floats":
    """Return the covariance of the groups' means over the runs of the baseline."""
    import numpy as np

    found = np.zeros((len(deviations), len(deviations)))
    for one, first in enumerate(deviations):
        for two, second in enumerate(deviations[: one + 1]):
            # Runs are matched by position, so a case needs the same number of them.
            common = [
                place
                for place, runs in first.items()
                if place in second and len(second[place]) == len(runs)
            ]
            if common:
                here = np.concatenate([first[place] for place in common])
                there = np.concatenate([second[place] for place in common])
                found[one, two] = found[two, one] = here @ there
    return found


def _deviations(group: Samples) -> "dict[Place, Floats]":
    """Return each run's deviation from the mean of its case, weighted as in the overall mean.

    Cases whose runs do not differ are left out.
    """
    found: dict[Place, Floats] = {}
    for (new, runs), (cases, values) in group.tables.items():
        old = values[:, new:]
        (varied,) = (old != old[:, :1]).any(axis=1).nonzero()
        deviations = old[varied] - old[varied].mean(axis=1, keepdims=True)
        # An unbiased share of the variance, so that cases with many runs do not count more.
        deviations /= len(group) * max(runs - 1, 1) ** 0.5
        places = ((*group.scope, cases[number]) for number in varied.tolist())
        found |= zip(places, deviations, strict=True)
    return found
