"""Iteration over the cases of a file in any syntax, with the location of each."""

from collections.abc import Iterator
from typing import NamedTuple

from ci_eval.evalsets._csv_cases import read_table
from ci_eval.evalsets._evalset_reading import CaseFile, Notes, notes_on
from ci_eval.formats.sniff import syntax_of
from ci_eval.records.cases import Json
from ci_eval.text.json_stream import Element, JsonFile, walk_lines
from ci_eval.text.validation_messages import describe
from ci_eval.text.yaml_files import Document, Loc, dotted, read_yaml


class Entry(NamedTuple):
    """One case of a file."""

    value: Json
    line: int
    notes: Notes
    """Collects the problems of the case."""


class Source(NamedTuple):
    """A file of cases: a list, an object with the list under a key, lines, or a table."""

    file: CaseFile
    """The file; its header receives the other members of the object."""
    key: str
    """Key of the list, if the document is an object."""

    def entries(self) -> Iterator[Entry]:
        """Yield the cases, and note problems of the file itself."""
        match syntax_of(self.file.path):
            case "json":
                return self._of_json()
            case "jsonl":
                return self._of_lines()
            case "yaml":
                return self._of_yaml()
            case "csv":
                return self._of_table()

    def _of_json(self) -> Iterator[Entry]:
        position = 0
        begun = is_object = False
        file = JsonFile(self.file.path, shown=self.file.shown, unique=True)
        for name, element in file.walk(frozenset({self.key})):
            is_object = is_object or bool(name)
            if name == self.key and element.is_begin:
                if begun:
                    self.file.problems.add(f"duplicate key {name!r}", element.line)
                begun = True
            elif not name or (name == self.key and begun):
                yield self._entry(element, (name, position) if name else (position,))
                position += 1
            else:
                self._note_header(name, element.value, element.line)
        if is_object and self.key not in self.file.header and not begun:
            self.file.problems.add(f"{self.key!r} is missing", 1)

    def _entry(self, element: Element, base: Loc) -> Entry:
        return Entry(element.value, element.line, notes_on(element, base, self.file.problems))

    def _of_lines(self) -> Iterator[Entry]:
        for element in walk_lines(
            self.file.path, shown=self.file.shown, refuse=self.file.problems.add
        ):
            yield self._entry(element, ())

    def _of_yaml(self) -> Iterator[Entry]:
        document = read_yaml(self.file.path, shown=self.file.shown)
        value: Json = document.value
        base: Loc = ()
        if isinstance(value, dict):
            for name, inner in value.items():
                if name != self.key or not isinstance(inner, list):
                    self._note_header(name, inner, document.line((name,)) or 1)
            if self.key not in value:
                self.file.problems.add(f"{self.key!r} is missing", 1)
            value, base = value.get(self.key), (self.key,)
        for position, inner in enumerate(value if isinstance(value, list) else ()):
            yield self._in_document(document, inner, (*base, position))

    def _in_document(self, document: Document, value: Json, base: Loc) -> Entry:
        def spot(loc: Loc) -> tuple[int, str]:
            return document.line((*base, *loc)) or 1, dotted((*base, *loc))

        return Entry(value, spot(())[0], Notes(self.file.problems, spot))

    def _of_table(self) -> Iterator[Entry]:
        for row in read_table(self.file.path, shown=self.file.shown, problems=self.file.problems):
            yield Entry(row.value, row.line, Notes(self.file.problems, row.spot))

    def _note_header(self, name: str, value: Json, line: int) -> None:
        if name == self.key:
            message = f"expected a list of cases, found {describe(value)}"
            self.file.problems.add(message, line, name)
        elif name in self.file.header:
            self.file.problems.add(f"duplicate key {name!r}", line)
        self.file.header[name] = _Member(value, line)


class _Member(NamedTuple):
    """A member beside the list of cases, and its line."""

    value: Json
    line: int
