"""JSON read with the line of every value, and walked where it is long.

NaN is refused, as JSON does.  A long array is walked one element at a time, so a file of
any length needs the memory of its longest element.
"""

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

from ci_eval.documents import Loc, dotted, not_utf8, open_text
from ci_eval.errors import Problem, Severity, UsageError

MAX_ELEMENT_CHARS = 64 * 1024 * 1024
"""The longest element of a walked array; a longer one is an error, not a full memory."""
_CHUNK = 1 << 20
_SPACE = re.compile(r"[ \t\r\n]*")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def parse_json(text: str | bytes) -> Any:
    """Return the JSON value `text`.

    Raises:
        ValueError: it is not JSON; NaN and Infinity are not, nor is what is nested too deep.

    """
    try:
        return _DECODER.decode(text if isinstance(text, str) else text.decode())
    except RecursionError:
        raise ValueError("is nested too deep") from None


@dataclass(frozen=True)
class Element:
    """One element of a walked array."""

    value: Any
    line: int
    text: str
    """As it stands in the file."""

    def line_of(self, loc: Loc) -> int:
        """Return the line, in the file, of the value that `loc` leads to inside."""
        return self.line + self.text.count("\n", 0, _find(self.text, loc))


@dataclass(frozen=True)
class JsonText:
    """A JSON document that is held whole."""

    value: Any
    shown: str
    text: str

    def line(self, loc: Loc) -> int:
        """Return the line of the value that `loc` leads to, or of the last one on the way."""
        return 1 + self.text.count("\n", 0, _find(self.text, loc))

    def problem(self, message: str, loc: Loc = (), *, severity: Severity = "error") -> Problem:
        """Return the problem `message` at `loc`."""
        return Problem(message, self.shown, self.line(loc), dotted(loc), severity)


_NOT_JSON = re.compile(
    r'"(?:[^"\\]|\\.)*"|(?P<comment>//[^\n]*|\#[^\n]*|/\*.*?\*/)|(?P<comma>,)(?=\s*[}\]])',
    re.DOTALL,
)


def parse_relaxed(text: str, *, shown: str) -> tuple[JsonText, list[Problem]]:
    """Parse JSON that may hold comments and trailing commas, and name the lines of those.

    Raises:
        UsageError: it is no JSON without them either.

    """
    oddities: list[Problem] = []

    def blank(found: re.Match[str]) -> str:
        if not found.lastgroup:
            return found[0]
        line = 1 + text.count("\n", 0, found.start())
        what = f"a {found.lastgroup}, which ADK refuses in JSON"
        oddities.append(Problem(what, shown, line, severity="warning"))
        return re.sub(r"[^\n]", " ", found[0])

    try:
        return JsonText(parse_json(text), shown, text), []
    except ValueError:
        pass
    for _ in range(2):  # a comment may stand between a comma and the bracket
        text = _NOT_JSON.sub(blank, text)
    try:
        return JsonText(parse_json(text), shown, text), oddities
    except ValueError as exc:
        at = exc.pos if isinstance(exc, json.JSONDecodeError) else 0
        message = exc.msg.lower() if isinstance(exc, json.JSONDecodeError) else str(exc)
        line = 1 + text.count("\n", 0, at)
        found = f"is not JSON: {message}"
        raise UsageError(problems=[Problem(found, shown, line)]) from exc


class JsonFile:
    """A JSON document whose long arrays are walked, not loaded."""

    def __init__(self, path: Path, *, shown: str) -> None:
        self._path = path
        self._shown = shown

    def head(self) -> Any:
        """Return the beginning of the document, enough to tell what it is.

        Of a list that is a list of its first element.  Of an object it is the members up
        to the first list, of which again the first element is enough.
        """
        with open_text(self._path, self._shown) as file:
            cursor = _Cursor(file, self._shown)
            try:
                return _head(cursor)
            except UnicodeDecodeError as exc:
                raise not_utf8(self._path, self._shown) from exc

    def walk(self, arrays: frozenset[str]) -> Iterator[tuple[str, Element]]:
        """Yield each element of a top-level list, or each member of a top-level object.

        Elements of a list come with the name `""`.  A member named in `arrays` whose
        value is a list comes element by element, with the member's name, and once
        before, with the value `None`, to say that it is there.

        Raises:
            UsageError: the document is no JSON, or neither a list nor an object.

        """
        with open_text(self._path, self._shown) as file:
            cursor = _Cursor(file, self._shown)
            try:
                yield from _walk(cursor, arrays)
            except UnicodeDecodeError as exc:
                raise not_utf8(self._path, self._shown) from exc


