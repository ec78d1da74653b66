"""Waiting between attempts: exponential backoff, and the pause that a server requests.

All retries with growing pauses take them from here.  Callers decide which failures are worth
another attempt, and how many attempts there are.
"""

import email.utils
import re
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC
from random import Random  # noqa: TID251  # seeded; only the length of pauses depends on it
from typing import NamedTuple

_SECONDS = re.compile(r"\s*(\d{1,9}(?:\.\d{1,9})?)s?\s*")


class Backoff(NamedTuple):
    """Pauses that grow from attempt to attempt."""

    first_s: float
    """The first pause, in seconds."""
    longest_s: float
    """The maximum of all pauses, in seconds."""
    factor: float = 2.0
    """Growth of the pause with each attempt."""
    jitter: float = 0.0
    """Share of a pause that is random: 0 for none, 1 for full jitter.

    Clients that collided once do not collide again (Brooker, "Exponential Backoff And Jitter",
    AWS Architecture Blog, 2015).
    """

    def pauses(self, count: int = sys.maxsize, *, seed: str = "") -> Iterator[float]:
        """Yield `count` pauses in seconds; `seed` decides their jitter."""
        random = Random(seed)  # noqa: S311  # no secret
        pause_s = self.first_s
        for _ in range(count):
            yield min(pause_s, self.longest_s) * random.uniform(1 - self.jitter, 1)
            pause_s = min(pause_s * self.factor, self.longest_s)


def seconds(text: object) -> float | None:
    """Return the seconds in `12`, `12.5` or `12.5s`; `None` for anything else."""
    found = _SECONDS.fullmatch(text) if isinstance(text, str) else None
    return float(found[1]) if found else None


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds until `Retry-After` (RFC 9110, 10.2.3); `None` without a valid one."""
    text = headers.get("Retry-After", "")
    if (waiting := seconds(text)) is not None:
        return waiting
    try:
        date = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now)
