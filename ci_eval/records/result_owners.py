"""Which tool call a result belongs to: separate, because ids may be missing or repeated."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Protocol


class _Named(Protocol):
    """A tool call or a tool result."""

    @property
    def id(self) -> str | None: ...

    @property
    def name(self) -> str | None: ...


def result_owners(calls: Sequence[_Named], results: Sequence[_Named]) -> list[int | None]:
    """Return the position of each result's call; `None` if nothing identifies the call.

    A result belongs to the only call with its id.  If several calls share an id, its results belong
    to them in order, but only if there are as many results as calls; if all of them name a tool,
    each tool is looked at alone.  In the same way, results without an id belong to the calls that
    no result identifies.
    """
    found: list[int | None] = [None] * len(results)
    answers: dict[str | None, list[int]] = defaultdict(list)
    for number, result in enumerate(results):
        answers[result.id or None].append(number)
    asked: dict[str | None, list[int]] = defaultdict(list)
    for at, call in enumerate(calls):
        asked[call.id if call.id in answers else None].append(at)
    for identity, numbers in answers.items():
        owners = asked[identity]
        if identity and len(owners) == 1:
            pairs = iter([(number, owners[0]) for number in numbers])
        else:
            pairs = _in_order(calls, owners, results, numbers)
        for number, owner in pairs:
            found[number] = owner
    return found


def _in_order(
    calls: Sequence[_Named], owners: list[int], results: Sequence[_Named], numbers: list[int]
) -> Iterator[tuple[int, int]]:
    """Yield each result with its call, as far as their order tells."""
    tools = {results[number].name or None for number in numbers}
    for tool in {None} if None in tools else tools:
        mine = [each for each in numbers if tool in (None, results[each].name)]
        its = [each for each in owners if tool in (None, calls[each].name)]
        if len(mine) == len(its):
            pairs = list(zip(mine, its, strict=True))
            if all(results[one].name in (None, "", calls[other].name) for one, other in pairs):
                yield from pairs
