"""Cases as rows of a table (CSV), converted to the structure of the other syntaxes."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ci_eval.evalsets._evalset_reading import Problems
from ci_eval.evalsets._own_case import FOREIGN
from ci_eval.records.cases import Json
from ci_eval.text.json_text import MAX_DEPTH, NotJsonError, decode, json_or_text, parse_json, skip
from ci_eval.text.suggest import did_you_mean
from ci_eval.text.yaml_files import Loc, reading

SEPARATOR = ";"
"""Separates tags, tools and nodes in a cell."""
_TEXTS = ("id", "prompt", "expected", "context", "reference_facts")
"""Columns whose cells are read as text."""
_LISTS = ("tags", "expected_tools", "expected_nodes")
_NAMED = ("state", "final_state", "assert")
"""Prefixes of columns such as `state.user`; the part after the dot is the name."""


class Row(NamedTuple):
    """One row as a case."""

    value: dict[str, Json]
    line: int
    """First line; a quoted cell may span several lines."""

    def spot(self, loc: Loc) -> tuple[int, str]:
        """Return the line and the column of a location in the case."""
        return self.line, f"column {self._column(loc)!r}" if loc else ""

    def _column(self, loc: Loc) -> str:
        first, second = str(loc[0]), loc[1] if len(loc) > 1 else None
        if first == "assert" and isinstance(second, int):
            second = next(iter(self.value["assert"][second]))
        return f"{first}.{second}" if first in _NAMED and second else first


def read_table(path: Path, *, shown: str, problems: Problems) -> Iterator[Row]:
    """Yield the valid rows of the table at `path`.

    Raises:
        UsageError: it cannot be read.

    """
    with reading(path, shown=shown) as file:
        # Cells of several lines are the same, whatever line ends git gave the file.
        rows = csv.reader((line.replace("\r\n", "\n") for line in file), strict=True)
        line = 1
        try:
            columns = [name.strip() for name in next(rows, [])]
            if not _note_columns(columns, problems):
                return
            line = rows.line_num + 1
            for cells in rows:
                row = _row(columns, cells, line, problems) if cells else None
                if row:
                    yield row
                line = rows.line_num + 1
        except csv.Error as exc:
            problems.add(f"is not CSV: {exc}; this row begins here", line)


def _note_columns(columns: Sequence[str], problems: Problems) -> bool:
    """Note problems of the columns; return False if they make the rows unusable."""
    if len(columns) == 1:
        odd = next((each for each in (SEPARATOR, "\t", "|") if each in columns[0]), "")
        if odd:
            problems.add(f"columns must be separated by ',', found {odd!r}", 1)
            return False
    for position, name in enumerate(columns):
        where = f"column {position + 1}"
        if not name:
            problems.add("has no name", 1, where)
        elif name in columns[:position]:
            problems.add(f"duplicate column {name!r}", 1, where)
        elif not _is_known(name):
            problems.add(f"unknown column{_hint(name)}", 1, f"column {name!r}")
    return not problems.errors


def _is_known(name: str) -> bool:
    first, _, second = name.partition(".")
    return name in (*_TEXTS, *_LISTS) or (first in _NAMED and bool(second))


def _hint(name: str) -> str:
    known = [*_TEXTS, *_LISTS, *(f"{first}.NAME" for first in _NAMED)]
    if name in _NAMED:
        return f"; add a name: '{name}.NAME'"
    if FOREIGN.get(name) in known:
        return f"; use {FOREIGN[name]!r}"
    return did_you_mean(name, known)


def _row(columns: Sequence[str], cells: Sequence[str], line: int, problems: Problems) -> Row | None:
    if len(cells) > len(columns):
        message = (
            f"has {len(cells)} cells for {len(columns)} columns; "
            'put a cell with a comma in "double quotes"'
        )
        problems.add(message, line)
        return None
    row = Row({}, line)
    for column, cell in zip(columns, cells, strict=False):
        if cell.strip():
            try:
                _put(row.value, column, cell)
            except NotJsonError as exc:
                problems.add(str(exc), line, f"column {column!r}")
    return row if row.value else None


def _put(value: dict[str, Any], column: str, cell: str) -> None:
    """Store a cell at the place of its value in the other syntaxes.

    Raises:
        NotJsonError: it begins like a JSON list or object, but is not one.

    """
    first, _, name = column.partition(".")
    if first in _NAMED and name:
        if first == "assert":
            value.setdefault(first, []).append({name: json_or_text(cell)})
        else:
            value.setdefault(first, {})[name] = json_or_text(cell)
    elif column in _LISTS:
        value[column] = _list(cell)
    else:
        value[column] = cell


def _list(cell: str) -> Json:
    start = cell.lstrip()[:1]
    if start == "[":
        return parse_json(cell)
    if start == "{":
        return list(_objects(cell))
    return [each.strip() for each in cell.split(SEPARATOR) if each.strip()]


def _objects(cell: str) -> Iterator[Json]:
    """Yield the JSON objects of a cell, such as `{…};{…}`."""
    at = skip(cell, 0)
    while at < len(cell):
        value, at = decode(cell, at, max_depth=MAX_DEPTH)
        yield value
        at = skip(cell, at)
        if at < len(cell) and cell[at] not in (SEPARATOR, ","):
            raise NotJsonError(
                f"has extra text after an object; separate objects with {SEPARATOR!r}", at
            )
        at = skip(cell, at + 1)
