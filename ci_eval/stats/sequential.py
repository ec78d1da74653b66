"""Rejection levels for several looks at the data, within one error rate.

A look that does not decide may be followed by more repeats and another look.  The error rate is
spent gradually (Lan and DeMets, "Discrete sequential boundaries for clinical trials", 1983); a
hypothesis that is no longer in doubt is not tested again, which leaves its unspent rate to the
others.  Estimates at several looks behave like a Brownian motion at times equal to their
precisions; its density is computed from look to look (Armitage, McPherson and Rowe, 1969).
"""

import math
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ci_eval.stats.permutation import Floats

SPENT = (0.1, 0.3, 1.0)
"""Cumulative share of the rate that is spent by each of three looks."""
_REACH = 8.0
_POINTS = 1601


def spending(looks: int) -> tuple[float, ...]:
    """Return the cumulative share of the rate that is spent by each of `looks` looks."""
    if looks <= len(SPENT):
        # With fewer looks, the last one spends the rest.
        return (*SPENT[: looks - 1], 1.0)
    return tuple(((look + 1) / looks) ** 2 for look in range(looks))


@lru_cache(maxsize=256)
def levels(
    variances: tuple[float, ...], spent: tuple[float, ...], rate: float, doubts: tuple[float, ...]
) -> tuple[float, ...]:
    """Return the p-value that rejects at each look.

    `variances` are those of the estimate at each look, in any unit; `spent` is the cumulative share
    of `rate`; `doubts` is the p-value up to which another look follows.
    """
    import numpy as np

    normal = NormalDist()
    times = [variances[-1] / each for each in variances]
    grid = np.linspace(-_REACH, _REACH, _POINTS)
    width = grid[1] - grid[0]
    found: list[float] = []
    density: Floats | None = None
    used = 0.0
    for look, time in enumerate(times):
        if density is None:
            here = _normal(grid, time)
        else:
            here = np.convolve(density, _normal(grid, time - times[look - 1]), "same") * width
        share = rate * spent[look] - used
        used += share
        below = (np.cumsum(here) - here / 2) * width
        bound = float(np.interp(share, below, grid))
        found.append(normal.cdf(bound / time**0.5))
        if look < len(doubts):
            ends = normal.inv_cdf(doubts[look]) * time**0.5
            density = np.where((grid > bound) & (grid <= ends), here, 0.0)
    return tuple(found)


def _normal(grid: "Floats", variance: float) -> "Floats":
    import numpy as np

    density: Floats = np.exp(-grid * grid / (2 * variance))
    density /= math.sqrt(2 * math.pi * variance)
    return density