def _head(cursor: "_Cursor") -> Any:
    first = cursor.peek()
    if first == "[":
        return [element.value for element in itertools.islice(cursor.elements(), 1)]
    if first != "{":
        return cursor.value().value if first else None
    members: dict[str, Any] = {}
    for name in cursor.members():
        if cursor.peek() == "[":
            return {**members, name: _head(cursor)}
        members[name] = cursor.value().value
    return members


def _walk(cursor: "_Cursor", arrays: frozenset[str]) -> Iterator[tuple[str, Element]]:
    first = cursor.peek()
    if first == "[":
        for element in cursor.elements():
            yield "", element
    elif first == "{":
        for name in cursor.members():
            if name in arrays and cursor.peek() == "[":
                yield name, Element(None, cursor.line, "")
                for element in cursor.elements():
                    yield name, element
            else:
                yield name, cursor.value()
    else:
        cursor.refuse("holds neither a JSON object nor a list" if first else "is empty")
    if cursor.peek():
        cursor.refuse("goes on after its end")


class _Cursor:
    """A place in a JSON text of which only a window is in memory."""

    def __init__(self, file: IO[str], shown: str) -> None:
        self._file = file
        self._shown = shown
        self._text = file.read(_CHUNK)
        self._at = 0
        self.line = 1

    def peek(self) -> str:
        """Return the next character that is not white space; empty at the end."""
        while True:
            found = _SPACE.match(self._text, self._at)
            self._pass_to(found.end() if found else self._at)
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def take(self, wanted: str) -> str:
        """Go past the next character, which must be one of `wanted`."""
        found = self.peek()
        if not found or found not in wanted:
            choice = " or ".join(repr(character) for character in wanted)
            self.refuse(f"expected {choice}, found {found!r}" if found else "ends too early")
        self._pass_to(self._at + 1)
        return found

    def elements(self) -> Iterator[Element]:
        """Yield the elements of the list that begins here, and go past it."""
        self.take("[")
        if self.peek() == "]":
            self.take("]")
            return
        while True:
            yield self.value()
            if self.take(",]") == "]":
                return

    def members(self) -> Iterator[str]:
        """Yield the names of the object that begins here; the caller goes past each value."""
        self.take("{")
        if self.peek() == "}":
            self.take("}")
            return
        while True:
            if self.peek() != '"':
                self.refuse("expected a name in double quotes")
            name = self.value().value
            self.take(":")
            yield name
            if self.take(",}") == "}":
                return

    def value(self) -> Element:
        """Return the value that begins here, and go past it."""
        self.peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
                # A number at the end of the window may go on behind it.
                if end < len(self._text) or not self._more():
                    break
            except json.JSONDecodeError as exc:
                if not self._more():
                    self._pass_to(min(exc.pos, len(self._text)))
                    self.refuse(f"is not JSON: {exc.msg[0].lower()}{exc.msg[1:]}")
            except (ValueError, RecursionError) as exc:
                deep = isinstance(exc, RecursionError)
                self.refuse("is nested too deep" if deep else f"is not JSON: {exc}")
            if len(self._text) - self._at > MAX_ELEMENT_CHARS:
                self.refuse(f"holds a value of more than {MAX_ELEMENT_CHARS >> 20} MiB")
        found = Element(value, self.line, self._text[self._at : end])
        self._pass_to(end)
        return found

    def refuse(self, message: str) -> NoReturn:
        raise UsageError(problems=[Problem(message, self._shown, self.line)])

    def _pass_to(self, end: int) -> None:
        self.line += self._text.count("\n", self._at, end)
        self._at = end

    def _more(self) -> bool:
        """Slide the window on, doubling what an unfinished value needs; say if there was more."""
        rest = self._text[self._at :]
        chunk = self._file.read(max(_CHUNK, len(rest)))
        self._text, self._at = rest + chunk, 0
        return bool(chunk)


def _find(text: str, loc: Loc) -> int:
    """Return the position in the JSON `text` of the last value on the way `loc` that is there."""
    at = _skip(text, 0)
    for step in loc:
        inner = _enter(text, at, step)
        if inner is None:
            break
        at = inner
    return at


def _enter(text: str, at: int, step: int | str) -> int | None:
    """Return where the member or element `step` of the value at `at` begins."""
    if text[at] not in "{[":
        return None
    is_object, at = text[at] == "{", _skip(text, at + 1)
    position = 0
    while text[at] not in "}]":
        name: int | str = position
        begins = at
        if is_object:
            name, at = _DECODER.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        if name == step:
            return at if not is_object else begins if text[at] not in "{[" else at
        _, at = _DECODER.raw_decode(text, at)
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)
        position += 1
    return None


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
