"""JSON documents in memory: their value, and the line of each part.

Rejects NaN, as JSON does, and values that could not be written back: infinite numbers, unpaired
surrogates, and values nested too deeply.
"""

import codecs
import json
import math
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn, TypeGuard

import msgspec

from ci_eval.records.errors import Problem, Severity, UsageError
from ci_eval.text.yaml_files import Loc, dotted, read_text

MAX_DEPTH = 200
"""The maximum nesting depth; the same as ADK's."""
TRACE_DEPTH = MAX_DEPTH + 10
"""The maximum depth of a trace, which contains such values at some depth."""
RESULT_DEPTH = TRACE_DEPTH + 10
"""The maximum depth of a result, which quotes traces as evidence."""
MAX_VALUES = 5_000_000
"""The maximum number of values in one document or one element of a streamed array: a value takes
over 100 bytes of memory, but may take only two in the text."""
_SPACE = re.compile(r"[ \t\r\n]*")


class NotJsonError(ValueError):
    """The text is not JSON, or JSON that we reject; the message is a verb phrase."""

    def __init__(self, message: str, position: int, *, unfinished: bool = False) -> None:
        super().__init__(message)
        self.position = position
        """Offset in the text."""
        self.unfinished = unfinished
        """Whether the text ends within a string and may be valid so far."""


def parse_json(text: str | bytes, *, max_depth: int = MAX_DEPTH, unique: bool = False) -> Any:
    """Parse the JSON value `text`; of duplicate keys, the last one counts, unless `unique`.

    Raises:
        NotJsonError: it is not JSON, could not be written back, or is not `unique`.

    """
    if isinstance(text, bytes):
        try:
            text = text.removeprefix(codecs.BOM_UTF8).decode()
        except UnicodeDecodeError as exc:
            found = f"byte {exc.object[exc.start]:#04x} is not UTF-8"
            raise NotJsonError(found, exc.start) from exc
    refuse_many(text, 0, len(text))
    is_flat = text.count("{") + text.count("[") <= max_depth
    if is_flat and not unique and not _LONG_NUMBER.search(text[::_STRIDE]):
        with suppress(msgspec.MsgspecError, UnicodeEncodeError):
            return msgspec.json.decode(text)
    # Slower, but names what is wrong; and it refuses what `msgspec` accepts.
    value, end = decode(text, skip(text, 0), max_depth=max_depth, unique=unique)
    end = skip(text, end)
    if end < len(text):
        raise NotJsonError("has extra text after the end", end)
    return value


def json_or_text(text: str) -> Any:
    """Return the JSON value `text`, or the text itself if it is not JSON."""
    try:
        return parse_json(text)
    except NotJsonError:
        return text


def decode(text: str, at: int, *, max_depth: int, unique: bool = False) -> tuple[Any, int]:
    """Return the JSON value that begins at `at`, and its end offset.

    Raises:
        NotJsonError: as for `parse_json`.

    """
    try:
        value, end = (_UNIQUE if unique else _DECODER).raw_decode(text, at)
    except _DuplicateKeyError:
        raise next(_duplicates(text, at)) from None
    except json.JSONDecodeError as exc:
        detail = re.sub(r"( starting)? at$", "", exc.msg[0].lower() + exc.msg[1:])
        unfinished = exc.msg.startswith("Unterminated string")
        raise NotJsonError(f"is not JSON: {detail}", exc.pos, unfinished=unfinished) from exc
    except RecursionError as exc:
        raise NotJsonError("is nested too deeply", at) from exc
    except ValueError as exc:  # a number that JSON lacks or that is too large
        raise _refused_number(text, at) from exc
    brackets = text.count("{", at, end) + text.count("[", at, end)
    if brackets > max_depth and _depth(value) > max_depth:
        raise NotJsonError("is nested too deeply", at)
    _refuse_surrogates(text, at, end)
    return value, end


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(digits)
    return number


def _whole(digits: str) -> int:
    if len(digits) > _MAX_DIGITS and len(digits.lstrip("-")) > _MAX_DIGITS:
        raise ValueError(digits)
    return int(digits)


_MAX_DIGITS = 308
"""The maximum number of digits of an integer, so that it is finite as a float."""
_STRIDE = 77
_LONG_NUMBER = re.compile("[0-9]{4}")
"""In every 77th character, a number with more digits."""
_NUMBERS: Any = {"parse_constant": _no_constant, "parse_float": _finite, "parse_int": _whole}
_DECODER = json.JSONDecoder(**_NUMBERS)


