"""Streaming reader of JSON documents of any length; holds one element in memory at a time."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import IO, Any, NoReturn

from ci_eval.records.errors import UsageError
from ci_eval.text import json_text
from ci_eval.text.yaml_files import MAX_WALKED, Loc, reading

MAX_ELEMENT_CHARS = 64 * 1024 * 1024
"""Maximum length of an element of a streamed array; a longer one is an error, to save memory."""
_CHUNK = 1 << 20
_LONGEST_WORD = 16
"""Any JSON token except a string is certainly invalid after this many characters."""


_Decode = Callable[[str, int], tuple[Any, int]]
Refuse = Callable[[str, int], None]
"""Function that reports an error in the line of the given number."""


@dataclass(frozen=True)
class Element:
    """One element of a streamed array."""

    value: Any
    line: int
    text: str
    """The text in the file."""
    is_begin: bool = False
    """True if it is not an element but marks the start of an array."""

    def line_of(self, loc: Loc) -> int:
        """Return the line, in the file, of the value at `loc` inside this element."""
        return self.line - 1 + self._places.line(loc)

    @cached_property
    def _places(self) -> json_text.Places:
        return json_text.Places(self.text)


class JsonFile:
    """A JSON document whose long arrays are streamed, not loaded."""

    def __init__(
        self, path: Path, *, shown: str, max_depth: int = json_text.MAX_DEPTH, unique: bool = False
    ) -> None:
        self._path = path
        self._shown = shown
        self._decode = partial(json_text.decode, max_depth=max_depth, unique=unique)

    def head(self) -> Any:
        """Return the beginning of the document, enough to detect its format.

        For a list, returns a list of its first element.  For an object, returns the members that
        begin in the first MiB; lists in them are also cut to the first element.
        """
        with reading(self._path, shown=self._shown) as file:
            return _head(_Cursor(file, self._shown, self._decode))

    def walk(self, arrays: frozenset[str]) -> Iterator[tuple[str, Element]]:
        """Yield each element of a top-level list, or each member of a top-level object.

        Elements of a list have the name `""`.  A member named in `arrays` whose value is a list
        yields a start marker (`Element.is_begin`) and then each element, with the member's name.

        Raises:
            UsageError: the document is not JSON, or neither a list nor an object.

        """
        with reading(self._path, shown=self._shown, most=MAX_WALKED) as file:
            yield from _walk(_Cursor(file, self._shown, self._decode), arrays)


def walk_lines(path: Path, *, shown: str, refuse: Refuse) -> Iterator[Element]:
    """Yield the value of each line of a JSON Lines file.

    Blank lines are skipped; errors in a line are reported to `refuse`, with the line number.

    Raises:
        UsageError: the file cannot be read, or a line is too long.

    """
    with reading(path, shown=shown) as file:
        lines = iter(lambda: file.readline(MAX_ELEMENT_CHARS + 1), "")
        for number, line in enumerate(lines, 1):
            if len(line) > MAX_ELEMENT_CHARS:
                message = f"has a line longer than {MAX_ELEMENT_CHARS >> 20} MiB"
                raise UsageError(message, file=shown, line=number)
            if line.strip():
                try:
                    value = json_text.parse_json(line, unique=True)
                except json_text.NotJsonError as exc:
                    refuse(str(exc), number)
                else:
                    yield Element(value, number, line)


def _head(cursor: "_Cursor") -> Any:
    first = cursor.peek()
    if first == "[":
        return [element.value for element in itertools.islice(cursor.elements(), 1)]
    if first != "{":
        return cursor.value().value if first else None
    members: dict[str, Any] = {}
    try:
        for name in cursor.members():
            if cursor.peek() != "[":
                members[name] = cursor.value().value
                continue
            elements = cursor.elements()
            members[name] = [element.value for element in itertools.islice(elements, 1)]
            if any(cursor.position > _CHUNK for _ in elements):
                break
    except UsageError:
        if not any(isinstance(value, list) for value in members.values()):
            raise
        # Errors after a list are reported when the whole document is read.
    return members


def _walk(cursor: "_Cursor", arrays: frozenset[str]) -> Iterator[tuple[str, Element]]:
    first = cursor.peek()
    if first == "[":
        for element in cursor.elements():
            yield "", element
    elif first == "{":
        for name in cursor.members():
            if name in arrays and cursor.peek() == "[":
                yield name, Element(None, cursor.line, "", is_begin=True)
                for element in cursor.elements():
                    yield name, element
            else:
                yield name, cursor.value()
    else:
        cursor.refuse("is neither a JSON object nor a list" if first else "is empty")
    if cursor.peek():
        cursor.refuse("has extra text after the end")


class _Cursor:
    """A position in a JSON text of which only a window is in memory."""

    def __init__(self, file: IO[str], shown: str, decode: _Decode) -> None:
        self._file = file
        self._shown = shown
        self._decode = decode
        self._text = file.read(_CHUNK)
        self._at = 0
        self._left_behind = 0
        self.line = 1

    @property
    def position(self) -> int:
        """The number of characters before the cursor."""
        return self._left_behind + self._at

    def peek(self) -> str:
        """Return the next character that is not whitespace; empty at the end."""
        while True:
            character = self._text[self._at : self._at + 1]
            if character > " ":  # mostly, without a regular expression
                return character
            self._pass_to(json_text.skip(self._text, self._at))
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def take(self, wanted: str) -> str:
        """Consume the next character, which must be one of `wanted`."""
        found = self.peek()
        if not found or found not in wanted:
            choice = " or ".join(repr(character) for character in wanted)
            self.refuse(f"expected {choice}, found {found!r}" if found else "ends unexpectedly")
        self._at += 1
        return found

    def elements(self) -> Iterator[Element]:
        """Consume a list, yielding its elements."""
        for _ in self._items("[", "]"):
            yield self.value()

    def members(self) -> Iterator[str]:
        """Consume an object, yielding its names; the caller consumes each value."""
        for _ in self._items("{", "}"):
            if self.peek() != '"':
                self.refuse("expected a name in double quotes")
            name = self.value().value
            self.take(":")
            yield name

    def _items(self, opening: str, closing: str) -> Iterator[None]:
        """Consume a list or an object; yields before each item, which the caller consumes."""
        self.take(opening)
        if self.peek() == closing:
            self.take(closing)
            return
        more = ","
        while more == ",":
            yield
            more = self.take("," + closing)

    def value(self) -> Element:
        """Consume a value and return it."""
        self.peek()
        while True:
            held = len(self._text) - self._at
            try:
                value, end = self._decode(self._text, self._at)
                # A number at the end of the window may continue beyond it.
                if end <= len(self._text) - _LONGEST_WORD or not self._more():
                    break
            except json_text.NotJsonError as exc:
                near_end = exc.position > len(self._text) - _LONGEST_WORD
                if not (exc.unfinished or near_end) or not self._more():
                    self._pass_to(exc.position)
                    self.refuse(str(exc))
                self._refuse_many(held)
            if len(self._text) - self._at > MAX_ELEMENT_CHARS:
                self.refuse(f"contains a value larger than {MAX_ELEMENT_CHARS >> 20} MiB")
        found = Element(value, self.line, self._text[self._at : end])
        self._pass_to(end)
        return found

    def _refuse_many(self, held: int) -> None:
        """Refuse an unfinished value if its first `held` characters hold too many values."""
        try:
            json_text.refuse_many(self._text, self._at, self._at + held)
        except json_text.NotJsonError as exc:
            self.refuse(str(exc))

    def refuse(self, message: str) -> NoReturn:
        raise UsageError(message, file=self._shown, line=self.line)

    def _pass_to(self, end: int) -> None:
        self.line += self._text.count("\n", self._at, end)
        self._at = end

    def _more(self) -> bool:
        """Read more text, doubling the window of an unfinished value; return False at the end."""
        rest = len(self._text) - self._at
        chunk = self._file.read(max(_CHUNK, min(rest, MAX_ELEMENT_CHARS - rest)))
        if chunk:
            self._left_behind += self._at
            self._text, self._at = self._text[self._at :] + chunk, 0
        return bool(chunk)
