"""The formulas by which 10xscale-agentflow 0.10.1 compares sequences.

Each is a share of the expected elements, so unexpected ones mostly cost nothing; matches are found
greedily from the front.
"""

from collections import defaultdict, deque
from collections.abc import Hashable, Sequence

from ci_eval.criteria._sequences import MatchType

Answers = Sequence[Hashable]
"""All expected values that one observed element matches."""


def observed_share(
    expected: Sequence[Hashable], actual: Sequence[Answers], kind: MatchType
) -> float:
    """Return the matched share of `expected`, which is not empty."""
    match kind:
        case "EXACT":
            found = sum(item in each for item, each in zip(expected, actual, strict=False))
        case "IN_ORDER":
            found = _prefix(expected, actual)
        case "ANY_ORDER":
            found = _taken(expected, actual)
    return found / len(expected)


def _prefix(expected: Sequence[Hashable], actual: Sequence[Answers]) -> int:
    """Count the expected elements, from the first on, that occur in order."""
    met = 0
    for each in actual:
        if met < len(expected) and expected[met] in each:
            met += 1
    return met


def _taken(expected: Sequence[Hashable], actual: Sequence[Answers]) -> int:
    """Count the expected elements that match; each takes the first match left."""
    places: defaultdict[Hashable, deque[int]] = defaultdict(deque)
    for position, each in enumerate(actual):
        for answer in each:
            places[answer].append(position)
    taken: set[int] = set()
    for item in expected:
        waiting = places.get(item, deque())
        while waiting and waiting[0] in taken:
            waiting.popleft()
        if waiting:
            taken.add(waiting.popleft())
    return len(taken)
