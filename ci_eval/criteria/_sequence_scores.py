"""Comparison of sequences, as AgentFlow's documentation defines it.

E is the expected sequence, A the actual one.  `EXACT`: A equals E.  `IN_ORDER`: E is a subsequence
of A.  `ANY_ORDER`: A contains E as a multiset.  The partial score is consistent with that: it is
1.0 if and only if A matches, and for the same sequences it is never higher under a stricter type.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Final, Literal

from ci_eval.records.cases import Json
from ci_eval.records.errors import TrialError

MatchType = Literal["EXACT", "IN_ORDER", "ANY_ORDER"]

MAX_ORDERED: Final = 20_000
"""Maximum length for a partial score in order, which then takes about 0.1 s and 50 MB."""


def matches(expected: Sequence[Hashable], actual: Sequence[Hashable], kind: MatchType) -> bool:
    """Return True if `actual` matches `expected`."""
    match kind:
        case "EXACT":
            return list(expected) == list(actual)
        case "IN_ORDER":
            rest = iter(actual)
            return all(item in rest for item in expected)
        case "ANY_ORDER":
            return Counter(expected) <= Counter(actual)


def share(expected: Sequence[Hashable], actual: Sequence[Hashable], kind: MatchType) -> float:
    """Return the share of `expected` that is in `actual`, from 0.0 to 1.0.

    In order, the length of the longest common subsequence counts; in any order, the size of the
    common multiset.  It is divided by the number of expected elements, or, under `EXACT`, where
    unexpected elements count as well, by the longer of the two lengths.

    Raises:
        TrialError: a sequence is too long to be compared in order.

    """
    whole = max(len(expected), len(actual)) if kind == "EXACT" else len(expected)
    if not whole:
        return 1.0
    if kind == "ANY_ORDER":
        return (Counter(expected) & Counter(actual)).total() / whole
    return longest_common(expected, actual) / whole


def longest_common(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """Return the length of the longest common subsequence.

    Each row of the usual table is stored in the bits of one long integer, so that a row costs only
    a few operations (Hyyrö, "Bit-parallel LCS-length computation revisited", 2004).

    Raises:
        TrialError: one is longer than `MAX_ORDERED`.

    """
    if max(len(one), len(other)) > MAX_ORDERED:
        message = f"sequences of more than {MAX_ORDERED:,} elements have no partial score in order"
        raise TrialError("unsupported", message)
    places: dict[Hashable, int] = {}
    for position, item in enumerate(one):
        places[item] = places.get(item, 0) | 1 << position
    unmatched = everything = (1 << len(one)) - 1
    for item in other:
        found = unmatched & places.get(item, 0)
        unmatched = (unmatched + found | unmatched - found) & everything
    return len(one) - unmatched.bit_count()


def as_key(value: Json) -> Hashable:
    """Return a hashable key; two keys are equal if and only if the values are equal in Python.

    Lists are ordered, objects are not; 1, 1.0 and true are the same.
    """
    if isinstance(value, dict):
        return frozenset((key, as_key(each)) for key, each in value.items())
    if isinstance(value, list | tuple):
        return tuple(as_key(each) for each in value)
    return value  # type: ignore[no-any-return]  # a text, a number or nothing
