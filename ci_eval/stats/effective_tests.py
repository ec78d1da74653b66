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

from ci_eval.stats.permutation import Place, Sample

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
    steady = all(len({*each.old}) < 2 for group in groups for each in group.values())
    if size == 1 or len(groups) > MAX_GROUPS or steady:
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
    deviations = [_deviations(group) for group in groups]
    for one, first in enumerate(deviations):
        for two, second in enumerate(deviations[: one + 1]):
            # Runs are told apart by their place: there must be as many of a case.
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


def _deviations(group: Mapping[Place, Sample]) -> "dict[Place, Floats]":
    """Return how far each run is from the mean of its case, as it counts for the mean of all."""
    import numpy as np

    kinds: dict[int, dict[Place, tuple[float, ...]]] = {}
    for place, sample in group.items():
        kinds.setdefault(len(sample.old), {})[place] = sample.old
    found: dict[Place, Floats] = {}
    for runs, kept in kinds.items():
        values = np.array([*kept.values()])
        values -= values.mean(axis=1, keepdims=True)
        # An unbiased share of the variance, so that cases with many runs count no more than others.
        values /= len(group) * max(runs - 1, 1) ** 0.5
        found |= dict(zip(kept, values, strict=True))
    return found
