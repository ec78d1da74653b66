"""Charts of `report.html`: numbers for the SVG elements that its template writes."""

from collections.abc import Sequence
from dataclasses import dataclass

from ci_eval.reporters._score_history import Trend

WIDTH, HEIGHT = 140, 28
_BINS = 10


class _Chart:
    @property
    def size(self) -> tuple[int, int]:
        """Width and height, in the units of its view box."""
        return WIDTH, HEIGHT


@dataclass(frozen=True)
class Line(_Chart):
    """The means of a criterion in the last runs, oldest first."""

    points: str
    """The points of a polyline, in SVG's syntax."""
    last: tuple[float, float]
    """The point of this run."""
    threshold: float | None
    """The height of the threshold; `None` if it is outside of the chart."""
    band: tuple[float, float] | None
    """Top and height of the band in which most runs lie, if there are enough runs."""
    low: float
    high: float
    """The means at the lower and the upper end."""
    runs: int


@dataclass(frozen=True)
class Bars(_Chart):
    """The number of cases by their mean score, from the lowest to the highest."""

    heights: tuple[float, ...]
    counts: tuple[int, ...]
    low: float
    high: float

    @property
    def step(self) -> float:
        """The width of a bar."""
        return WIDTH / len(self.counts)


def line_of(trend: Trend) -> Line:
    """Return the chart of a trend; runs that did not measure the criterion are left out."""
    low, high = trend.bounds
    if trend.band:
        low, high = min(low, trend.band[0]), max(high, trend.band[1])
    last = max(len(trend.values) - 1, 1)

    def height(value: float) -> float:
        return round(2 + (HEIGHT - 4) * (1 - (value - low) / (high - low)), 1)

    places = [
        (round(3 + (WIDTH - 6) * number / last, 1), height(value))
        for number, value in enumerate(trend.values)
        if value is not None
    ]
    threshold = trend.row.summary.threshold
    is_shown = threshold is not None and low <= threshold <= high
    top, bottom = (height(trend.band[1]), height(trend.band[0])) if trend.band else (0.0, 0.0)
    return Line(
        points=" ".join(f"{x},{y}" for x, y in places),
        last=places[-1],
        threshold=height(threshold) if is_shown and threshold is not None else None,
        band=(top, max(round(bottom - top, 1), 1.0)) if trend.band else None,
        low=low,
        high=high,
        runs=len(trend.values),
    )


def bars_of(values: Sequence[float], interval: tuple[float, float] | None) -> Bars:
    """Return the distribution of at least one mean, over `interval` or the range of the means."""
    low, high = interval or (min(values), max(values))
    if low == high:
        high = low + 1.0
    counts = [0] * _BINS
    for value in values:
        counts[min(max(int((value - low) / (high - low) * _BINS), 0), _BINS - 1)] += 1
    most = max(counts)
    # One case among thousands stays visible.
    heights = (max(round(HEIGHT * count / most, 1), 1.5) if count else 0.0 for count in counts)
    return Bars(tuple(heights), tuple(counts), low, high)
