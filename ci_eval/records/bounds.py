"""Bounds of the numbers in files that are read back.

Files are untrusted: a number in a file must not make counts, sums or allocations explode, so every
such number has one of these types.  The bounds far exceed the needs of a real suite, and are small
enough that sums, squares and ratios stay finite.
"""

from typing import Annotated

from pydantic import AfterValidator, Field

MAX_VALUE = 1e15
"""The greatest absolute value of a criterion; anything greater is a nonsensical measurement."""
MAX_SECONDS = 1e12
"""The longest duration of one trial."""
MAX_COUNT = 10**15
"""The greatest number of tokens, calls, cases or trials."""
MAX_ROUND = 100
"""The last rerun round: a run draws at most `gate.rerun_budget` times the planned trials."""
MAX_REPEAT = 999_999
"""The last repeat of one case: `run.repeats` (1,000) per round, plus the confirming trials."""
MIN_SPAN = 1e-9
"""The smallest width of an interval; changes are divided by the width."""

Value = Annotated[float, Field(ge=-MAX_VALUE, le=MAX_VALUE)]
"""A measured value or a threshold."""
Derived = Annotated[float, Field(ge=-1e30, le=1e30)]
"""A number computed from values: a difference, a share, a probability."""
Seconds = Annotated[float, Field(ge=0, le=MAX_SECONDS)]
Moment = Annotated[float, Field(ge=-1e20, le=1e20)]
"""A time since 1970, in the unit of the tool that wrote it."""
Total = Annotated[float, Field(ge=0, le=1e21)]
"""A sum of seconds, dollars or shares over a whole run."""
Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]
"""A number of tokens, calls, cases or trials, or a line number."""
Round = Annotated[int, Field(ge=0, le=MAX_ROUND)]
Repeat = Annotated[int, Field(ge=0, le=MAX_REPEAT)]
Repeats = Annotated[int, Field(ge=1, le=1000)]
"""Trials of each case."""
Samples = Annotated[int, Field(ge=1, le=1000)]
"""Answers of a judge to each question."""


def _spans(interval: tuple[float, float]) -> tuple[float, float]:
    low, high = interval
    if high - low < MIN_SPAN:
        raise ValueError(f"must be a lower and a higher number, found {low:g} and {high:g}")
    return interval


Interval = Annotated[tuple[Value, Value], AfterValidator(_spans)]
"""The lowest and the highest possible value of a criterion."""
