"""Numbers in text written for people."""

import re
from collections.abc import Iterator
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from typing import Literal

DecimalMark = Literal[".", ","]
"""The character before the fraction of a number."""


def _pattern(mark: str, group: str) -> re.Pattern[str]:
    return re.compile(
        rf"""
        (?<![A-Za-z_0-9]) (?<![0-9]{mark})      # H2O is a name, and so is the end of 1.2.3
        (?P<sign>(?<![.,)])[-+\u2212])?
        [$\u20ac\u00a3\u00a5]?
        (?P<whole>
            [0-9]{{1,3}}(?:[{group}\u2019'\u00a0\u2009\u202f][0-9]{{3}})++(?![0-9])
          | [0-9]++
          | (?={mark}[0-9])
        )
        (?:{mark}(?P<fraction>[0-9]++))?
        (?:[eE](?P<exponent>[-+\u2212]?[0-9]{{1,3}})(?![0-9A-Za-z]))?
        """,
        re.VERBOSE,
    )


_PATTERNS = {".": _pattern(r"\.", ","), ",": _pattern(",", ".")}
_EXACT = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
"""Enough digits that rounding alone never meets a tolerance; infinities are accepted, but equal
nothing."""


def numbers(text: str, mark: DecimalMark = ".") -> Iterator[Decimal]:
    """Yield the numbers in `text`, from the left."""
    for found in _PATTERNS[mark].finditer(text):
        sign = "-" if found["sign"] in ("-", "\u2212") else ""
        whole = re.sub("[^0-9]", "", found["whole"]) or "0"
        fraction = f".{found['fraction']}" if found["fraction"] else ""
        exponent = (found["exponent"] or "0").replace("\u2212", "-")
        yield Decimal(f"{sign}{whole}{fraction}E{exponent}")


def near(one: Decimal, other: Decimal, *, tolerance: float, relative: float) -> bool:
    """Return True if two numbers differ by at most `tolerance`, or by that share of `other`."""
    share = _EXACT.multiply(decimal(relative), other.copy_abs())
    difference = _EXACT.subtract(one, other).copy_abs()
    return difference <= max(decimal(tolerance), share)


def decimal(number: float) -> Decimal:
    """Return the shortest decimal notation of `number`: 0.1 is exactly one tenth."""
    return Decimal(repr(number))
