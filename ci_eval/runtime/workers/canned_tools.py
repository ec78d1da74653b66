"""Canned tool results: matching a tool call with its result.

Framework adapters import this file under the agent's interpreter, and so do we, so that calls are
matched in one place.  It needs only the standard library of Python 3.8 and imports
nothing from ci-eval.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class Given(NamedTuple):
    """The outcome of a call: a result, or an error message."""

    result: Any = None
    error: str | None = None


class Canned:
    """The canned results of one conversation: a case's `CannedResults`, as JSON.

    An entry matches a call that has at least its arguments, compared as JSON values: `1` equals
    `1.0`, but not `true`.  `used` continues the counts of the same conversation in another process.
    """

    def __init__(
        self, tools: dict[str, list[dict[str, Any]]], used: Sequence[tuple[str, int, int]] = ()
    ) -> None:
        self._tools = tools
        self._times = {(name, place): times for name, place, times in used}

    @property
    def used(self) -> list[tuple[str, int, int]]:
        """How often entries with several results were used: tool, position, count."""
        return [(*place, times) for place, times in self._times.items()]

    def find(self, name: str, args: dict[str, Any]) -> Given | None:
        """Return the outcome of a call of the tool `name`; `None` if no entry matches."""
        place = self._place(name, args)
        return None if place is None else self._given(self._tools[name][place], (name, place))

    def knows(self, name: str, args: dict[str, Any]) -> bool:
        """Return True if `find` would find an entry, without counting a call."""
        return self._place(name, args) is not None

    def _place(self, name: str, args: dict[str, Any]) -> int | None:
        for place, entry in enumerate(self._tools.get(name, ())):
            if entry.get("args") is None or _holds(args, entry["args"]):
                return place
        return None

    def _given(self, entry: dict[str, Any], place: tuple[str, int]) -> Given:
        if entry.get("error") is not None:
            return Given(error=entry["error"])
        if entry.get("results") is None:
            return Given(entry.get("result"))
        times = self._times[place] = self._times.get(place, 0) + 1
        return Given(entry["results"][min(times, len(entry["results"])) - 1])


def _holds(args: dict[str, Any], least: dict[str, Any]) -> bool:
    return all(name in args and equal(args[name], value) for name, value in least.items())


def equal(one: Any, other: Any) -> bool:
    """Return True if two JSON values are equal."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(equal, one, other))
    return bool(one == other)
