"""Bounds of the numbers in files that are read back.

A file may come from anybody.  Whatever is counted, summed or allocated by a number in it must
stay small, so every such number has one of these types.  They are far beyond what a real suite
needs, and small enough that sums, squares and shares of them stay finite.
"""

from typing import Annotated

from pydantic import AfterValidator, Field

MAX_VALUE = 1e15
"""The greatest value of a criterion; what is greater comes from an agent that reports nonsense."""
MAX_SECONDS = 1e12
"""The longest time of one trial."""
MAX_COUNT = 10**15
"""The greatest number of tokens, calls, cases or trials."""
MAX_ROUND = 100
"""The last round of repeats: a run draws at most `gate.rerun_budget` times what was planned."""
MAX_REPEAT = 999_999
"""The last number of a trial of one case: `run.repeats` (1,000) in each round, and confirming."""
MIN_SPAN = 1e-9
"""The least difference between the ends of an interval, by which changes are divided."""

Value = Annotated[float, Field(ge=-MAX_VALUE, le=MAX_VALUE)]
"""What a criterion measures, and what it is compared with."""
Derived = Annotated[float, Field(ge=-1e30, le=1e30)]
"""What is reckoned from values: a difference, a share, a probability."""
Seconds = Annotated[float, Field(ge=0, le=MAX_SECONDS)]
Moment = Annotated[float, Field(ge=-1e20, le=1e20)]
"""A time since 1970, in whatever unit the tool that wrote it has."""
Total = Annotated[float, Field(ge=0, le=1e21)]
"""A sum of seconds, dollars or shares over a whole run."""
Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]
"""A number of tokens, calls, cases or trials, or of a line."""
Round = Annotated[int, Field(ge=0, le=MAX_ROUND)]
Repeat = Annotated[int, Field(ge=0, le=MAX_REPEAT)]
Repeats = Annotated[int, Field(ge=1, le=1000)]
"""How often each case is tried."""


def _spans(interval: tuple[float, float]) -> tuple[float, float]:
    low, high = interval
    if high - low < MIN_SPAN:
        raise ValueError(f"must go from a lower number to a higher one, found {low:g} to {high:g}")
    return interval


Interval = Annotated[tuple[Value, Value], AfterValidator(_spans)]
"""The least and the greatest value of a criterion."""
