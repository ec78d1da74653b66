"""History of the criteria over the last runs, as sparklines and charts.

GitHub renders fenced `mermaid` blocks in comments and job summaries.  Names in a chart are part of
its source code, so only letters, digits and a few signs are kept.  The grammar:
https://mermaid.js.org/syntax/xyChart.html
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from ci_eval.records.comparisons import GroupKey
from ci_eval.records.findings import Report
from ci_eval.reporters._criteria_rows import Row
from ci_eval.reporters._notable_cases import Bounds, Some
from ci_eval.text.sanitize import clean

MAX_RUNS = 30
"""Maximum number of runs to show, including this one."""
MAX_CHARTS = 3
_RUNS_FOR_BAND = 5

_COLOURS = '%%{init: {"themeVariables": {"xyChart": {"plotColorPalette": "#cf222e"}}}}%%'
"""Replaces Mermaid's default colour of the first line, which is hardly visible on white."""
_BLOCKS = "▁▂▃▄▅▆▇█"
_FLAT = 0.2
"""Smaller changes look flat; as a share of the interval or, if unbounded, of the value."""
_GREATEST = 1e12
_MAX_TITLE = 60
_SIGNS = frozenset(" _-./")


@dataclass(frozen=True)
class Trend:
    """The means of one criterion in the last runs, oldest first; the last is this run's."""

    row: Row
    values: tuple[float | None, ...]
    """`None` for a run that did not measure it."""
    interval: tuple[float, float] | None

    @property
    def measured(self) -> list[float]:
        """The means of the runs that measured it."""
        return [value for value in self.values if value is not None]

    @property
    def sparkline(self) -> str:
        """One block per run, as high as its mean; a dot for a run without one.

        Scaled from the lowest to the highest mean, unless they hardly differ.
        """
        low, high = self.bounds
        top = len(_BLOCKS) - 1
        return "".join(
            "·"
            if value is None
            else _BLOCKS[min(max(round((value - low) / (high - low) * top), 0), top)]
            for value in self.values
        )

    @property
    def bounds(self) -> tuple[float, float]:
        """The lower and the upper end of a chart's axis; never equal."""
        low, high = min(self.measured), max(self.measured)
        scale = self.interval[1] - self.interval[0] if self.interval else max(abs(low), abs(high))
        least = _FLAT * scale or 1.0
        if high - low >= least:
            return low, high
        middle = (low + high) / 2
        low, high = middle - least / 2, middle + least / 2
        if self.interval:
            # The axis must not go beyond the interval.
            shift = max(self.interval[0] - low, 0.0) - max(high - self.interval[1], 0.0)
            low, high = low + shift, high + shift
        return low, high

    @property
    def band(self) -> tuple[float, float] | None:
        """Two standard deviations below and above the mean of the earlier runs.

        `None` for fewer than 5 earlier runs, which are too few to estimate how much runs differ.
        """
        earlier = self.measured[:-1]
        if len(earlier) < _RUNS_FOR_BAND:
            return None
        middle, spread = fmean(earlier), stdev(earlier)
        low, high = self.interval or (-math.inf, math.inf)
        return max(middle - 2 * spread, low), min(middle + 2 * spread, high)

    @property
    def chart(self) -> str:
        """The means as a Mermaid chart, without runs that did not measure it."""
        runs = ", ".join(f'"{number}"' for number in range(1, len(self.measured) + 1))
        low, high = self.bounds
        lines = (
            _COLOURS,
            "xychart-beta",
            f'  title "{_title(self.row.summary.group)}"',
            f'  x-axis "last runs, this run on the right" [{runs}]',
            f'  y-axis "mean" {_plain(low)} --> {_plain(high)}',
            f"  line [{', '.join(map(_plain, self.measured))}]",
        )
        return "\n".join(lines)


@dataclass(frozen=True)
class History:
    """The history of the criteria over the last runs."""

    trends: Some[Trend]
    runs: int
    """Number of runs in the longest trend."""
    charts: tuple[str, ...]
    """Mermaid charts of the criteria that regressed."""


def history_of(report: Report, rows: Sequence[Row], bounds: Bounds) -> History:
    """Return the history of the criteria in `rows`."""
    found = tuple(trends(report, rows))
    return History(
        trends=Some(found[: bounds.rows], len(found)),
        runs=max((len(each.values) for each in found), default=0),
        charts=tuple(each.chart for each in charted(found)),
    )


def trends(report: Report, rows: Sequence[Row]) -> Iterator[Trend]:
    """Yield the trend of each criterion that was measured before."""
    earlier = [run for run in report.history if run.run_id != report.meta.run_id][: MAX_RUNS - 1]
    means = [
        {each.group: each.value for each in run.groups if _shows(each.value)}
        for run in reversed(earlier)
    ]
    for row in rows:
        before = [run.get(row.summary.group) for run in means]
        first = next((place for place, value in enumerate(before) if value is not None), None)
        if first is not None and _shows(row.summary.value):
            yield Trend(row, (*before[first:], row.summary.value), row.summary.interval)


def charted(found: Sequence[Trend]) -> list[Trend]:
    """Return the first trends of criteria that regressed, which get a chart."""
    worse = [each for each in found if each.row.delta and each.row.delta.outcome == "regressed"]
    return worse[:MAX_CHARTS]


def _shows(value: float | None) -> bool:
    """Return True if a chart can show `value`; stored values may be any number."""
    return value is not None and abs(value) <= _GREATEST


def _plain(value: float) -> str:
    """Return `value` in Mermaid's syntax: without an exponent."""
    return f"{value:.9f}".rstrip("0").rstrip(".")


def _title(group: GroupKey) -> str:
    words = f"{group.criterion} on {group.evalset} with {group.agent}"
    kept = "".join(
        letter if letter.isalnum() or letter in _SIGNS else " " for letter in clean(words[:500])
    )
    short = " ".join(kept.split())
    return short if len(short) <= _MAX_TITLE else f"{short[:_MAX_TITLE]}..."
