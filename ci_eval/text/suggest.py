"""Suggestions for names that were probably mistyped."""

import re
from collections.abc import Iterable
from difflib import get_close_matches

from ci_eval.records.errors import visible

CLOSE = 0.61
"""How similar a name must be to be suggested, from 0 to 1."""
MAX_NAMED = 20
"""Maximum number of names that a message lists."""


def as_share(given: float, most: float) -> str:
    """Return the end of a message: the share that a percentage probably means, if any.

    >>> as_share(80, 1), as_share(80, 5)
    ('. Did you mean 0.8?', '')
    """
    return f". Did you mean {given / 100:g}?" if most == 1 and 10 <= given <= 100 else ""


def as_number(given: object) -> str:
    """Return the end of a message: the number that a text probably means, if any.

    >>> as_number("80%"), as_number("0.8"), as_number("most")
    ('. Did you mean 0.8?', '; remove the quotes', '')
    """
    text = str(given).strip()
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text):
        return "; remove the quotes" if isinstance(given, str) else ""
    is_percentage = text.endswith("%") and text[:-1].strip().isdecimal()
    return as_share(float(text[:-1]), 1) if is_percentage else ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of a message: the probable name, or the known names.

    >>> did_you_mean("respnse", ("response", "tools"))
    ". Did you mean 'response'?"
    >>> did_you_mean("x", ("response", "tools"))
    '; known: response, tools'
    """
    names = sorted(known)
    close = get_close_matches(name, names, n=1, cutoff=CLOSE)
    if close:
        return f". Did you mean {close[0]!r}?"
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return f"; known: {', '.join(map(visible, names[:MAX_NAMED]))}{more}" if names else ""
