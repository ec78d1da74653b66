"""How many independent tests several related ones are worth.

Criteria that fail together are nearly one test, and a correction that takes them for independent
wastes some of the rate.  How much they have in common is read from the runs of the baseline alone,
so what a change does moves no bound.  Means are nearly normal; what has to be held down is the
smallest p-value of normal numbers that are related in the same way (Hothorn, Bretz and Westfall,
"Simultaneous inference in general parametric models", 2008).
"""

from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING

from ci_eval.permuting import Place, Sample

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    Floats = NDArray[float64]

MAX_GROUPS = 30
"""More tests than these are taken for independent: to draw them would take too long."""
_DRAWS = 100_000
_SEED = 20_241_102


def effective_size(
    groups: Sequence[Mapping[Place, Sample]], together: Sequence[int], rate: float
) -> float:
    """Return how many independent tests at `rate` the tests of `groups` are worth.

    `together` are the numbers of those whose mean is a test of its own.
    """
    size = len(groups) + bool(together)
    if size == 1 or len(groups) > MAX_GROUPS:
        return size
    import numpy as np

    covariance = _covariance(groups)
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
    # What never varied says nothing of what it has in common with others.
    worth = rate / level + (size - int(related.sum()))
    return min(max(worth, 1.0), size)


def _covariance(groups: Sequence[Mapping[Place, Sample]]) -> "Floats":
    """Return how the means of the groups vary together from run to run of the baseline."""
    import numpy as np

    found = np.zeros((len(groups), len(groups)))
    deviations = [
        {place: _deviations(each.old) / len(group) for place, each in group.items()}
        for group in groups
    ]
    for one, first in enumerate(deviations):
        for two, second in enumerate(deviations[: one + 1]):
            found[one, two] = found[two, one] = sum(
                float(values @ second[place])
                for place, values in first.items()
                if place in second and len(second[place]) == len(values)
            )
    return found


def _deviations(values: Sequence[float]) -> "Floats":
    import numpy as np

    found = np.array(values)
    # An unbiased share of the variance, so that cases with many runs count no more than others.
    return (found - found.mean()) / np.sqrt(max(len(found) - 1, 1))
