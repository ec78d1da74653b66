"""How much may be rejected at each of several looks, so that looking again costs nothing.

A look that did not decide may be followed by more repeats and another look.  The rate is spent
bit by bit (Lan and DeMets, "Discrete sequential boundaries for clinical trials", 1983), and a
hypothesis that is not in doubt any more is not looked at again, so what it could have spent is
there for the others.  Estimates at several looks are as a Brownian motion at times that are their
precisions; its density is followed from look to look (Armitage, McPherson and Rowe, 1969).
"""

import math
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

SPENT = (0.1, 0.3, 1.0)
"""The share of the rate that is spent up to each of three looks."""
_REACH = 8.0
_POINTS = 1601


def spending(looks: int) -> tuple[float, ...]:
    """Return the share of the rate that is spent up to each of `looks` looks."""
    if looks <= len(SPENT):
        # Fewer looks spend the rest at the last.
        return (*SPENT[: looks - 1], 1.0)
    return tuple(((look + 1) / looks) ** 2 for look in range(looks))


@lru_cache(maxsize=256)
def levels(
    variances: tuple[float, ...], spent: tuple[float, ...], rate: float, doubts: tuple[float, ...]
) -> tuple[float, ...]:
    """Return the p-value that rejects at each look.

    `variances` are those of the estimate at each look, in any unit; `spent` the share of `rate`
    that is spent up to it; `doubts` the p-value up to which there is another look.
    """
    import numpy as np

    normal = NormalDist()
    times = [variances[-1] / each for each in variances]
    grid = np.linspace(-_REACH, _REACH, _POINTS)
    width = grid[1] - grid[0]
    found: list[float] = []
    density: NDArray[float64] | None = None
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


def _normal(grid: "NDArray[float64]", variance: float) -> "NDArray[float64]":
    import numpy as np

    density: NDArray[float64] = np.exp(-grid * grid / (2 * variance))
    density /= math.sqrt(2 * math.pi * variance)
    return density