class _DuplicateKeyError(ValueError):
    """An object has a key twice."""


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _DuplicateKeyError
    return found


_UNIQUE = json.JSONDecoder(**_NUMBERS, object_pairs_hook=_without_duplicates)
_KEYS = re.compile(r'("(?:[^"\\]|\\.)*+")([ \t\r\n]*:)?|[{}]', re.DOTALL)
"""Strings, those before a colon marked, and the braces of objects."""


def _duplicates(text: str, at: int) -> Iterator[NotJsonError]:
    """Yield an error about each duplicate key from `at` on."""
    objects = list[set[str]]()
    for found in _KEYS.finditer(text, at):
        if found[0] == "{":
            objects.append(set())
        elif found[0] == "}":
            objects.pop()
        elif found[2]:
            key = json.loads(found[1], strict=False)
            if key in objects[-1]:
                yield NotJsonError(f"duplicate key {key!r}", found.start())
            objects[-1].add(key)


_NUMBER = re.compile(
    r'"(?:[^"\\]|\\.)*+"|(?P<word>NaN|-?Infinity)'
    r"|-?(?P<int>[0-9]+)(?P<rest>(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)",
    re.DOTALL,
)


def _refused_number(text: str, at: int) -> NotJsonError:
    """Return an error about the first rejected number from `at` on."""
    found = next(filter(_is_refused, _NUMBER.finditer(text, at)))
    if found["word"]:
        return NotJsonError(f"is not JSON: {found[0]} is not a number", found.start())
    return NotJsonError(f"the number {found[0][:20]} is too large", found.start())


def _is_refused(found: re.Match[str]) -> bool:
    if found["rest"]:
        return math.isinf(float(found[0]))
    return bool(found["word"]) or len(found["int"] or "") > _MAX_DIGITS


def is_number(value: Any) -> TypeGuard[int | float]:
    """Return True if a JSON value is a number; unlike in Python, a boolean is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def objects_in(value: Any) -> list[dict[str, Any]]:
    """Return the objects in a JSON list; none if `value` is not a list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def with_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return a JSON value with `change` applied to everything in it but objects and lists."""
    if isinstance(value, dict):
        return {key: with_leaves(each, change) for key, each in value.items()}
    if isinstance(value, list):
        return [with_leaves(each, change) for each in value]
    return change(value)


def _depth(value: Any) -> int:
    """Return the nesting depth of lists and objects."""
    depth, level = 0, [value]
    while level:
        level = [
            inner
            for each in level
            for inner in (each.values() if isinstance(each, dict) else each)
            if isinstance(inner, dict | list)
        ]
        depth += 1
    return depth


def refuse_many(text: str, at: int, end: int) -> None:
    """Refuse a text with too many values between `at` and `end` to hold in memory.

    Counts commas and opening brackets, including the few inside strings.

    Raises:
        NotJsonError: there are more than `MAX_VALUES`.

    """
    if end - at > MAX_VALUES and sum(text.count(sign, at, end) for sign in ",[{") > MAX_VALUES:
        raise NotJsonError(f"contains more than {MAX_VALUES:,} values, too many for memory", at)


_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F].."  # a surrogate pair
    r"|(?P<half>u[dD][89a-fA-F]..)|.)",
    re.DOTALL,
)


def _refuse_surrogates(text: str, at: int, end: int) -> None:
    """Refuse an escaped surrogate without its other half."""
    # The first is found at once; each of the others takes half as long as parsing.
    if text.find("\\", at, end) < 0 or text.find("\\u", at, end) < 0:
        return
    if text.find("\\ud", at, end) < 0 and text.find("\\uD", at, end) < 0:
        return
    for found in _ESCAPE.finditer(text, at, end):
        if found["half"]:
            message = f"{found[0]} is an unpaired surrogate (half a character)"
            raise NotJsonError(message, found.start())


# --- Line numbers -----------------------------------------------------------------------------


class Places:
    """The line numbers of the values in a JSON text; scans each list and object once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._inside: dict[int, dict[int | str, tuple[int, int]]] = {}

    def line(self, loc: Loc) -> int:
        """Return the line, from 1, of the value at `loc`, or of its nearest existing parent.

        A value that is neither a list nor an object has the line of its name.
        """
        begin = at = skip(self._text, 0)
        for step in loc:
            if at not in self._inside:
                found = members(self._text, at)
                self._inside[at] = {each: (name, value) for each, name, value, _ in found}
            if step not in self._inside[at]:
                break
            name, at = self._inside[at][step]
            begin = at if self._text[at] in "{[" else name
        return 1 + self._text.count("\n", 0, begin)


