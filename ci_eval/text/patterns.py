"""Patterns: regular expressions on untrusted text, and names with `*`.

Python's `re` may backtrack for years on some patterns and cannot be interrupted.  The `regex`
package has the same syntax and supports a timeout.
"""

import functools
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field

from ci_eval.records.errors import TrialError

if TYPE_CHECKING:
    import regex

MAX_SECONDS = 1.0
"""Timeout for searching one text; an ordinary pattern needs a millisecond."""
_MAX_PATTERN = 10_000


def _checked(pattern: str) -> str:
    compiled(pattern)
    return pattern


Pattern = Annotated[str, Field(min_length=1, max_length=_MAX_PATTERN), AfterValidator(_checked)]
"""A valid regular expression."""


@functools.lru_cache(maxsize=1024)
def compiled(pattern: str, *, ignore_case: bool = False) -> "regex.Pattern[str]":
    """Compile a pattern.

    Raises:
        ValueError: it is not a regular expression.

    """
    import regex

    try:
        return regex.compile(pattern, regex.IGNORECASE if ignore_case else 0)
    except (regex.error, OverflowError, RecursionError) as exc:
        raise ValueError(f"is not a regular expression: {exc}") from exc


def matches(pattern: str, text: str, *, ignore_case: bool = False, full: bool = False) -> bool:
    """Return True if `text` contains a match of the pattern, or with `full` is one.

    Raises:
        TrialError: the search takes too long.

    """
    search = compiled(pattern, ignore_case=ignore_case)
    look = search.fullmatch if full else search.search
    try:
        return look(text, timeout=MAX_SECONDS) is not None
    except TimeoutError:
        raise _too_slow(pattern, text) from None


def replaced(pattern: str, text: str, by: str) -> str:
    """Return `text` with every match of the pattern replaced.

    Raises:
        TrialError: the search takes too long.

    """
    try:
        return compiled(pattern).sub(lambda _: by, text, timeout=MAX_SECONDS)
    except TimeoutError:
        raise _too_slow(pattern, text) from None


def fits_any(name: str, globs: Iterable[str]) -> bool:
    """Return True if a name is one of these, or fits a pattern such as `gemini-2.5-*`."""
    return any(fnmatchcase(name, each) for each in globs)


def _too_slow(pattern: str, text: str) -> TrialError:
    message = (
        f"the pattern {pattern[:100]!r} did not finish within {MAX_SECONDS:g} s on a text of "
        f"{len(text):,} characters; avoid repetitions that can match the same characters"
    )
    return TrialError("unsupported", message)
