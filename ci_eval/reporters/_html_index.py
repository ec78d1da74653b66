"""The index of `report.html`: a row for each case, in columns, and the settings of the run."""

import json
import sys
from array import array
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from ci_eval.records.comparisons import GroupKey
from ci_eval.records.findings import Report
from ci_eval.records.results import TrialResult
from ci_eval.records.trials import Place
from ci_eval.reporters._report_page import run_command
from ci_eval.run_files import report_phrases

_BY_GRAVITY = "spfe"
"""The initials of the statuses, from the least to the most serious."""
_PIECE = 5000
"""Number of rows that are written at once."""
_ENCODER = json.JSONEncoder(separators=(",", ":"))


class CaseIndex:
    """The cases of a report by number, in typed arrays."""

    def __init__(self, report: Report, chunk: int) -> None:
        """Begin an index; `chunk` is the number of trials in a chunk."""
        self._report = report
        self._chunk = chunk
        self._agents, self._evalsets = [*report.meta.agents], [*report.meta.evalsets]
        self._numbers: dict[tuple[str, str], dict[str, int]] = {}
        """By agent and evalset, then by case."""
        self._ids: list[str] = []
        self._agent, self._evalset, self._line = array("i"), array("i"), array("q")
        self._gists: list[str] = []
        self._seconds = array("d")
        self._statuses = bytearray()
        self._tags: dict[int, tuple[str, ...]] = {}
        self._trials: list[array[int]] = []
        """The numbers of the trials of each case."""
        self._before: dict[int, list[int]] = {}
        """The trials without the change, by case."""
        self._sums: dict[str, tuple[array[float], array[int]]] = {}
        """The sum of the values of each case under each criterion, and their number."""

    def __len__(self) -> int:
        return len(self._ids)

    def number(self, place: Place) -> int | None:
        """Return the number of a case; `None` if it has none yet."""
        return self._numbers.get(place[:2], {}).get(place.case)

    def has_gist(self, number: int | None) -> bool:
        """Return True if the gist of a case is known."""
        return number is not None and bool(self._gists[number])

    def add(self, result: TrialResult, trial: int, gist: str) -> None:
        """Add a result and the number of its trial, with the gist of its case if it is new."""
        place = result.key.place
        number = self.number(place)
        if number is None:
            number = self._begin(place)
        self._gists[number] = self._gists[number] or gist
        gravity = _BY_GRAVITY.index(result.status[0])
        self._statuses[number] = max(self._statuses[number], gravity)
        self._line[number] = self._line[number] or result.line or 0
        if result.tags:
            self._tags.setdefault(number, result.tags)
        self._seconds[number] += result.duration_s
        self._trials[number].append(trial)
        for each in result.scores if not result.confirms else ():
            if each.value is not None:
                totals, counts = self._sums_of(each.name)
                totals[number] += each.value
                counts[number] += 1

    def _begin(self, place: Place) -> int:
        number = len(self._ids)
        case = sys.intern(place.case)
        self._numbers.setdefault(place[:2], {})[case] = number
        self._ids.append(case)
        self._agent.append(_position(self._agents, place.agent))
        self._evalset.append(_position(self._evalsets, place.evalset))
        self._gists.append("")
        self._statuses.append(0)
        self._trials.append(array("i"))
        for column in (
            self._line,
            self._seconds,
            *(each for s in self._sums.values() for each in s),
        ):
            column.append(0)
        return number

    def _sums_of(self, criterion: str) -> "tuple[array[float], array[int]]":
        if criterion not in self._sums:
            size = len(self)
            self._sums[criterion] = array("d", [0.0]) * size, array("i", [0]) * size
        return self._sums[criterion]

    def add_before(self, number: int, trial: int) -> None:
        """Add the number of a trial of a case without the change."""
        self._before.setdefault(number, []).append(trial)

    def means(self, group: GroupKey) -> "array[float]":
        """Return the mean of each measured case under a criterion."""
        totals, counts = self._sums_of(group.criterion)
        numbers = self._numbers.get((group.agent, group.evalset), {}).values()
        return array("d", (totals[n] / counts[n] for n in numbers if counts[n]))

    def written(self) -> Iterator[str]:
        """Yield the index as JSON for a script element, in pieces."""
        meta = self._report.meta
        head = {
            "command": run_command(meta),
            "agents": self._agents,
            "evalsets": self._evalsets,
            "files": [each.path for each in meta.evalsets.values()],
            "criteria": [*meta.criteria],
            "better": [each.better for each in meta.criteria.values()],
            "thresholds": [each.threshold for each in meta.criteria.values()],
            "status": "".join(_BY_GRAVITY[each] for each in self._statuses),
            "marks": self._marks(),
            "tags": [*self._tagged().items()],
            "changes": self._changes(),
            "before": dict(sorted(self._before.items())),
        }
        yield f'{in_script(head)[:-1]},"scores":['
        for index, name in enumerate(meta.criteria):
            yield "," * bool(index)
            both = zip(*self._sums_of(name), strict=True)
            yield from _listed(round(total / n, 4) if n else None for total, n in both)
        yield f'],"chunk":{self._chunk}'
        columns: dict[str, Iterable[Any]] = {
            "id": self._ids,
            "agent": self._agent,
            "evalset": self._evalset,
            "line": self._line,
            "gist": self._gists,
            "seconds": (round(each, 3) for each in self._seconds),
            "trials": map(list, self._trials),
        }
        for name, column in columns.items():
            yield f',"{name}":'
            yield from _listed(column)
        yield "}"

    def _tagged(self) -> dict[str, list[int]]:
        """Return the cases with each tag."""
        found: dict[str, list[int]] = {}
        for number, tags in sorted(self._tags.items()):
            for tag in tags:
                found.setdefault(tag, []).append(number)
        return found

    def _marks(self) -> str:
        """Return a letter for each case that changed, is flaky or is exempt; later ones win."""
        found: dict[Place, str] = {}
        comparison = self._report.comparison
        for flaky in comparison.flaky if comparison else ():
            found[flaky.place] = "k"
        for change in comparison.changes if comparison else ():
            place = change.place
            if change.excused:
                found[place] = "q"
            elif found.get(place) not in ("b", "q"):
                is_sure = change.certain and change.change != "fixed"
                found[place] = "b" if is_sure else "x" if change.change == "fixed" else "w"
        excused = comparison.excused if comparison else ()
        exempt = {case for each in excused if not each.expired for case in each.cases}
        marks = ["-"] * len(self)
        for (agent, evalset), numbers in self._numbers.items() if found or exempt else ():
            for case, number in numbers.items():
                mark = found.get(Place(agent, evalset, case), "-")
                marks[number] = "q" if f"{evalset}/{case}" in exempt else mark
        return "".join(marks)

    def _changes(self) -> dict[int, list[list[str | float | None]]]:
        """Return how cases changed: criterion, score before and now, and the trials."""
        found: dict[int, list[list[str | float | None]]] = {}
        for each in self._report.comparison.changes if self._report.comparison else ():
            number = self.number(each.place)
            if number is not None:
                row = [each.group.criterion, each.baseline, each.value, report_phrases.trials(each)]
                found.setdefault(number, []).append(row)
        return found


def in_script(value: object) -> str:
    """Return `value` as JSON that a script element can hold: nothing in it is markup."""
    return dumped(value).replace("<", "\\u003c")


def dumped(value: object) -> str:
    """Return `value` as JSON."""
    # Only ASCII, so that any text can be written.
    return _ENCODER.encode(value)


def _listed(values: Iterable[Any]) -> Iterator[str]:
    """Yield a list of any length as JSON for a script element, in pieces."""
    rest, opening = iter(values), "["
    while piece := [*islice(rest, _PIECE)]:
        yield opening + in_script(piece)[1:-1]
        opening = ","
    yield "]" if opening == "," else "[]"


def _position(names: list[str], name: str) -> int:
    """Return the position of `name`, which may be missing in a damaged run."""
    if name not in names:
        names.append(name)
    return names.index(name)