def members(text: str, at: int) -> Iterator[tuple[int | str, int, int, int]]:
    """Yield each key or index of the value at `at`, with the offsets of name, value and its end."""
    opened = text[at : at + 1]
    if opened not in ("{", "["):
        return
    at, position = skip(text, at + 1), 0
    while text[at] not in "}]":
        step: int | str = position
        name = at
        if opened == "{":
            step, at = _DECODER.raw_decode(text, at)
            at = skip(text, skip(text, at) + 1)
        _, end = _DECODER.raw_decode(text, at)
        yield step, name, at, end
        at = skip(text, end)
        if text[at] == ",":
            at = skip(text, at + 1)
        position += 1


def skip(text: str, at: int) -> int:
    """Return the offset of the first non-whitespace character from `at` on."""
    found = _SPACE.match(text, at)
    return found.end() if found else at


@dataclass(frozen=True)
class JsonText:
    """A JSON document in memory."""

    value: Any
    shown: str
    text: str

    def line(self, loc: Loc) -> int:
        """Return the line of the value at `loc`, or of its nearest existing parent."""
        return self._places.line(loc)

    def problem(self, message: str, loc: Loc = (), *, severity: Severity = "error") -> Problem:
        """Return the problem `message` at `loc`."""
        return Problem(message, self.shown, self.line(loc), dotted(loc), severity)

    @cached_property
    def _places(self) -> Places:
        return Places(self.text)


# --- JSON with comments and trailing commas ---------------------------------------------------

_NOT_JSON = re.compile(
    r'"(?:[^"\\]|\\.)*+(?:"|\Z)'
    r"|(?P<comment>//[^\n]*|\#[^\n]*|/\*.*?(?:\*/|\Z))|(?P<comma>,)(?=[ \t\r\n]*[}\]])",
    re.DOTALL,
)
_ODDITIES = {"comment": "a comment", "comma": "a trailing comma"}


def parse_strict(text: str, *, shown: str, max_depth: int = MAX_DEPTH) -> JsonText:
    """Parse JSON.

    Raises:
        UsageError: the text is not JSON.

    """
    try:
        return JsonText(parse_json(text, max_depth=max_depth, unique=True), shown, text)
    except NotJsonError as exc:
        line = 1 + text.count("\n", 0, exc.position)
        raise UsageError(str(exc), file=shown, line=line) from exc


def read_json(path: Path, *, shown: str) -> JsonText:
    """Parse the JSON file at `path`; messages call it `shown`.

    Raises:
        UsageError: it cannot be read, or is not JSON.

    """
    return parse_strict(read_text(path, shown=shown), shown=shown)


def parse_relaxed(text: str, *, shown: str) -> tuple[JsonText, list[Problem]]:
    """Parse JSON that may contain comments and trailing commas, and warn of each.

    Raises:
        UsageError: the text is not JSON even without them.

    """
    try:
        return JsonText(parse_json(text, unique=True), shown, text), []
    except NotJsonError:
        pass
    oddities: list[Problem] = []
    for _ in range(2):  # there may be a comment between a comma and the bracket
        found, text = _blanked(text, shown)
        oddities += found
    oddities.sort(key=lambda problem: problem.line or 0)
    return parse_strict(text, shown=shown), oddities


def _blanked(text: str, shown: str) -> tuple[list[Problem], str]:
    """Replace comments and trailing commas with spaces; return warnings and the new text."""
    oddities: list[Problem] = []
    pieces: list[str] = []
    line, at = 1, 0
    for found in _NOT_JSON.finditer(text):
        if found.lastgroup:
            line += text.count("\n", at, found.start())
            message = f"{_ODDITIES[found.lastgroup]}, which ADK does not accept in JSON"
            oddities.append(Problem(message, shown, line, severity="warning"))
            line += found[0].count("\n")
            pieces += text[at : found.start()], re.sub(r"[^\n]", " ", found[0])
            at = found.end()
    return oddities, "".join((*pieces, text[at:]))
