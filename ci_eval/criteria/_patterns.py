"""Regular expressions on texts that nobody vouches for.

Python's `re` may look for years where a pattern can match in very many ways, and cannot be
stopped.  The `regex` package reads the same syntax and takes a limit of time.
"""

import functools
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field

from ci_eval.records.errors import TrialError

if TYPE_CHECKING:
    import regex

MAX_SECONDS = 1.0
"""How long one text is searched; a pattern of good nature needs a millisecond."""
_MAX_PATTERN = 10_000


def _checked(pattern: str) -> str:
    compiled(pattern)
    return pattern


Pattern = Annotated[str, Field(min_length=1, max_length=_MAX_PATTERN), AfterValidator(_checked)]
"""A regular expression that can be compiled."""


@functools.lru_cache(maxsize=1024)
def compiled(pattern: str, *, ignore_case: bool = False) -> "regex.Pattern[str]":
    """Return the compiled pattern.

    Raises:
        ValueError: it is none.

    """
    import regex

    try:
        return regex.compile(pattern, regex.IGNORECASE if ignore_case else 0)
    except (regex.error, OverflowError, RecursionError) as exc:
        raise ValueError(f"is no regular expression: {exc}") from exc


def matches(pattern: str, text: str, *, ignore_case: bool = False, full: bool = False) -> bool:
    """Say whether the pattern is found in `text`, or with `full` matches all of it.

    Raises:
        TrialError: it takes too long.

    """
    search = compiled(pattern, ignore_case=ignore_case)
    look = search.fullmatch if full else search.search
    try:
        return look(text, timeout=MAX_SECONDS) is not None
    except TimeoutError:
        message = (
            f"the pattern {pattern[:100]!r} was still looking after {MAX_SECONDS:g} s in a text of "
            f"{len(text):,} characters; make its repetitions exclude each other"
        )
        raise TrialError("unsupported", message) from None
